//! The budget for large buffers of all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that can be taken and given back.
#[derive(Debug)]
pub struct Budget {
    left: AtomicUsize,
}

impl Budget {
    /// A budget of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes) }
    }
}

/// The bytes that one connection has taken.
#[derive(Debug)]
pub(crate) struct Lease {
    budget: Arc<Budget>,
    held: usize,
}

impl Lease {
    pub fn new(budget: Arc<Budget>) -> Self {
        Self { budget, held: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Takes bytes until at least `bytes` are held. `false`: not enough are left.
    pub fn ensure(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.held).filter(|more| *more > 0) else { return true };
        let take = |left: usize| left.checked_sub(more);
        let taken = self.budget.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok();
        self.held += if taken { more } else { 0 };
        taken
    }

    /// Gives back held bytes beyond `bytes`.
    pub fn shrink(&mut self, bytes: usize) {
        let less = self.held.saturating_sub(bytes);
        self.budget.left.fetch_add(less, Ordering::Relaxed);
        self.held -= less;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back() {
        let budget = Arc::new(Budget::new(100));
        let (mut one, mut two) = (Lease::new(Arc::clone(&budget)), Lease::new(Arc::clone(&budget)));
        assert!(one.ensure(60) && one.ensure(50) && two.ensure(40));
        assert!(!two.ensure(41), "nothing is left");
        one.shrink(59);
        assert!(two.ensure(41) && !one.ensure(60));
        drop(one);
        assert!(two.ensure(100));
        drop(two);
        assert_eq!(budget.left.load(Ordering::Relaxed), 100);
    }
}
