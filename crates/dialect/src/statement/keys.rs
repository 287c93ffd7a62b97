//! `KEYS (1, 2)` and `KEYS ((1, 'a'), (2, 'b'))`, as rows of TabSeparated, which every dictionary reads.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::token_cursor::{TokenCursor, is_word};
use crate::error::Result;
use crate::text::escape;

/// Reads a list in parentheses: keys of one column, or tuples.
pub fn read(cursor: &mut TokenCursor<'_>) -> Result<String> {
    let mut rows = String::new();
    open(cursor)?;
    loop {
        if cursor.token(&Token::LParen) {
            loop {
                rows += &cell(cursor)?;
                if !cursor.comma() {
                    break;
                }
                rows.push('\t');
            }
            close(cursor)?;
        } else {
            rows += &cell(cursor)?;
        }
        rows.push('\n');
        if !cursor.comma() {
            break;
        }
    }
    close(cursor)?;
    Ok(rows)
}

fn open(cursor: &mut TokenCursor<'_>) -> Result<()> {
    if cursor.token(&Token::LParen) { Ok(()) } else { Err(cursor.unexpected("(")) }
}

fn close(cursor: &mut TokenCursor<'_>) -> Result<()> {
    if cursor.token(&Token::RParen) { Ok(()) } else { Err(cursor.unexpected("a comma or )")) }
}

/// A literal, escaped for TabSeparated.
fn cell(cursor: &mut TokenCursor<'_>) -> Result<String> {
    let sign = if cursor.token(&Token::Minus) { "-" } else { "" };
    let before = cursor.unexpected("a key");
    match cursor.any() {
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
        read(&mut TokenCursor::new(&split(text).unwrap()[0].tokens))
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
