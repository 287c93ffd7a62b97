//! What the allocator says of itself: the one place with unsafe code here.

/// Bytes that it has given out, and bytes that it keeps for later; zeros where the allocator is not glibc's.
#[cfg(target_env = "gnu")]
#[expect(unsafe_code, reason = "nobody else says what glibc keeps")]
pub fn sizes() -> (u64, u64) {
    // SAFETY: it takes no arguments, and locks what it looks at.
    let info = unsafe { libc::mallinfo2() };
    ((info.uordblks + info.hblkhd) as u64, info.fordblks as u64)
}

/// See above.
#[cfg(not(target_env = "gnu"))]
pub fn sizes() -> (u64, u64) {
    (0, 0)
}
