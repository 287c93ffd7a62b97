//! Memory that is wanted soon.

/// Has the processor fetch the cache line that begins `bytes`, and waits for nothing: a load would hold up what
/// comes after it as soon as the processor has looked some hundred instructions ahead.
#[inline(always)]
pub(crate) fn prefetch(bytes: &[u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has it, and a prefetch reads nothing that the program could see, whatever
        // the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    std::hint::black_box(bytes.first());
}
