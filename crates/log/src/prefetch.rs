//! Prefetching of cache lines into the processor's cache.

/// Has the processor fetch the cache line that begins `bytes`, and waits for nothing: a load would hold up what
/// comes after it as soon as the processor has looked some hundred instructions ahead.
#[inline(always)]
pub fn prefetch(bytes: &[u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    prefetch_line(bytes.as_ptr());
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::hint::black_box(bytes.first());
}

/// Has the processor fetch the cache line in which a value begins, and waits for nothing.
#[inline(always)]
pub fn prefetch_value<T: Copy>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    prefetch_line(std::ptr::from_ref(value).cast());
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::hint::black_box(*value);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch_line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: every x86-64 processor has it, and a prefetch reads nothing that the program could see, whatever
    // the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}
