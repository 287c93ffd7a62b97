//! `dictGetOrDefault` with a computed default: it is computed only for the rows that need it, as in ClickHouse. A
//! DataFusion function gets all of its arguments evaluated; CASE evaluates only what it needs.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use datafusion::arrow::array::{ArrayRef, BooleanArray, StructArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{
    Case, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion::optimizer::AnalyzerRule;
use granary_dialect::functions::TupleElement;
use granary_dialect::functions::arguments::constants;
use granary_dialect::functions::{rows, shaped};
use granary_dialect::plan::{has_expression, has_node, map_named_expressions, schema_below};

use super::call::Call;
use super::function::{
    FunctionKind, as_answer, call_of, check_count, default_columns, look_up, of_moments, replaced,
    with_defaults, with_nulls, without_zone,
};
use super::keys::keys;
use crate::catalogue::Catalogue;

/// The function for attributes of any type.
const GET_OR_DEFAULT: &str = "dictGetOrDefault";

const VALUE: &str = "value";
const FOUND: &str = "found";

/// Turns `dictGetOrDefault(d, a, k, default)` into `CASE WHEN found THEN value ELSE default END`.
#[derive(Debug)]
pub struct LazyDefaults {
    pub catalogue: Arc<Catalogue>,
}

impl AnalyzerRule for LazyDefaults {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !has_node(&plan, |node| has_expression(node, |expr| lazy(expr).is_some()))? {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            let schema = schema_below(&node);
            map_named_expressions(node, |expr| Ok(self.chosen(expr, &schema)))
        })
        .data()
    }

    fn name(&self) -> &str {
        "lazy_defaults"
    }
}

/// The function and the arguments of a call whose default, the last one, must be computed.
fn lazy(expr: &Expr) -> Option<(&str, &[Expr])> {
    let Expr::ScalarFunction(call) = expr else { return None };
    let name = call.name();
    let is_default = name.starts_with("dictGet") && name.ends_with("OrDefault");
    // An expression without columns is computed once.
    let is_computed = |default: &Expr| default.any_column_refs() && !is_at_hand(default);
    let default = call.args.last().filter(|_| is_default && (4..=5).contains(&call.args.len()))?;
    is_computed(default).then_some((name, &call.args))
}

/// Whether an expression is a value, or free to evaluate and cannot fail.
fn is_at_hand(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(alias) => is_at_hand(&alias.expr),
        Expr::ScalarFunction(call) => call.name() == "tuple" && call.args.iter().all(is_at_hand),
        _ => false,
    }
}

impl LazyDefaults {
    fn chosen(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let Some((function, arguments)) = lazy(&expr) else { return Transformed::no(expr) };
        if self.is_wanted_everywhere(function, arguments, schema) {
            return Transformed::no(expr);
        }
        let key_arguments = &arguments[2..arguments.len() - 1];
        // A call with constants only must not run during planning.
        let volatility = if key_arguments.iter().any(Expr::any_column_refs) {
            Volatility::Stable
        } else {
            Volatility::Volatile
        };
        let part = |part: Part, arguments: &[Expr]| {
            let function = DefaultPart::new(part, volatility, Arc::clone(&self.catalogue));
            ScalarUDF::from(function).call(arguments.to_vec())
        };
        let found = part(Part::Found, &arguments[..arguments.len() - 1]);
        let element =
            |name: &str| ScalarUDF::from(TupleElement::default()).call(vec![found.clone(), lit(name)]);
        let default = part(Part::Default, arguments);
        let when = vec![(Box::new(element(FOUND)), Box::new(element(VALUE)))];
        let chosen = Expr::Case(Case::new(None, when, Some(Box::new(default))));
        // A CASE drops the metadata of its branches' types.
        let answer = [&arguments[..arguments.len() - 1], &[chosen]].concat();
        let whole = if function == GET_OR_DEFAULT { Part::Answer } else { Part::TypedAnswer };
        Transformed::yes(part(whole, &answer))
    }
}

