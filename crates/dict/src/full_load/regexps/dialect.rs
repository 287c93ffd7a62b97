//! Regular expressions as ClickHouse reads them (RE2's), written as the library here reads them.
//!
//! The two differ in what `\d`, `\w`, `\s` and `\b` are (ASCII in RE2), in what must be escaped (in RE2, in a class
//! only `]` and the backslash, and no brace that begins no repetition), in `\Q..\E`, `\C` and octal numbers.

use std::fmt::Write;

/// Members of classes, as written in brackets.
const DIGITS: &str = "0-9";
const WORDS: &str = "0-9A-Za-z_";
const SPACES: &str = r"\t\n\x0C\r\x20";

/// The expression in the library's notation. What both notations refuse may be left for the library to refuse.
///
/// # Errors
/// What is wrong with the expression.
pub fn translated(regexp: &str) -> Result<String, String> {
    let mut out = String::with_capacity(regexp.len() + 16);
    let mut rest = regexp;
    while let Some(first) = rest.chars().next() {
        rest = match first {
            '\\' => escape(&rest[1..], &mut out)?,
            '[' => class(&rest[1..], &mut out)?,
            '(' => {
                out.push('(');
                group(&rest[1..])?;
                &rest[1..]
            }
            '{' if !is_repetition(rest) => {
                out.push_str(r"\{");
                &rest[1..]
            }
            _ => {
                out.push(first);
                &rest[first.len_utf8()..]
            }
        };
    }
    Ok(out)
}

/// `{2}`, `{2,}` or `{2,3}`; any other brace stands for itself.
fn is_repetition(rest: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let least = digits(&rest[1..]);
    let behind = &rest[1 + least..];
    let most = behind.strip_prefix(',').map(|most| &most[digits(most)..]);
    least > 0 && (behind.starts_with('}') || most.is_some_and(|behind| behind.starts_with('}')))
}

/// Refuses flags that are not RE2's: the library has more.
fn group(rest: &str) -> Result<(), String> {
    let Some(flags) = rest.strip_prefix('?') else { return Ok(()) };
    let end = flags.find([':', ')', '<']).unwrap_or(flags.len());
    match &flags[..end] {
        flags if flags.bytes().all(|flag| b"imsU-".contains(&flag)) => Ok(()),
        "P" => Ok(()),
        flags => Err(format!("there is no (?{flags}")),
    }
}

/// Translates what follows a backslash outside of classes; returns the rest.
fn escape<'r>(rest: &'r str, out: &mut String) -> Result<&'r str, String> {
    let Some(first) = rest.chars().next() else { return Err("it ends with a backslash".into()) };
    let behind = &rest[first.len_utf8()..];
    match first {
        'Q' => {
            let (quoted, behind) = behind.split_once(r"\E").unwrap_or((behind, ""));
            out.push_str(&regex_syntax::escape(quoted));
            return Ok(behind);
        }
        'C' => out.push_str("(?s-u:.)"),
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        'A' | 'z' => out.extend(['\\', first]),
        'p' | 'P' => return property(first, behind, out),
        _ => match named_class(first) {
            Some((negation, inside)) => write!(out, "[{negation}{inside}]").expect("a String takes it"),
            None => {
                let (character, behind) = character(first, behind)?;
                push(character, out);
                return Ok(behind);
            }
        },
    }
    Ok(behind)
}

/// The class that a backslash and this letter stand for.
fn named_class(letter: char) -> Option<(&'static str, &'static str)> {
    Some(match letter {
        'd' => ("", DIGITS),
        'D' => ("^", DIGITS),
        'w' => ("", WORDS),
        'W' => ("^", WORDS),
        's' => ("", SPACES),
        'S' => ("^", SPACES),
        _ => return None,
    })
}

/// `\pN`, `\p{Greek}`, `\p{^Greek}`, `\PN`.
fn property<'r>(letter: char, rest: &'r str, out: &mut String) -> Result<&'r str, String> {
    let cut_off = || "a property of characters is cut off".to_string();
    let (name, behind) = match rest.strip_prefix('{') {
        Some(inside) => inside.split_once('}').ok_or_else(cut_off)?,
        None => rest.split_at(rest.chars().next().ok_or_else(cut_off)?.len_utf8()),
    };
    let (is_negated, name) = match name.strip_prefix('^') {
        Some(name) => (letter == 'p', name),
        None => (letter == 'P', name),
    };
    write!(out, r"\{}{{{name}}}", if is_negated { 'P' } else { 'p' }).expect("a String takes it");
    Ok(behind)
}

/// The one character that an escape stands for.
fn character(first: char, behind: &str) -> Result<(char, &str), String> {
    let unknown = || format!(r"there is no \{first}");
    let number = |digits: &str, base| {
        // The library's own reading of numbers takes a sign, too.
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        are_digits.then(|| u32::from_str_radix(digits, base).ok())?.and_then(char::from_u32)
    };
    Ok(match first {
        'a' => ('\x07', behind),
        'f' => ('\x0C', behind),
        'n' => ('\n', behind),
        'r' => ('\r', behind),
        't' => ('\t', behind),
        'v' => ('\x0B', behind),
        'x' => {
            let (digits, behind) = match behind.strip_prefix('{') {
                Some(inside) => inside.split_once('}').ok_or_else(unknown)?,
                None => behind.split_at_checked(2).ok_or_else(unknown)?,
            };
            (number(digits, 16).ok_or_else(unknown)?, behind)
        }
        '0'..='7' => {
            let is_octal = |byte: &u8| (b'0'..=b'7').contains(byte);
            let more = behind.bytes().take(2).take_while(is_octal).count();
            if first != '0' && more == 0 {
                return Err(format!(r"\{first} would refer back to a group"));
            }
            let digits = format!("{first}{}", &behind[..more]);
            (number(&digits, 8).ok_or_else(unknown)?, &behind[more..])
        }
        _ if first.is_ascii() && !first.is_ascii_alphanumeric() => (first, behind),
        _ => return Err(unknown()),
    })
}

