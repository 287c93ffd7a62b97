//! `KEYS (1, 2)` and `KEYS ((1, 'a'), (2, 'b'))`, as rows of TabSeparated, which every dictionary reads.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::words::{Words, is_word};
use crate::error::Result;
use crate::text::escape;

/// Reads a list in parentheses: keys of one column, or tuples.
pub fn read(words: &mut Words<'_>) -> Result<String> {
    let mut rows = String::new();
    open(words)?;
    loop {
        if words.token(&Token::LParen) {
            loop {
                rows += &cell(words)?;
                if !words.comma() {
                    break;
                }
                rows.push('\t');
            }
            close(words)?;
        } else {
            rows += &cell(words)?;
        }
        rows.push('\n');
        if !words.comma() {
            break;
        }
    }
    close(words)?;
    Ok(rows)
}

fn open(words: &mut Words<'_>) -> Result<()> {
    if words.token(&Token::LParen) { Ok(()) } else { Err(words.unexpected("(")) }
}

fn close(words: &mut Words<'_>) -> Result<()> {
    if words.token(&Token::RParen) { Ok(()) } else { Err(words.unexpected("a comma or )")) }
}

/// A literal, escaped for TabSeparated.
fn cell(words: &mut Words<'_>) -> Result<String> {
    let sign = if words.token(&Token::Minus) { "-" } else { "" };
    let before = words.unexpected("a key");
    match words.any() {
        Some(Token::Number(digits, _)) => Ok(format!("{sign}{digits}")),
        Some(Token::SingleQuotedString(text)) if sign.is_empty() => {
            let mut escaped = Vec::with_capacity(text.len());
            escape::tab(text.as_bytes(), &mut escaped);
            Ok(String::from_utf8_lossy(&escaped).into_owned())
        }
        Some(token) if sign.is_empty() && is_word(token, "NULL") => Ok("\\N".to_owned()),
        _ => Err(before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::split;

    fn rows(text: &str) -> Result<String> {
        read(&mut Words::new(&split(text).unwrap()[0].tokens))
    }

    #[test]
    fn lists_become_rows() {
        assert_eq!(rows("(1, -2, 0x10)").unwrap(), "1\n-2\n16\n");
        assert_eq!(rows("((1, 'a\\tb'), (2, NULL))").unwrap(), "1\ta\\tb\n2\t\\N\n");
        for wrong in ["1", "()", "(1", "(1,)", "((1)", "(a)", "(-'x')"] {
            assert_eq!(rows(wrong).unwrap_err().code, 62, "{wrong}");
        }
    }
}