impl LazyDefaults {
    /// Whether a nullable default must be evaluated for all rows: if the attribute is not Nullable, a NULL default is
    /// an error even in rows that do not need it. A function that names the type takes no such default at all.
    fn is_wanted_everywhere(&self, function: &str, arguments: &[Expr], schema: &DFSchema) -> bool {
        let constant = |expr: &Expr| match expr {
            Expr::Literal(value, _) => Some(value.clone()),
            _ => None,
        };
        let names: Vec<Option<ScalarValue>> = arguments[..2].iter().map(constant).collect();
        let names: Vec<Option<&ScalarValue>> = names.iter().map(Option::as_ref).collect();
        let (keys, default) = (&arguments[2..arguments.len() - 1], &arguments[arguments.len() - 1]);
        let may_be_null = |value: &Expr| value.nullable(schema).unwrap_or(true);
        if function != GET_OR_DEFAULT {
            return may_be_null(default);
        }
        let default_type = default.get_type(schema).ok();
        let default_may_be_null = |place: usize| match &default_type {
            Some(DataType::Struct(fields)) => fields.get(place).is_none_or(|field| field.is_nullable()),
            _ => may_be_null(default),
        };
        // With a NULL key the answer is NULL, whatever the default is.
        !keys.iter().any(may_be_null)
            && call_of(&self.catalogue, &names, GET_OR_DEFAULT).is_ok_and(|call| {
                (0..call.attributes.len()).any(|place| !call.is_nullable(place) && default_may_be_null(place))
            })
    }
}

/// Which part of the answer a function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    /// The dictionary's value, and whether it has one; NULL for a row with a NULL key.
    Found,
    /// The default, of the attribute's type.
    Default,
    /// The chosen value (the last argument), with the field of the whole answer.
    Answer,
    /// Like `Answer`, for a function that names its type, such as `dictGetDateTimeOrDefault`: times have no zone.
    TypedAnswer,
}

/// A part of `dictGetOrDefault` with a computed default.
#[derive(Debug)]
struct DefaultPart {
    part: Part,
    catalogue: Arc<Catalogue>,
    signature: Signature,
    /// A constant key and the dictionary's answer for it, for the duration of the query.
    constant: OnceLock<(Vec<ScalarValue>, ColumnarValue)>,
}

impl PartialEq for DefaultPart {
    fn eq(&self, other: &Self) -> bool {
        (self.part, &self.signature) == (other.part, &other.signature)
            && Arc::ptr_eq(&self.catalogue, &other.catalogue)
    }
}

impl Eq for DefaultPart {}

impl Hash for DefaultPart {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.part.hash(state);
    }
}

impl DefaultPart {
    fn new(part: Part, volatility: Volatility, catalogue: Arc<Catalogue>) -> Self {
        Self { part, catalogue, signature: Signature::variadic_any(volatility), constant: OnceLock::new() }
    }

    fn call(&self, constants: &[Option<&ScalarValue>]) -> Result<Call> {
        let function = GET_OR_DEFAULT;
        let call = call_of(&self.catalogue, constants, function)?;
        let given = constants.len() + usize::from(self.part == Part::Found);
        check_count(&call, FunctionKind::GetOrDefault, given, function)?;
        Ok(call)
    }

    /// The whole answer's field.
    fn answer(&self, call: &Call, arguments: &[FieldRef]) -> FieldRef {
        let key_arguments = &arguments[2..2 + call.key_argument_count()];
        let field = call.field(VALUE, FunctionKind::GetOrDefault, key_arguments);
        Arc::new(field.as_ref().clone().with_name(VALUE))
    }