/// Translates what follows `[`; returns what follows its `]`.
fn class<'r>(rest: &'r str, out: &mut String) -> Result<&'r str, String> {
    out.push('[');
    let mut rest = rest;
    if let Some(behind) = rest.strip_prefix('^') {
        out.push('^');
        rest = behind;
    }
    let mut is_first = true;
    loop {
        if let Some(behind) = rest.strip_prefix(']').filter(|_| !is_first) {
            out.push(']');
            return Ok(behind);
        }
        is_first = false;
        rest = item(rest, out)?;
    }
}

/// One item of a class: a class with a name, a property, a range, a character.
fn item<'r>(rest: &'r str, out: &mut String) -> Result<&'r str, String> {
    if let Some(name) = rest.strip_prefix("[:") {
        let letters = name.strip_prefix('^').unwrap_or(name);
        let behind = letters.trim_start_matches(|c: char| c.is_ascii_lowercase());
        if let Some(behind) = behind.strip_prefix(":]") {
            out.push_str(&rest[..rest.len() - behind.len()]);
            return Ok(behind);
        }
    }
    let mut letters = rest.chars();
    if let (Some('\\'), Some(letter)) = (letters.next(), letters.next()) {
        match (letter, named_class(letter)) {
            ('p' | 'P', _) => return property(letter, letters.as_str(), out),
            (_, Some(("", inside))) => {
                out.push_str(inside);
                return Ok(letters.as_str());
            }
            (_, Some((_, inside))) => {
                write!(out, "[^{inside}]").expect("a String takes it");
                return Ok(letters.as_str());
            }
            _ => {}
        }
    }
    let (low, mut behind) = class_character(rest)?;
    push(low, out);
    // A dash before the bracket stands for itself.
    if let Some(high) = behind.strip_prefix('-').filter(|high| !high.is_empty() && !high.starts_with(']')) {
        let (high, behind_high) = class_character(high)?;
        out.push('-');
        push(high, out);
        behind = behind_high;
    }
    Ok(behind)
}

fn class_character(rest: &str) -> Result<(char, &str), String> {
    let mut letters = rest.chars();
    match letters.next() {
        None => Err("a class has no end".into()),
        Some('\\') => match letters.next() {
            None => Err("it ends with a backslash".into()),
            Some(letter) => character(letter, letters.as_str()),
        },
        Some(other) => Ok((other, letters.as_str())),
    }
}

/// A character that stands for itself, in classes and outside.
fn push(character: char, out: &mut String) {
    match character.is_ascii_alphanumeric() {
        true => out.push(character),
        false => write!(out, r"\x{{{:X}}}", u32::from(character)).expect("a String takes it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_the_same_in_both_stays() {
        for same in ["", "abc", "a.b*c+?d{2,3}", "(?i:x)|(?P<name>y)$", "^é[^A-Za-z]", "a{1}{2,}", "(?:)"] {
            assert_eq!(translated(same).unwrap(), same);
        }
    }

    #[test]
    fn what_differs_is_written_in_the_other_notation() {
        for (re2, ours) in [
            (r"\d\D", "[0-9][^0-9]"),
            (r"\w+\W", "[0-9A-Za-z_]+[^0-9A-Za-z_]"),
            (r"\bx\B", r"(?-u:\b)x(?-u:\B)"),
            (r"\/\-\_\<", r"\x{2F}\x{2D}\x{5F}\x{3C}"),
            (r"\Qa.b*\E+\Q[", r"a\.b\*+\["),
            (r"{x}a{,2}b{", r"\{x}a\{,2}b\{"),
            (r"\b{start}", r"(?-u:\b)\{start}"),
            (r"\pN\p{Greek}\p{^Greek}\P{^Lu}", r"\p{N}\p{Greek}\P{Greek}\p{Lu}"),
            (r"\101\0\x41\x{e9}\n", r"A\x{0}A\x{E9}\x{A}"),
            ("[[a&&b~~]", r"[\x{5B}a\x{26}\x{26}b\x{7E}\x{7E}]"),
            ("[--/]", r"[\x{2D}-\x{2F}]"),
            ("[]a]", r"[\x{5D}a]"),
            ("[^]a-]", r"[^\x{5D}a\x{2D}]"),
            (r"[\d.-]", r"[0-9\x{2E}\x{2D}]"),
            (r"[\W\]\-[:alpha:][:^digit:]]", r"[[^0-9A-Za-z_]\x{5D}\x{2D}[:alpha:][:^digit:]]"),
            (r"[\pL\n-\x20]", r"[\p{L}\x{A}-\x{20}]"),
            ("[[:x]", r"[\x{5B}\x{3A}x]"),
            ("[[:x]foo[y:]]", r"[\x{5B}\x{3A}x]foo[y\x{3A}]]"),
        ] {
            assert_eq!(translated(re2).unwrap(), ours, "{re2}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for wrong in [
            r"\",
            r"\1",
            r"\9",
            r"\y",
            r"\é",
            "[",
            "[]",
            "[a",
            r"[\",
            r"[a-\d]",
            r"\x{110000}",
            r"\p{L",
            r"\xé",
            r"\x+4",
            r"\x{+41}",
            "(?x) a",
            "(?-u:a)",
            "a(?R)",
        ] {
            assert!(translated(wrong).is_err(), "{wrong}");
        }
    }
}
