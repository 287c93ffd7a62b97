//! Whole numbers in a configuration file.

use std::num::NonZeroUsize;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Reads a number, which may be 0.
pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    whole(value)?.map(Some).ok_or_else(|| D::Error::custom("expected a whole number"))
}

/// Reads a number from 1.
pub fn deserialize_positive<'de, D: Deserializer<'de>>(value: D) -> Result<Option<NonZeroUsize>, D::Error> {
    let number = whole(value)?.and_then(|number| usize::try_from(number).ok());
    let number = number.and_then(NonZeroUsize::new);
    number.map(Some).ok_or_else(|| D::Error::custom("expected a whole number from 1"))
}

/// The number that a value is, or `None` if it is no whole number.
fn whole<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    let number = toml::Value::deserialize(value)?.as_integer();
    Ok(number.and_then(|number| u64::try_from(number).ok()))
}
