//! Sizes as people write them: `64MiB`, `1g`, `4096`.

use serde::Deserialize;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Size(pub u64);

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse(&text)
    }
}

/// Reads a size. Units are binary, with or without `iB`, in either case.
pub fn parse(text: &str) -> Result<Size, String> {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ if number.is_empty() || !unit.chars().all(char::is_alphabetic) => {
            return Err(
                "a size is a whole number of bytes, or one with a unit right behind it, as in 64MiB".into()
            );
        }
        _ => {
            return Err(format!(
                "{unit} is no unit of sizes; these are KiB, MiB, GiB and TiB (or K, M, G, T), powers of 1024"
            ));
        }
    };
    if number.is_empty() {
        return Err("a size begins with a whole number, as in 64MiB".into());
    }
    let too_large = || format!("{text} is larger than any disk");
    let number: u64 = number.parse().map_err(|_| too_large())?;
    number.checked_mul(1 << shift).map(Size).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use super::{Size, parse};

    #[test]
    fn sizes() {
        for (text, bytes) in
            [("0", 0), ("4096", 4096), ("2k", 2048), ("64MiB", 64 << 20), ("1G", 1 << 30), ("3tib", 3 << 40)]
        {
            assert_eq!(parse(text), Ok(Size(bytes)), "{text}");
        }
        let whole = "a size is a whole number";
        for (text, why) in [
            ("", "a size begins with"),
            ("MiB", "a size begins with"),
            ("64 MiB", whole),
            ("1.5GiB", whole),
            ("-1", whole),
            ("1MB", "MB is no unit of sizes"),
            ("99999999999TiB", "99999999999TiB is larger than any disk"),
            ("99999999999999999999", "larger than any disk"),
        ] {
            assert!(parse(text).unwrap_err().contains(why), "{text}: {:?}", parse(text));
        }
    }
}
