//! Functions of arrays with a lambda, built from [`ARRAY_MAP`]: `arrayFilter(x -> x > 1, a)` becomes a function of `a`
//! and of the lambda's results, `arrayFilter(a, arrayMap(x -> x > 1, a))`.

use datafusion::sql::sqlparser::ast::{Expr, Function};

use super::conditions;
use super::syntax::{arguments, call, name_of, plain_arguments, string, taken};
use crate::error::{Error, Result};
use crate::functions::ARRAY_MAP;

/// The arguments of the function that is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LambdaArguments {
    Results,
    /// The first array and the results; without a lambda it is another function, or none.
    Items {
        without_lambda: bool,
    },
}

const FUNCTIONS: &[(&str, LambdaArguments)] = &[
    ("arrayAll", LambdaArguments::Results),
    ("arrayAvg", LambdaArguments::Results),
    ("arrayCount", LambdaArguments::Results),
    ("arrayCumSum", LambdaArguments::Results),
    ("arrayExists", LambdaArguments::Results),
    ("arrayFirstIndex", LambdaArguments::Results),
    ("arrayLastIndex", LambdaArguments::Results),
    ("arrayMax", LambdaArguments::Results),
    ("arrayMin", LambdaArguments::Results),
    ("arrayProduct", LambdaArguments::Results),
    ("arraySum", LambdaArguments::Results),
    ("arrayFilter", LambdaArguments::Items { without_lambda: false }),
    ("arrayFirst", LambdaArguments::Items { without_lambda: false }),
    ("arrayFirstOrNull", LambdaArguments::Items { without_lambda: false }),
    ("arrayLast", LambdaArguments::Items { without_lambda: false }),
    ("arrayLastOrNull", LambdaArguments::Items { without_lambda: false }),
    ("arrayReverseSort", LambdaArguments::Items { without_lambda: true }),
    ("arraySort", LambdaArguments::Items { without_lambda: true }),
];

/// Rewrites a call of one of these functions; a lambda with several parameters may take tuples.
pub fn rewrite(expr: &mut Expr) -> Result<()> {
    let Expr::Function(function) = &*expr else { return Ok(()) };
    let Some(name) = name_of(function) else { return Ok(()) };
    let of = FUNCTIONS.iter().find(|(theirs, _)| *theirs == name).map(|(_, of)| *of);
    if of.is_none() && name != ARRAY_MAP {
        return Ok(());
    }
    let Some((results, items)) = results(function, name)? else {
        return match (of, arguments(function).len()) {
            (Some(LambdaArguments::Results | LambdaArguments::Items { without_lambda: true }), 1) => Ok(()),
            (_, 0 | 1) => Err(Error::wrong_argument_count(format!(
                "Function {name} needs a lambda, and an array for each of its parameters"
            ))),
            _ => Err(Error::illegal_type(format!("First argument for function {name} must be a lambda"))),
        };
    };
    *expr = match of {
        None => results,
        Some(LambdaArguments::Results) => call(name, vec![results]),
        Some(LambdaArguments::Items { .. }) => call(name, vec![items, results]),
    };
    Ok(())
}

fn is_subquery(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_subquery(inner),
        expr => matches!(expr, Expr::Subquery(_)),
    }
}

/// The array of the lambda's results, and the first argument array. `None`: there is no lambda.
fn results(function: &Function, name: &str) -> Result<Option<(Expr, Expr)>> {
    let Some(mut given) = plain_arguments(function) else { return Ok(None) };
    let Some(Expr::Lambda(lambda)) = given.first_mut() else { return Ok(None) };
    if conditions::is_condition(&lambda.body) {
        conditions::make_number(&mut lambda.body);
    }
    let parameters = lambda.params.iter().count();
    let [_, arrays @ ..] = given.as_slice() else { return Ok(None) };
    let Some(first) = arrays.first().cloned() else {
        let what = format!("Function {name} needs an array for each parameter of its lambda");
        return Err(Error::wrong_argument_count(what));
    };
    if arrays.len() == 1 && parameters > 1 {
        let element = |place: usize| call("tupleElement", vec![first.clone(), string(&place.to_string())]);
        given.truncate(1);
        given.extend((1..=parameters).map(element));
    } else if arrays.len() != parameters {
        return Err(Error::illegal_type(format!(
            "Function {name} needs an array for each of the {parameters} parameters of its lambda, and was given {}",
            arrays.len()
        )));
    }
    // `materialize` writes a subquery's array out for each row, and checks the bytes.
    given.iter_mut().skip(1).filter(|array| is_subquery(array)).for_each(|array| {
        *array = call("materialize", vec![taken(array)]);
    });
    Ok(Some((call(ARRAY_MAP, given), first)))
}
