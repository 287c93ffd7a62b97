//! A file's permissions, in octal as for `chmod`: `700`, `0o770`.

use serde::Deserialize;

/// Permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mode(pub u32);

impl TryFrom<String> for Mode {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse(&text)
    }
}

/// Reads permissions, in octal.
pub fn parse(text: &str) -> Result<Mode, String> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    match u32::from_str_radix(digits, 8) {
        Ok(mode) if mode <= 0o777 => Ok(Mode(mode)),
        _ => Err("permissions are three octal digits, as in 770".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Mode, parse};

    #[test]
    fn modes() {
        for (text, mode) in [("700", 0o700), ("0770", 0o770), ("0o666", 0o666), ("0", 0)] {
            assert_eq!(parse(text), Ok(Mode(mode)), "{text}");
        }
        for text in ["", "rwx", "789", "1777", "-1"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
