//! `intHash64` and `intHash32`, bit for bit ClickHouse's.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dict::murmur3_finalizer;

use super::arguments::{self, check_count};
use super::numbers::{array_bits, from_bits, rows, shaped};
use crate::error::Error;
use crate::types::plain_name;

/// The salts that ClickHouse's functions add to its hash tables' own functions.
const SALT_64: u64 = 0x4CF2_D2BA_AE6D_A887;
const SALT_32: u64 = 0x75D9_543D_E018_BF45;

/// ClickHouse's `intHash64`: MurmurHash3's finalizer over a salted key.
pub fn int_hash_64(key: u64) -> u64 {
    murmur3_finalizer(key ^ SALT_64)
}

/// ClickHouse's `intHash32`: Thomas Wang's 64-to-32-bit hash with rotations, over a salted key.
fn int_hash_32(key: u64) -> u32 {
    let mut x = key ^ SALT_32;
    x = (!x).wrapping_add(x << 18);
    x ^= x.rotate_right(31);
    x = x.wrapping_mul(21);
    x ^= x.rotate_right(11);
    x = x.wrapping_add(x << 6);
    x ^= x.rotate_right(22);
    x as u32
}

/// The width of the hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HashWidth {
    Bits32,
    Bits64,
}

/// `intHash64` or `intHash32`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct IntHash {
    width: HashWidth,
    signature: Signature,
}

impl IntHash {
    pub fn new(width: HashWidth) -> Self {
        Self { width, signature: arguments::any(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for IntHash {
    fn name(&self) -> &str {
        match self.width {
            HashWidth::Bits32 => "intHash32",
            HashWidth::Bits64 => "intHash64",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match self.width {
            _ if arguments[0].is_null() => DataType::Null,
            HashWidth::Bits32 => DataType::UInt32,
            HashWidth::Bits64 => DataType::UInt64,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        check_count(self.name(), args.arg_fields.len(), 1..=1)?;
        let nullable = args.arg_fields[0].is_nullable();
        let data_type = self.return_type(&[args.arg_fields[0].data_type().clone()])?;
        Ok(Arc::new(Field::new(self.name(), data_type, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = args.args[0].to_array(rows(&args.args, args.number_rows))?;
        if array.data_type().is_null() {
            return shaped(array, &args.args);
        }
        let Some(keys) = array_bits(&array) else {
            let (given, name) = (plain_name(array.data_type()), self.name());
            return Err(
                Error::illegal_type(format!("Illegal type {given} of argument of function {name}")).into()
            );
        };
        let hashes: Vec<u64> = match self.width {
            HashWidth::Bits32 => keys.iter().map(|&key| u64::from(int_hash_32(key))).collect(),
            HashWidth::Bits64 => keys.iter().map(|&key| int_hash_64(key)).collect(),
        };
        let hashes = from_bits(hashes.into(), array.logical_nulls(), args.return_field.data_type())
            .ok_or_else(|| DataFusionError::Internal("a hash is an integer".into()))?;
        shaped(hashes, &args.args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values printed by ClickHouse 26.9.2.1.
    #[test]
    fn hashes_are_those_of_clickhouse() {
        assert_eq!(int_hash_64(1), 10577349846663553072);
        assert_eq!(int_hash_64(123), 12585326385145454095);
        assert_eq!(int_hash_32(1), 1343103100);
    }
}
