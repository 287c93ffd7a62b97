//! `toIPv4OrNull(x)`, `toUUIDOrDefault(x, default)` and the like: addresses and UUIDs from texts that may be invalid.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryBuilder, Scalar, StringArray, UInt32Array,
};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{cast, is_not_null};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use granary_dict::DataType as ClickHouseType;

use super::arguments::{self, check_count};
use super::default_value::default_value;
use super::numbers::{rows, shaped};
use super::uuid;
use crate::error::Error;
use crate::types::{fixed_bytes, type_name};

/// The type that a text is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Identifier {
    Ipv4,
    Ipv6,
    Uuid,
}

/// The result for an invalid text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum IdentifierFallback {
    Null,
    Zero,
    /// The second argument, or else the result of `Zero`; for NULL too.
    Default,
    Error,
}

/// The functions, with their type and their result for an invalid text.
const FUNCTIONS: [(&str, Identifier, IdentifierFallback); 11] = [
    ("IPv4StringToNum", Identifier::Ipv4, IdentifierFallback::Error),
    ("IPv6StringToNum", Identifier::Ipv6, IdentifierFallback::Error),
    ("toIPv4OrNull", Identifier::Ipv4, IdentifierFallback::Null),
    ("toIPv4OrZero", Identifier::Ipv4, IdentifierFallback::Zero),
    ("toIPv4OrDefault", Identifier::Ipv4, IdentifierFallback::Default),
    ("toIPv6OrNull", Identifier::Ipv6, IdentifierFallback::Null),
    ("toIPv6OrZero", Identifier::Ipv6, IdentifierFallback::Zero),
    ("toIPv6OrDefault", Identifier::Ipv6, IdentifierFallback::Default),
    ("toUUIDOrNull", Identifier::Uuid, IdentifierFallback::Null),
    ("toUUIDOrZero", Identifier::Uuid, IdentifierFallback::Zero),
    ("toUUIDOrDefault", Identifier::Uuid, IdentifierFallback::Default),
];

impl Identifier {
    fn data_type(self) -> ClickHouseType {
        match self {
            Identifier::Ipv4 => ClickHouseType::Ipv4,
            Identifier::Ipv6 => ClickHouseType::Ipv6,
            Identifier::Uuid => ClickHouseType::Uuid,
        }
    }

    /// The values; NULL for an invalid text.
    pub fn parse_or_null(self, texts: &ArrayRef) -> Result<ArrayRef> {
        let texts = cast(texts, &DataType::Utf8)?;
        let texts: &StringArray = texts.as_string();
        let sixteen_bytes = |parse: fn(&str) -> Option<[u8; 16]>| -> Result<ArrayRef> {
            let mut values = FixedSizeBinaryBuilder::with_capacity(texts.len(), 16);
            for text in texts {
                match text.and_then(parse) {
                    Some(bytes) => values.append_value(bytes)?,
                    None => values.append_null(),
                }
            }
            Ok(Arc::new(values.finish()))
        };
        match self {
            Identifier::Ipv4 => {
                let addresses = texts.iter().map(|text| text.and_then(ipv4).map(Ipv4Addr::to_bits));
                Ok(Arc::new(addresses.collect::<UInt32Array>()))
            }
            Identifier::Ipv6 => sixteen_bytes(|text| ipv6(text).map(|address| address.octets())),
            Identifier::Uuid => sixteen_bytes(uuid::bytes),
        }
    }
}

/// Parses an address, whose numbers may have leading zeros.
fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let mut parts = text.split('.').map(|part| {
        let is_number = (1..=16).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u8>().ok()).flatten()
    });
    let octets = [parts.next()??, parts.next()??, parts.next()??, parts.next()??];
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

fn ipv6(text: &str) -> Option<Ipv6Addr> {
    ipv4(text).map(|address| address.to_ipv6_mapped()).or_else(|| {
        match text.rsplit_once(':').filter(|(_, last)| last.contains('.')) {
            Some((before, last)) => {
                // The last two groups may be written as an address of IPv4.
                let [a, b, c, d] = ipv4(last)?.octets();
                format!("{before}:{a:x}{b:02x}:{c:x}{d:02x}").parse().ok()
            }
            None => text.parse().ok(),
        }
    })
}

