//! The arguments in the parentheses of a type: types with commas between them, with or without names in front.

use super::composite::is_plain;

/// The arguments, without the blanks around them; none for an empty text.
pub(super) fn split(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (byte, quote) {
            // An escaped character ends nothing.
            (b'\\', Some(_)) => drop(bytes.next()),
            (_, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => {}
            (b'\'' | b'`' | b'"', None) => quote = Some(byte),
            (b'(', None) => depth += 1,
            (b')', None) => depth = depth.saturating_sub(1),
            (b',', None) if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The name in front of a type, and the type: of `a UInt8` and `` `a b` UInt8 ``, but not of `UInt8` and
/// `Decimal (9, 2)`.
pub(super) fn named(text: &str) -> Option<(String, &str)> {
    if let Some(quote @ ('`' | '"')) = text.chars().next() {
        let (mut name, mut rest) = (String::new(), text[1..].char_indices());
        while let Some((at, letter)) = rest.next() {
            match letter {
                '\\' => name.push(rest.next()?.1),
                _ if letter == quote => return Some((name, text[at + 2..].trim_start())),
                _ => name.push(letter),
            }
        }
        return None;
    }
    let (name, data_type) = text.split_once(char::is_whitespace)?;
    let data_type = data_type.trim_start();
    let is_type = data_type.starts_with(|first: char| first.is_ascii_alphabetic());
    (is_plain(name) && is_type).then(|| (name.to_string(), data_type))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_divide_nothing() {
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split(" UInt8 "), ["UInt8"]);
        assert_eq!(split("UInt8,"), ["UInt8", ""]);
        assert_eq!(
            split("Decimal(9, 2), DateTime('a,b)'), `a,\\`)` Map(A, B)"),
            ["Decimal(9, 2)", "DateTime('a,b)')", "`a,\\`)` Map(A, B)"]
        );
        assert_eq!(split("'é\\"), ["'é\\"]);
    }

    #[test]
    fn names_stand_in_front_of_types() {
        let found = |text| named(text).map(|(name, data_type)| format!("{name}|{data_type}"));
        assert_eq!(found("a  UInt8").as_deref(), Some("a|UInt8"));
        assert_eq!(found("a Map(A, B)").as_deref(), Some("a|Map(A, B)"));
        assert_eq!(found("`a \\` b`UInt8").as_deref(), Some("a ` b|UInt8"));
        for text in ["UInt8", "Decimal (9, 2)", "Map(A, B)", "DateTime( 'UTC')", "`a", "1a UInt8", "`a\\"] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
