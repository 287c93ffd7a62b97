//! ClickHouse's tokens: sqlparser's, with the strings and numbers that it reads differently read anew.

use sqlparser::dialect::ClickHouseDialect;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer};
use std::borrow::Cow;
use std::iter::Peekable;

/// Cuts a text into tokens, blanks and comments among them.
///
/// # Errors
/// A readable message for a string or comment without an end, or a text that makes no sense.
pub fn tokenize(sql: &str) -> Result<Vec<TokenWithSpan>, String> {
    let sql = prepared(sql);
    let mut read = Tokenizer::new(&ClickHouseDialect {}, &sql)
        .with_unescape(false)
        .tokenize_with_location()
        .map_err(|error| error.to_string())?
        .into_iter()
        .peekable();
    let mut tokens: Vec<TokenWithSpan> = Vec::new();
    while let Some(mut here) = read.next() {
        here.token = match here.token {
            Token::SingleQuotedString(raw) => Token::SingleQuotedString(unescape(&raw, '\'')?),
            Token::Word(mut word) => {
                if let Some(quote) = word.quote_style {
                    word.value = unescape(&word.value, quote)?;
                }
                Token::Word(word)
            }
            // X'1F' gives the same token, and has quotes.
            Token::HexStringLiteral(digits) => {
                let end = here.span.start.column + digits.chars().count() as u64 + 2;
                let number = (here.span.start.line, end) == (here.span.end.line, here.span.end.column);
                match number.then(|| number_of(&digits, 16)).flatten() {
                    Some(number) => number,
                    None => Token::HexStringLiteral(digits),
                }
            }
            Token::Number(zero, false) if zero == "0" => match read.peek() {
                Some(next) if next.span.start == here.span.end => match binary(&next.token) {
                    Some(number) => {
                        here.span.end = next.span.end;
                        read.next();
                        number
                    }
                    None => Token::Number(zero, false),
                },
                _ => name_of(&zero, &mut here.span, &mut read).unwrap_or(Token::Number(zero, false)),
            },
            // `01_x` is a name that begins with a number.
            Token::Number(digits, false) => {
                name_of(&digits, &mut here.span, &mut read).unwrap_or(Token::Number(digits, false))
            }
            token => token,
        };
        tokens.push(here);
    }
    Ok(tokens)
}

/// The text with `# ` and `#!`, which begin comments in ClickHouse, as `--`, and quotes that a backslash keeps in a
/// name as doubled ones: all positions stay.
fn prepared(sql: &str) -> Cow<'_, str> {
    let begins = |bytes: &[u8]| matches!(bytes, [b'#', b' ' | b'!', ..]);
    let is_kept = |bytes: &[u8]| matches!(bytes, [b'\\', b'`' | b'"']);
    if !sql.as_bytes().windows(2).any(|two| begins(two) || is_kept(two)) {
        return Cow::Borrowed(sql);
    }
    let mut bytes = sql.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        if begins(&bytes[at..]) {
            bytes[at..at + 2].copy_from_slice(b"--");
        }
        let past = |end: &[u8], from: usize| {
            let found =
                bytes.get(from..).and_then(|rest| rest.windows(end.len()).position(|part| part == end));
            found.map_or(bytes.len(), |place| from + place + end.len())
        };
        at = match &bytes[at..] {
            [b'-', b'-', ..] => past(b"\n", at),
            [b'/', b'*', ..] => past(b"*/", at + 2),
            &[quote @ (b'\'' | b'"' | b'`'), ..] => {
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    if bytes[at] == b'\\' {
                        if quote != b'\'' && bytes.get(at + 1) == Some(&quote) {
                            bytes[at] = quote;
                        }
                        at += 1;
                    }
                    at += 1;
                }
                at + 1
            }
            _ => at + 1,
        };
    }
    String::from_utf8(bytes).map_or(Cow::Borrowed(sql), Cow::Owned)
}

/// The name that digits and the word right after them make.
fn name_of(
    digits: &str,
    span: &mut Span,
    rest: &mut Peekable<impl Iterator<Item = TokenWithSpan>>,
) -> Option<Token> {
    let next = rest.next_if(|next| {
        let is_name = matches!(&next.token, Token::Word(word) if word.quote_style.is_none());
        is_name && next.span.start == span.end && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    })?;
    span.end = next.span.end;
    match next.token {
        Token::Word(word) => Some(Token::make_word(&format!("{digits}{}", word.value), None)),
        _ => None,
    }
}

/// `b101`, the rest of `0b101`.
fn binary(token: &Token) -> Option<Token> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => number_of(word.value.strip_prefix('b')?, 2),
        _ => None,
    }
}

fn number_of(digits: &str, radix: u32) -> Option<Token> {
    let number = u128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    Some(Token::Number(number.to_string(), false))
}

