//! VALUES of INSERT. A query has one type for a column, and ClickHouse reads each literal by itself as what the column
//! is: where a text, a number and a call stand in one column, they are cast to its type.

use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::{Expr, SetExpr, Statement, Value};
use granary_dict::DataType;

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
        let kinds = [Kind::Text, Kind::Number, Kind::Other].into_iter().filter(|kind| is_there(*kind));
        let data_type = type_name.and_then(|name| DataType::parse_column(name).ok());
        let Some(data_type) = data_type.filter(|_| kinds.count() > 1) else { continue };
        let type_name = data_type.inner().to_string();
        for value in values.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
            *value = call("CAST", vec![value.clone(), string(&type_name)]);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    /// It is of any type.
    Null,
    /// A call, an array and the like.
    Other,
}

fn kind(expr: &Expr) -> Kind {
    match expr {
        Expr::Value(value) => match value.value {
            Value::SingleQuotedString(_) => Kind::Text,
            Value::Number(..) => Kind::Number,
            Value::Null => Kind::Null,
            _ => Kind::Other,
        },
        Expr::UnaryOp { expr, .. } if kind(expr) == Kind::Number => Kind::Number,
        _ => Kind::Other,
    }
}
