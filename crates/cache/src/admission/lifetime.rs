//! The time for which an object stays on flash.

/// The least share of the bytes put that counts as admitted. It bounds the lifetime.
const ADMITTED_MIN: f64 = 0.05;

/// Bytes put and admitted lately: since about as many bytes were put as flash holds.
pub(super) struct Lifetime {
    flash_bytes: u64,
    put: f64,
    admitted: f64,
}

impl Lifetime {
    pub fn new(flash_bytes: u64) -> Self {
        Self { flash_bytes, put: 0.0, admitted: 0.0 }
    }

    pub fn on_put(&mut self, bytes: u64) {
        self.put += bytes as f64;
        if self.put > self.flash_bytes as f64 {
            (self.put, self.admitted) = (self.put / 2.0, self.admitted / 2.0);
        }
    }

    pub fn on_admit(&mut self, bytes: u64) {
        self.admitted += bytes as f64;
    }

    /// The share of the bytes put that goes to flash.
    pub fn admitted(&self) -> f64 {
        let admitted = if self.put > 0.0 { self.admitted / self.put } else { 1.0 };
        admitted.clamp(ADMITTED_MIN, 1.0)
    }

    /// An object's lifetime on flash, in bytes put meanwhile.
    pub fn bytes(&self) -> u64 {
        (self.flash_bytes as f64 / self.admitted()) as u64
    }
}
