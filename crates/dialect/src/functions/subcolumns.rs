//! `column.name`: an element of a tuple, or ClickHouse's subcolumns of maps and arrays.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, Result, TableReference};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{Expr, ScalarUDF, lit};

use super::length::{Length, LengthFunction};
use super::map::{MapAction, MapFunction};
use super::tuple_element::TupleElement;

/// Plans them before DataFusion does, which returns NULL for a map's missing key.
#[derive(Debug)]
pub struct Subcolumns;

impl ExprPlanner for Subcolumns {
    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        if leads_through_tuples(field.data_type(), nested_names) {
            return Ok(PlannerResult::Original(Vec::new()));
        }
        let column = Expr::Column(Column::from((qualifier, field)));
        let function = match (field.data_type(), nested_names) {
            (DataType::Map(..), [name]) if name == "keys" => MapFunction::new(MapAction::Keys).into(),
            (DataType::Map(..), [name]) if name == "values" => MapFunction::new(MapAction::Values).into(),
            (DataType::Map(..) | DataType::List(_), [name]) if name == "size0" => {
                ScalarUDF::from(Length::new(LengthFunction::Length))
            }
            // An error, which DataFusion would not accept from here.
            _ => {
                let element = |tuple: Expr, name: &String| {
                    ScalarUDF::from(TupleElement::default()).call(vec![tuple, lit(name.as_str())])
                };
                return Ok(PlannerResult::Planned(nested_names.iter().fold(column, element)));
            }
        };
        Ok(PlannerResult::Planned(function.call(vec![column])))
    }
}

/// Whether the names lead from a tuple to an element, which may be a tuple in turn.
fn leads_through_tuples(data_type: &DataType, names: &[String]) -> bool {
    match (data_type, names) {
        (_, []) => true,
        (DataType::Struct(elements), [first, others @ ..]) => elements
            .iter()
            .find(|element| element.name() == first)
            .is_none_or(|element| leads_through_tuples(element.data_type(), others)),
        _ => false,
    }
}