    /// The dictionary's answer. A CASE asks twice, for its condition and for its value; the optimiser merges the two
    /// calls, except volatile ones. A constant key is looked up once, and all rows get that answer.
    fn found(&self, call: &Call, answer: FieldRef, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arguments = &args.args[2..];
        let key = constants(arguments).into_iter().map(|value| value.cloned()).collect::<Option<Vec<_>>>();
        let Some(key) = key else { return look_up_part(call, answer, args) };
        if let Some((_, found)) = self.constant.get().filter(|(known, _)| *known == key) {
            return Ok(found.clone());
        }
        let found = look_up_part(call, answer, args)?;
        // If threads ask concurrently, all use the answer of the first.
        let (known, first) = self.constant.get_or_init(|| (key.clone(), found.clone()));
        Ok(if *known == key { first.clone() } else { found })
    }
}

/// The dictionary's answer for all rows of a batch.
fn look_up_part(call: &Call, answer: FieldRef, args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let arguments = &args.args[2..];
    call.check_key(GET_OR_DEFAULT, &arguments[0])?;
    let rows = rows(arguments, args.number_rows);
    let found = look_up(call, keys(call, &args.arg_fields[2..], arguments, rows)?)?;
    let columns = found.columns.iter().map(|column| with_nulls(Arc::clone(column), &found.nulls));
    let value = as_answer(call, columns.collect::<Result<_>>()?, &answer, rows)?;
    let is_there =
        |row: usize| found.found.value(row) || found.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let there: BooleanArray = (0..found.found.len()).map(|row| Some(is_there(row))).collect();
    let columns: Vec<ArrayRef> = vec![value, Arc::new(there)];
    shaped(Arc::new(StructArray::try_new(found_fields(answer), columns, None)?), arguments)
}

fn found_fields(answer: FieldRef) -> Fields {
    Fields::from(vec![answer, Arc::new(Field::new(FOUND, DataType::Boolean, false))])
}

impl ScalarUDFImpl for DefaultPart {
    fn name(&self) -> &str {
        match self.part {
            Part::Found => "dictGetOrDefault/found",
            Part::Default => "dictGetOrDefault/default",
            Part::Answer => "dictGetOrDefault/answer",
            Part::TypedAnswer => "dictGetTypeOrDefault/answer",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(DataFusionError::Internal(
            "the type of a dictionary's answer needs its constant arguments".into(),
        ))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let call = self.call(args.scalar_arguments)?;
        let answer = self.answer(&call, args.arg_fields);
        Ok(match self.part {
            Part::Found => Arc::new(Field::new(FOUND, DataType::Struct(found_fields(answer)), false)),
            Part::Default | Part::Answer => answer,
            Part::TypedAnswer => without_zone(answer),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let call = self.call(&constants(&args.args))?;
        let answer = self.answer(&call, &args.arg_fields);
        let rows = rows(&args.args[2..], args.number_rows);
        let planned = match (self.part, args.return_field.data_type()) {
            (Part::Found, DataType::Struct(fields)) => &fields[0],
            _ => &args.return_field,
        };
        if self.part != Part::TypedAnswer && !call.is_as_planned(planned) {
            return Err(replaced(&call.dictionary));
        }
        let array: ArrayRef = match self.part {
            Part::Found => return self.found(&call, answer, &args),
            Part::Default => {
                let last = args.args.len() - 1;
                let (field, values) = (&args.arg_fields[last], args.args[last].to_array(rows)?);
                // A text may have only some of its attributes.
                let columns = if call.is_of_texts() {
                    let keys = keys(&call, &args.arg_fields[2..last], &args.args[2..last], rows)?;
                    with_defaults(&call, &look_up(&call, keys)?, field, &values)?
                } else {
                    default_columns(&call, field, &values)?
                };
                as_answer(&call, columns, &answer, rows)?
            }
            Part::Answer => return Ok(args.args[args.args.len() - 1].clone()),
            Part::TypedAnswer => {
                of_moments(args.args[args.args.len() - 1].to_array(rows)?, &args.return_field)?
            }
        };
        shaped(array, &args.args[2..])
    }
}
