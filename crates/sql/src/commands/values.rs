//! VALUES of INSERT. A query has one type for a column, and ClickHouse reads each literal by itself as what the column
//! is: where a text and a number stand in one column, they are cast to its type.

use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement, Value};

use crate::rewrite::{call, string};
use crate::types::CLICKHOUSE_TYPE;

/// Casts where it is needed. `columns` are those that INSERT names, or else all of `schema`.
pub fn agree(statement: &mut Statement, schema: &Schema, columns: Option<&[String]>) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    let fields = schema.fields().iter();
    let names = columns.map_or_else(|| fields.map(|f| f.name().clone()).collect(), <[String]>::to_vec);
    for (place, name) in names.iter().enumerate() {
        let type_name = schema.field_with_name(name).ok().and_then(|f| f.metadata().get(CLICKHOUSE_TYPE));
        let is_there = |wanted| values.rows.iter().any(|row| row.get(place).map(kind) == Some(wanted));
        let Some(type_name) = type_name.filter(|_| is_there(Kind::Text) && is_there(Kind::Number)) else {
            continue;
        };
        for literal in values.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
            if kind(literal) != Kind::Other {
                *literal = call("CAST", vec![literal.clone(), string(type_name)]);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Other,
}

fn kind(expr: &Expr) -> Kind {
    match expr {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(_) => Kind::Text,
            Value::Number(..) => Kind::Number,
            _ => Kind::Other,
        },
        Expr::UnaryOp { expr, .. } if kind(expr) == Kind::Number => Kind::Number,
        _ => Kind::Other,
    }
}
