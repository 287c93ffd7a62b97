//! Processor time that the process took, from `/proc`.

use std::fs;

/// Microseconds of processor time: in user mode, and in the kernel. `None`: `/proc` does not tell.
pub fn processor_time_us() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    parse(&text, rustix::param::clock_ticks_per_second())
}

/// Parses `/proc/self/stat`. The name of the process may contain anything and ends with the last bracket.
fn parse(text: &str, ticks_per_second: u64) -> Option<(u64, u64)> {
    let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut next = || Some(fields.next()?.parse::<u64>().ok()? * (1_000_000 / ticks_per_second));
    Some((next()?, next()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_fields_after_the_name() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 250 31 0 0 20 0 5 0 1 1 1 1";
        assert_eq!(super::parse(text, 100), Some((2_500_000, 310_000)));
        assert!(super::processor_time_us().is_some());
    }
}
