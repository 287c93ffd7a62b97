//! Types that implement serde's traits.

use super::format::{Decode, Encode};
use crate::error::CodecError;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The format of the crate [`postcard`](https://docs.rs/postcard), whose bytes are specified: short, without names of
/// fields, for all types that implement serde's `Serialize` and `Deserialize`.
///
/// The bytes do not describe themselves. So serde's attributes that leave fields out (`skip_serializing_if`) or
/// distinguish variants by their content (`untagged`, `tag`) do not work: a wrong value may be read, or none.
///
/// Equal keys must be serialized alike: a `HashMap` as a key might not be found again.
#[derive(Clone, Copy, Debug)]
pub enum Postcard {}

impl<T: Serialize + ?Sized> Encode<T> for Postcard {
    fn encode<'a>(value: &'a T, room: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
        *room = postcard::to_extend(value, std::mem::take(room)).map_err(CodecError::new)?;
        Ok(room)
    }
}

impl<T: DeserializeOwned> Decode<T> for Postcard {
    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        match postcard::take_from_bytes(bytes).map_err(CodecError::new)? {
            (value, []) => Ok(value),
            (_, rest) => Err(CodecError::new(format!("{} bytes are left over", rest.len()))),
        }
    }
}
