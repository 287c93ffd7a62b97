//! The dialect without sessions, catalogue and dictionaries: from a query's text to the text of its answer.

use std::sync::Arc;

use crate::plan::{configuration, optimise, planning};
use crate::rewrite::{Named, Scope, rewrite};
use crate::statement::{ParsedQuery, parse_query};
use crate::text::{Column, Style, shown_name, write_cell};
use crate::types::type_name;
use crate::{FullName, Result, functions};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionContext;
use datafusion::physical_plan::collect;
use datafusion::sql::parser::Statement;
use granary_dict::WaitLimit;

/// A user in a database of dictionaries.
struct Somebody;

impl Scope for Somebody {
    fn database(&self) -> &str {
        "shop"
    }

    fn user(&self) -> &str {
        "ann"
    }

    fn setting(&self, name: &str) -> Option<String> {
        (name == "max_threads").then(|| "2".to_owned())
    }

    fn dictionary(&self, text: &str) -> Result<FullName> {
        Ok(FullName::new(self.database(), text))
    }

    fn is_dictionary(&self, name: &FullName) -> bool {
        name.name == "prices"
    }
}

/// The names, types and values of the one row that a query answers.
async fn answer(sql: &str) -> Result<Vec<[String; 3]>> {
    let builder = SessionStateBuilder::new().with_config(configuration());
    let context = SessionContext::new_with_state(planning(builder, Vec::new()).build());
    functions::register(&context, &WaitLimit::new(|wait| wait()))?;
    let mut state = context.state();
    let ParsedQuery { mut statement, named, .. } = parse_query(sql, 0)?;
    rewrite(&mut statement, named, &Somebody)?;
    state.mark_start_execution();
    let plan = state.statement_to_plan(Statement::Statement(Box::new(statement))).await?;
    let plan = optimise(&mut state, plan, |plan, _| Ok(plan))?.plan;
    let plan = state.query_planner().create_physical_plan(&plan, &state).await?;
    let batches = collect(plan, Arc::new((&state).into())).await?;
    let mut cells = Vec::new();
    for (field, array) in batches[0].schema().fields().iter().zip(batches[0].columns()) {
        let mut text = Vec::new();
        write_cell(&Column::new(field, array)?, 0, Style::Tab, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        cells.push([shown_name(field.name()).to_owned(), type_name(field), text]);
    }
    Ok(cells)
}

#[tokio::test]
async fn queries_are_answered() {
    let answered =
        answer("SELECT 7 / 2, 255 + 1 AS n, n = 256, currentDatabase(), toDate('2024-02-28') + 2").await;
    let expected = [
        ["divide(7, 2)", "Float64", "3.5"],
        ["n", "UInt16", "256"],
        ["equals(n, 256)", "UInt8", "1"],
        ["currentDatabase()", "String", "shop"],
        ["plus(toDate('2024-02-28'), 2)", "Date", "2024-03-01"],
    ];
    let answered: Vec<[String; 3]> = answered.unwrap();
    let answered: Vec<[&str; 3]> = answered.iter().map(|cell| [&*cell[0], &*cell[1], &*cell[2]]).collect();
    assert_eq!(answered, expected);
}

#[tokio::test]
async fn errors_are_clickhouses() {
    for (sql, code) in [
        ("SELECT nosuch(1)", 46),
        ("SELECT 1 +", 62),
        ("SELECT 'a' + 1", 43),
        ("SELECT toUInt8('abc')", 6),
        ("SELECT nosuch", 47),
    ] {
        assert_eq!(answer(sql).await.unwrap_err().code, code, "{sql}");
    }
}

#[test]
fn names_are_those_of_the_scope() {
    let ParsedQuery { mut statement, named, .. } =
        parse_query("SELECT dictGet(prices, 'v', 1) FROM t", 0).unwrap();
    let extras = rewrite(&mut statement, named, &Somebody).unwrap();
    let named = |name| Named::Object(FullName::new("shop", name));
    assert_eq!(extras.named, [named("prices"), named("t")]);
    assert!(statement.to_string().contains("'shop.prices'"), "{statement}");
}
