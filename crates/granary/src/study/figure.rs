//! Formats figures.

use granary_lab::Samples;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Seconds: the median, and the range if there were several runs.
pub fn seconds(samples: &Samples) -> String {
    let (median, low, high) = (samples.median(), samples.min(), samples.max());
    if median.is_nan() {
        "-".to_owned()
    } else if low == high {
        short(median)
    } else {
        format!("{} ({}..{})", short(median), short(low), short(high))
    }
}

fn short(seconds: f64) -> String {
    if seconds >= 10.0 {
        format!("{seconds:.1}")
    } else if seconds >= 0.1 {
        format!("{seconds:.3}")
    } else {
        format!("{seconds:.5}")
    }
}

/// The ratio of `theirs` to `ours`.
pub fn ratio(theirs: &Samples, ours: &Samples) -> Option<f64> {
    let ratio = theirs.median() / ours.median();
    ratio.is_finite().then_some(ratio)
}

/// A ratio with its significant digits.
pub fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".to_owned(),
        Some(ratio) if ratio >= 10.0 => format!("{ratio:.0}x"),
        Some(ratio) => format!("{ratio:.1}x"),
    }
}

/// Whether a wanted ratio was reached.
pub fn reached(ratio: Option<f64>, target: Option<f64>) -> String {
    match (ratio, target) {
        (Some(ratio), Some(target)) if ratio >= target => "yes".to_owned(),
        (Some(_), Some(_)) => "no".to_owned(),
        _ => "-".to_owned(),
    }
}

/// `4096` as `4 KiB`.
pub fn bytes(n: u64) -> String {
    if n >= MIB && n.is_multiple_of(MIB) {
        format!("{} MiB", n / MIB)
    } else if n >= KIB && n.is_multiple_of(KIB) {
        format!("{} KiB", n / KIB)
    } else {
        format!("{n} B")
    }
}

/// `300000` as `300 000`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
