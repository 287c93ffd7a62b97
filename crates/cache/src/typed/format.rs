//! Formats: how keys and values become bytes.

use crate::error::{CodecError, Error};
use crate::limits::ENCODING_BYTES_KEPT;
use std::cell::RefCell;

/// A format that turns values of a type into bytes. Equal keys must have equal bytes, and different keys different
/// bytes.
///
/// Implement it for your own type with [`Plain`](crate::Plain), or with your own format:
///
/// ```
/// use granary_cache::{CodecError, Decode, Encode, Plain};
///
/// struct Point(i32, i32);
///
/// impl Encode<Point> for Plain {
///     fn encode<'a>(point: &'a Point, room: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError> {
///         room.extend_from_slice(&point.0.to_le_bytes());
///         room.extend_from_slice(&point.1.to_le_bytes());
///         Ok(room)
///     }
/// }
///
/// impl Decode<Point> for Plain {
///     fn decode(bytes: &[u8]) -> Result<Point, CodecError> {
///         let (x, y) = bytes.split_at_checked(4).ok_or_else(|| CodecError::new("a point has 8 bytes"))?;
///         Ok(Point(Plain::decode(x)?, Plain::decode(y)?))
///     }
/// }
/// ```
pub trait Encode<T: ?Sized> {
    /// The bytes of a value: borrowed from it, or appended to `room`, which is empty at first.
    ///
    /// # Errors
    /// The format cannot represent this value.
    fn encode<'a>(value: &'a T, room: &'a mut Vec<u8>) -> Result<&'a [u8], CodecError>;
}

/// A format that turns bytes into values of a type.
pub trait Decode<T> {
    /// The value that [`Encode::encode`] turned into these bytes.
    ///
    /// # Errors
    /// The bytes are invalid.
    fn decode(bytes: &[u8]) -> Result<T, CodecError>;
}

thread_local! {
    /// A buffer that is reused for the next value.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Encodes a value and passes its bytes to `then`.
pub(super) fn with_bytes<C: Encode<T>, T: ?Sized, R>(
    value: &T,
    then: impl FnOnce(&[u8]) -> R,
) -> Result<R, CodecError> {
    // Taken out, for `then` may encode, too.
    let mut room = ROOM.try_with(RefCell::take).unwrap_or_default();
    room.clear();
    let result = C::encode(value, &mut room).map(then);
    if room.capacity() <= ENCODING_BYTES_KEPT {
        // At the thread's end the buffer may be gone.
        let _ = ROOM.try_with(|own| own.replace(room));
    }
    result
}

/// Encodes a key and passes its bytes to `then`.
pub(crate) fn key_bytes<C: Encode<K>, K: ?Sized, R>(
    key: &K,
    then: impl FnOnce(&[u8]) -> R,
) -> Result<R, Error> {
    with_bytes::<C, K, R>(key, then).map_err(|source| Error::Encode { what: "key", source })
}

/// The bytes of a key or value; `what` names it in errors.
pub(crate) fn to_vec<C: Encode<T>, T: ?Sized>(value: &T, what: &'static str) -> Result<Vec<u8>, Error> {
    with_bytes::<C, T, _>(value, <[u8]>::to_vec).map_err(|source| Error::Encode { what, source })
}

/// The keys that can be encoded: their places, and their bytes.
pub(crate) fn keys_to_vecs<C: Encode<K>, K: ?Sized>(keys: &[&K]) -> Vec<(usize, Vec<u8>)> {
    let encoded = keys.iter().enumerate().map(|(i, key)| Some((i, to_vec::<C, K>(key, "key").ok()?)));
    encoded.flatten().collect()
}
