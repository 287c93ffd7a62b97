//! The parameters of a URL.

use std::collections::HashMap;

use http::Uri;

/// Values, by name.
pub type Parameters = HashMap<String, String>;

/// All parameters. Of a repeated name the last one counts.
///
/// # Errors
/// The parameter that cannot be read, without its value, which may be a password.
pub fn parameters(uri: &Uri) -> Result<Parameters, String> {
    let parts = uri.query().unwrap_or_default().split('&').filter(|part| !part.is_empty());
    let parameters = parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let name = decoded(name).map_err(|why| format!("A name in the URL cannot be read: {why}"))?;
        match decoded(value) {
            Ok(value) => Ok((name, value)),
            Err(why) => Err(format!("The value of {name} in the URL cannot be read: {why}")),
        }
    });
    parameters.collect()
}

fn decoded(text: &str) -> Result<String, &'static str> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(
                        "two hexadecimal digits must follow a percent sign; it is itself written %25",
                    );
                };
                (high * 16 + low) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8")
}

/// Encodes a name as a part of a URL's path.
pub fn path_part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => part.push(byte.into()),
            _ => part.extend(['%', digit(byte >> 4), digit(byte & 0xf)]),
        }
    }
    part
}

fn digit(of: u8) -> char {
    char::from_digit(of.into(), 16).unwrap_or_default().to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(path_part("shop.users_1-~"), "shop.users_1-~");
        assert_eq!(path_part("a?b/c %é'+"), "a%3Fb%2Fc%20%25%C3%A9%27%2B");
    }

    fn read(query: &str) -> Result<Vec<(String, String)>, String> {
        let uri = format!("/?{query}").parse().unwrap();
        let mut all: Vec<_> = parameters(&uri)?.into_iter().collect();
        all.sort();
        Ok(all)
    }

    #[test]
    fn names_and_values_are_decoded() {
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        for (query, expected) in [
            ("", &[][..]),
            ("a=1&b=2", &[("a", "1"), ("b", "2")]),
            ("&a=1&&b", &[("a", "1"), ("b", "")]),
            ("a=1&a=2", &[("a", "2")]),
            ("a=x=y", &[("a", "x=y")]),
            ("q=SELECT+1%2B1%20%5c", &[("q", "SELECT 1+1 \\")]),
            ("%C3%A9=%e2%82%ac%00", &[("\u{e9}", "\u{20ac}\0")]),
        ] {
            assert_eq!(read(query).unwrap(), pairs(expected), "{query}");
        }
        assert_eq!(parameters(&Uri::from_static("/")).unwrap(), Parameters::new());
    }

    #[test]
    fn what_is_no_text_is_refused() {
        for query in ["param_x=%FF", "a=1&b=%C3", "%80=1", "x=%ED%A0%80"] {
            assert!(read(query).unwrap_err().ends_with("it is not UTF-8"), "{query}");
        }
        for query in ["a=%", "a=%4", "a=%zz", "a=%4%41", "a=%+1", "%g0=1"] {
            assert!(read(query).unwrap_err().contains("%25"), "{query}");
        }
        let told = read("password=secret%FF").unwrap_err();
        assert!(told.contains("password") && !told.contains("secret"), "{told}");
    }
}
