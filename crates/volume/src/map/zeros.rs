//! Arrays of atomics that are zero.

use super::MapError;
#[cfg(not(feature = "shuttle"))]
use zerocopy::FromZeros;

fn no_memory<T>(count: u64) -> MapError {
    MapError::NoMemory { bytes: count.saturating_mul(size_of::<T>() as u64) }
}

/// Returns `count` zeros. Memory of large arrays is not touched, so the system backs it with RAM page by page.
#[cfg(not(feature = "shuttle"))]
pub(super) fn zeros<T: FromZeros>(count: u64) -> Result<Box<[T]>, MapError> {
    let elements = usize::try_from(count).map_err(|_| no_memory::<T>(count))?;
    <[T]>::new_box_zeroed_with_elems(elements).map_err(|_| no_memory::<T>(count))
}

/// Returns `count` zeros: atomics of the model checker.
#[cfg(feature = "shuttle")]
pub(super) fn zeros<T: Default>(count: u64) -> Result<Box<[T]>, MapError> {
    let elements = usize::try_from(count).map_err(|_| no_memory::<T>(count))?;
    Ok((0..elements).map(|_| T::default()).collect())
}