/// ClickHouse's escapes. A backslash before anything else stays: `'\d+'` is three characters, and LIKE gets to
/// see `\_` and `\%`. Names in quotes have the same.
fn unescape(raw: &str, quote: char) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.chars();
    while let Some(c) = rest.next() {
        let escaped = match c {
            c if c == quote => {
                // The tokenizer ends a string at one quote: this is the first of two.
                rest.next();
                quote
            }
            '\\' => match rest.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('r') => '\r',
                Some('n') => '\n',
                Some('t') => '\t',
                Some('0') => '\0',
                Some('a') => '\u{7}',
                Some('v') => '\u{b}',
                Some('e') => '\u{1b}',
                Some('N') => continue,
                Some('x') => {
                    let digits: Option<Vec<u32>> = (0..2).map(|_| rest.next()?.to_digit(16)).collect();
                    let Some(digits) = digits else {
                        return Err("\\x in a string must be followed by two hexadecimal digits".into());
                    };
                    bytes.push((digits[0] * 16 + digits[1]) as u8);
                    continue;
                }
                Some(plain @ ('\\' | '\'' | '"' | '`' | '/' | '=' | '\0'..='\x1f')) => plain,
                Some(other) => {
                    bytes.push(b'\\');
                    other
                }
                None => '\\',
            },
            c => c,
        };
        bytes.extend_from_slice(escaped.encode_utf8(&mut [0; 4]).as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| "A string must be valid UTF-8, its \\x escapes too".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(sql: &str) -> Vec<Token> {
        let tokens = tokenize(sql).unwrap().into_iter().map(|token| token.token);
        tokens.filter(|token| !matches!(token, Token::Whitespace(_))).collect()
    }

    #[test]
    fn strings_are_read_as_clickhouse_reads_them() {
        for (sql, read) in [
            (r"'\d+\w'", r"\d+\w"),
            (r"'a\_b\%'", r"a\_b\%"),
            (r"'\b\f\r\n\t\0\a\v\e'", "\u{8}\u{c}\r\n\t\0\u{7}\u{b}\u{1b}"),
            (r"'\x41\xc3\xA9'", "Aé"),
            (r"'a\Nb'", "ab"),
            (r#"'\\ \' \" \` \/ \='"#, "\\ ' \" ` / ="),
            (r"'it''s'", "it's"),
            ("'a\\\tb\\\nc'", "a\tb\nc"),
            (r"'\u0041'", r"\u0041"),
            (r"''", ""),
            (r"''''", "'"),
        ] {
            assert_eq!(tokens(sql), [Token::SingleQuotedString(read.into())], "{sql}");
        }
        for sql in [r"'\x4'", r"'\xe9'", r"'a\'"] {
            tokenize(sql).unwrap_err();
        }
    }

    #[test]
    fn numbers_of_other_bases() {
        let number = |text: &str| Token::Number(text.into(), false);
        assert_eq!(tokens("0x1F"), [number("31")]);
        assert_eq!(tokens("0b11"), [number("3")]);
        assert_eq!(tokens("0xffffffffffffffff"), [number("18446744073709551615")]);
        assert_eq!(tokens("X'1F'"), [Token::HexStringLiteral("1F".into())]);
        assert_eq!(tokens("0 b1").len(), 2);
        assert_eq!(tokens("0b12").len(), 2);
    }

    #[test]
    fn doubled_quotes_in_names() {
        assert_eq!(tokens("`a``b`"), [Token::make_word("a`b", Some('`'))]);
        assert_eq!(tokens("\"a\"\"b\""), [Token::make_word("a\"b", Some('"'))]);
    }

    #[test]
    fn names_have_the_escapes_of_strings() {
        for (sql, name, quote) in [
            (r"`x\`y`", "x`y", '`'),
            (r"`a\\b`", r"a\b", '`'),
            (r"`a\\```", r"a\`", '`'),
            (r"`a\d\n`", "a\\d\n", '`'),
            (r#""x\"y'""#, "x\"y'", '"'),
            (r#""it's\`""#, "it's`", '"'),
        ] {
            assert_eq!(tokens(sql), [Token::make_word(name, Some(quote))], "{sql}");
        }
        assert_eq!(tokens(r"'\`' || `x\`y` || '`'").len(), 5);
    }

    #[test]
    fn a_name_may_begin_with_digits() {
        assert_eq!(tokens("01681_db"), [Token::make_word("01681_db", None)]);
        assert_eq!(tokens("0_a"), [Token::make_word("0_a", None)]);
        assert_eq!(tokens("1e5"), [Token::Number("1e5".into(), false)]);
        assert_eq!(tokens("5 a").len(), 2);
    }

    #[test]
    fn a_comment_may_begin_with_a_number_sign() {
        let texts = |sql: &str| -> Vec<String> {
            let tokens = tokenize(sql).unwrap().into_iter().map(|token| token.token);
            tokens
                .filter(|token| !matches!(token, Token::Whitespace(_)))
                .map(|token| token.to_string())
                .collect()
        };
        assert_eq!(texts("# it's\nSELECT 1 #! \"\n+ 2 -- # '\n/* # ' */"), ["SELECT", "1", "+", "2"]);
        assert_eq!(texts("SELECT '# a''# b', `# c`"), ["SELECT", "'# a'# b'", ",", "`# c`"]);
    }
}