/// A conversion of text to an address or a UUID.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ToIdentifier {
    name: &'static str,
    identifier: Identifier,
    otherwise: IdentifierFallback,
    signature: Signature,
}

/// All functions.
pub fn all() -> impl Iterator<Item = ToIdentifier> {
    FUNCTIONS.into_iter().map(|(name, identifier, otherwise)| ToIdentifier {
        name,
        identifier,
        otherwise,
        signature: arguments::any(Volatility::Immutable),
    })
}

impl ScalarUDFImpl for ToIdentifier {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.identifier.data_type().to_arrow())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let most = if self.otherwise == IdentifierFallback::Default { 2 } else { 1 };
        check_count(self.name(), args.arg_fields.len(), 1..=most)?;
        let field = match (self.identifier, self.otherwise) {
            // The number of an IPv4 address; no integer here is wide enough for IPv6.
            (Identifier::Ipv4, IdentifierFallback::Error) => Field::new(self.name, DataType::UInt32, false),
            _ => self.identifier.data_type().to_field(self.name),
        };
        let wanted = type_name(&field);
        let (given, default) = (&args.arg_fields[0], args.arg_fields.get(1));
        let is_text =
            given.data_type().is_string() && fixed_bytes(given).is_none() || given.data_type().is_null();
        if !is_text {
            let what = format!(
                "Illegal type {} of argument of function {}: it must be String",
                type_name(given),
                self.name
            );
            return Err(Error::illegal_type(what).into());
        }
        if let Some(default) = default
            && type_name(default) != wanted
        {
            let what =
                format!("The default of function {} must be {wanted}, not {}", self.name, type_name(default));
            return Err(Error::illegal_type(what).into());
        }
        let nullable = match self.otherwise {
            IdentifierFallback::Null => true,
            IdentifierFallback::Zero | IdentifierFallback::Error => given.is_nullable(),
            IdentifierFallback::Default => false,
        };
        if given.data_type().is_null() && self.otherwise != IdentifierFallback::Default {
            return Ok(Arc::new(Field::new(self.name, DataType::Null, true)));
        }
        Ok(Arc::new(field.with_nullable(nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = rows(&args.args, args.number_rows);
        let texts = args.args[0].to_array(rows)?;
        if args.return_field.data_type().is_null() {
            return shaped(texts, &args.args);
        }
        let parsed = self.identifier.parse_or_null(&texts)?;
        let zero = || -> Result<_> { Ok(Scalar::new(default_value(parsed.data_type())?.to_array()?)) };
        let values = match (self.otherwise, args.args.get(1)) {
            (IdentifierFallback::Null, _) => parsed,
            (IdentifierFallback::Error, _) => {
                match (0..rows).find(|row| parsed.is_null(*row) && texts.is_valid(*row)) {
                    None => parsed,
                    Some(row) => {
                        let what = format!("Invalid address in row {row} of function {}", self.name);
                        return Err(match self.identifier {
                            Identifier::Ipv4 => Error::cannot_parse_ipv4(what),
                            _ => Error::cannot_parse_ipv6(what),
                        }
                        .into());
                    }
                }
            }
            (IdentifierFallback::Default, Some(default)) => {
                zip(&is_not_null(&parsed)?, &parsed, &default.to_array(rows)?)?
            }
            (IdentifierFallback::Default, None) => zip(&is_not_null(&parsed)?, &parsed, &zero()?)?,
            (IdentifierFallback::Zero, _) => {
                let filled = zip(&is_not_null(&parsed)?, &parsed, &zero()?)?;
                match texts.logical_nulls() {
                    None => filled,
                    Some(nulls) => datafusion::arrow::compute::nullif(&filled, &(!nulls.inner()).into())?,
                }
            }
        };
        if values.len() != rows {
            return Err(DataFusionError::Internal(format!("{} answers every row", self.name)));
        }
        shaped(values, &args.args)
    }
}
