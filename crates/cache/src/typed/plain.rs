//! Bytes, text and numbers.

use super::format::{Decode, Encode};
use crate::error::CodecError;

/// The format that keeps bytes as they are, text as UTF-8, and numbers as their bytes, the lowest first.
///
/// As keys, numbers are equal if their bytes are: `0.0` and `-0.0` are two keys, and a NaN is found by its own bits.
#[derive(Clone, Copy, Debug)]
pub enum Plain {}

macro_rules! as_they_are {
    ($($type:ty: $as_bytes:expr;)*) => {$(
        impl Encode<$type> for Plain {
            #[inline]
            fn encode<'a>(value: &'a $type, _: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
                let as_bytes: fn(&$type) -> &[u8] = $as_bytes;
                Ok(as_bytes(value))
            }
        }
    )*};
}

as_they_are! {
    [u8]: |bytes| bytes;
    Vec<u8>: Vec::as_slice;
    Box<[u8]>: |bytes| bytes;
    str: str::as_bytes;
    String: String::as_bytes;
    Box<str>: |text| text.as_bytes();
}

impl<const N: usize> Encode<[u8; N]> for Plain {
    #[inline]
    fn encode<'a>(value: &'a [u8; N], _: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
        Ok(value)
    }
}

impl<const N: usize> Decode<[u8; N]> for Plain {
    #[inline]
    fn decode(bytes: &[u8]) -> Result<[u8; N], CodecError> {
        bytes.try_into().map_err(|_| CodecError::new(format!("{} bytes are not {N}", bytes.len())))
    }
}

impl Decode<Vec<u8>> for Plain {
    #[inline]
    fn decode(bytes: &[u8]) -> Result<Vec<u8>, CodecError> {
        Ok(bytes.to_vec())
    }
}

impl Decode<Box<[u8]>> for Plain {
    #[inline]
    fn decode(bytes: &[u8]) -> Result<Box<[u8]>, CodecError> {
        Ok(bytes.into())
    }
}

impl Decode<String> for Plain {
    #[inline]
    fn decode(bytes: &[u8]) -> Result<String, CodecError> {
        std::str::from_utf8(bytes).map(str::to_owned).map_err(CodecError::new)
    }
}

impl Decode<Box<str>> for Plain {
    #[inline]
    fn decode(bytes: &[u8]) -> Result<Box<str>, CodecError> {
        Self::decode(bytes).map(String::into_boxed_str)
    }
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Encode<$type> for Plain {
            #[inline]
            fn encode<'a>(value: &'a $type, room: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
                room.extend_from_slice(&value.to_le_bytes());
                Ok(room)
            }
        }

        impl Decode<$type> for Plain {
            #[inline]
            fn decode(bytes: &[u8]) -> Result<$type, CodecError> {
                Self::decode(bytes).map(<$type>::from_le_bytes)
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64 }
