//! The order of UUIDs: ClickHouse compares the second eight bytes before the first.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, FixedSizeBinaryBuilder};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, Signature, Volatility,
};
use granary_dict::DataType as ClickHouseType;

use super::numbers::{rows, shaped};
use super::scalar::Scalar;
use crate::types::declared;

const NAME: &str = "uuid/order";

/// A UUID as bytes in ClickHouse's order. No query can write the function's name.
pub fn uuid_order() -> ScalarUDF {
    Scalar::udf(NAME, Signature::any(1, Volatility::Immutable), field, invoke)
}
/// Whether a field holds UUIDs.
pub fn is_uuid(field: &Field) -> bool {
    field.data_type() == &DataType::FixedSizeBinary(16)
        && declared(field).is_none_or(|declared| declared.inner() == &ClickHouseType::Uuid)
}

/// The expression to sort and compare UUIDs by.
pub fn order_of(uuid: Expr) -> Expr {
    uuid_order().call(vec![uuid])
}

fn field(args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
    let field = &args.arg_fields[0];
    Ok(Arc::new(Field::new(NAME, field.data_type().clone(), field.is_nullable())))
}

fn invoke(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let given = args.args[0].to_array(rows(&args.args, args.number_rows))?;
    let uuids = given.as_fixed_size_binary();
    let mut ordered = FixedSizeBinaryBuilder::with_capacity(uuids.len(), 16);
    for uuid in uuids {
        match uuid {
            None => ordered.append_null(),
            Some(uuid) => {
                let number = u128::from_be_bytes(uuid.try_into().expect("16 bytes"));
                ordered.append_value(number.rotate_left(64).to_be_bytes())?;
            }
        }
    }
    shaped(Arc::new(ordered.finish()), &args.args)
}
