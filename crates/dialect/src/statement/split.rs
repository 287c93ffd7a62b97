//! Splits a text at its semicolons, outside of strings, comments and quoted names.

use datafusion::sql::sqlparser::tokenizer::{Location, Token};
use granary_dict::tokenize;

use super::data::{Piece, Scanner, insert_with_data, into_insert_with_data};
use super::query::wrong;
use super::size::{check_bytes, check_statement, token_bytes};
use super::spelled::spelled;
use crate::error::{Error, Result};
use crate::limits::QUERY_BYTES_MAX;

/// One statement of a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Its text, without the semicolon.
    pub text: String,
    /// Its tokens without blanks and comments.
    pub(crate) tokens: Vec<Token>,
    /// The rows after INSERT .. FORMAT.
    pub data: Vec<u8>,
}

impl Statement {
    /// The text after the first `head` tokens, as ClickHouse spells it.
    pub fn spelled_behind(&self, head: usize) -> String {
        spelled(self.tokens.get(head..).unwrap_or_default())
    }

    /// Whether this is an INSERT that ends with its FORMAT, with its rows given separately.
    pub fn wants_rows(&self) -> bool {
        self.data.is_empty() && insert_with_data(self.text.as_bytes()).is_ok_and(|insert| insert.is_some())
    }
}

/// The statement of a text that must have exactly one; it may be an INSERT followed by rows of any format.
///
/// Before the text is tokenized, `reserve` is called with the bytes that its tokens take, replacing its previous
/// reservation.
///
/// # Errors
/// SYNTAX_ERROR if there is none or several, and errors of `reserve`.
pub fn split_one(text: Vec<u8>, mut reserve: impl FnMut(usize) -> Result<()>) -> Result<Statement> {
    let text = match into_insert_with_data(text)? {
        Ok(insert) => return Ok(insert),
        Err(text) => String::from_utf8(text),
    };
    let text = text.map_err(|_| Error::cannot_parse_text("The query is not UTF-8"))?;
    let several = || Error::syntax_error("Multi-statements are not allowed");
    let mut cut = |text: &str| {
        check_bytes(text)?;
        reserve(token_bytes(text))?;
        split(text)
    };
    if first_two(&text).is_some_and(|two| cut(two).is_ok_and(|statements| statements.len() > 1)) {
        return Err(several());
    }
    let mut statements = cut(&text)?;
    match statements.pop() {
        None => Err(Error::syntax_error("Empty query")),
        Some(_) if !statements.is_empty() => Err(several()),
        Some(statement) => Ok(statement),
    }
}

/// Possibly the first two statements of a text with several: only tokens tell where all strings and comments end. So a
/// text of many statements is refused by its first two.
fn first_two(text: &str) -> Option<&str> {
    let mut scanner = Scanner { text: text.as_bytes(), at: 0 };
    let (mut ended, mut is_empty) = (0, true);
    while ended < 2 {
        is_empty = match scanner.piece()? {
            Piece::Other(b';') => {
                ended += usize::from(!is_empty);
                true
            }
            _ => false,
        };
    }
    Some(&text[..scanner.at])
}

/// All statements of a text; empty ones are left out.
pub fn split(text: &str) -> Result<Vec<Statement>> {
    let insert = match insert_with_data(text.as_bytes())? {
        // That many rows are not tokenized as SQL.
        Some(insert) if text.len() > QUERY_BYTES_MAX => return Ok(vec![insert]),
        insert => insert,
    };
    check_bytes(text)?;
    let tokens = match (tokenize(text), insert) {
        (Ok(tokens), _) => tokens,
        // Rows that are no SQL.
        (Err(_), Some(insert)) => return Ok(vec![insert]),
        (Err(error), None) => return Err(wrong(error)),
    };
    let mut offsets = Offsets::new(text);
    let mut statements = Vec::new();
    let mut start = 0;
    let mut words = Vec::new();
    let mut close = |start: usize, end: usize, words: &mut Vec<Token>| -> Result<()> {
        if !words.is_empty() {
            let statement = Statement {
                text: text[start..end].trim().to_owned(),
                tokens: std::mem::take(words),
                data: Vec::new(),
            };
            // The tokens may be rows.
            let insert = insert_with_data(statement.text.as_bytes()).ok().flatten();
            if insert.is_none() {
                check_statement(&statement.text, &statement.tokens)?;
            }
            statements.push(insert.unwrap_or(statement));
        }
        Ok(())
    };
    for token in tokens {
        match token.token {
            Token::SemiColon => {
                let at = offsets.of(token.span.start);
                close(start, at, &mut words)?;
                start = at + 1;
            }
            Token::Whitespace(_) | Token::EOF => {}
            other => words.push(other),
        }
    }
    close(start, text.len(), &mut words)?;
    Ok(statements)
}

/// Converts lines and columns, ascending from token to token, to byte offsets in one pass.
pub(super) struct Offsets<'a> {
    characters: std::iter::Peekable<std::str::CharIndices<'a>>,
    end: usize,
    here: (u64, u64),
}

impl<'a> Offsets<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { characters: text.char_indices().peekable(), end: text.len(), here: (1, 1) }
    }

    pub(super) fn of(&mut self, location: Location) -> usize {
        while self.here < (location.line, location.column) {
            match self.characters.next() {
                Some((_, '\n')) => self.here = (self.here.0 + 1, 1),
                Some(_) => self.here.1 += 1,
                None => break,
            }
        }
        self.characters.peek().map_or(self.end, |(offset, _)| *offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<String> {
        split(text).unwrap().into_iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn semicolons_in_strings_and_comments_do_not_count() {
        let text = "SELECT ';' ; -- a; b\n\nSELECT 'é;\\';', `x;`\n/* ; */ FORMAT CSV;;\n;SELECT 3";
        assert_eq!(
            texts(text),
            ["SELECT ';'", "-- a; b\n\nSELECT 'é;\\';', `x;`\n/* ; */ FORMAT CSV", "SELECT 3"]
        );
    }

    #[test]
    fn one_statement_is_all_there_is() {
        let one = |text: &str| split_one(text.into(), |_| Ok(())).map_err(|error| error.message);
        for text in ["SELECT 1", ";SELECT 1;;", "SELECT $$;a;b;$$;", "SELECT /* /* */ ;a; */ 1;b-- ;"] {
            let all = split(text).unwrap();
            assert_eq!(one(text).ok(), all.into_iter().next().filter(|_| !text.contains(";b-- ")), "{text}");
        }
        let insert = one("INSERT INTO t FORMAT CSV\n1;2;3").unwrap();
        assert_eq!((insert.text.as_str(), &insert.data[..]), ("INSERT INTO t FORMAT CSV", &b"1;2;3"[..]));
        for text in [" -- nothing\n", ";;", ""] {
            assert_eq!(one(text).unwrap_err(), "Empty query", "{text}");
        }
        // The text after the second statement is not looked at.
        for text in ["SELECT 1; SELECT 2", "SELECT 1;;SELECT 2; '", &"1;".repeat(8 << 20)] {
            assert_eq!(one(text).unwrap_err(), "Multi-statements are not allowed", "{}", &text[..10]);
        }
    }

    #[test]
    fn an_open_string_is_an_error() {
        assert_eq!(split("SELECT 'abc").unwrap_err().code, 62);
        assert!(split(" -- nothing\n").unwrap().is_empty());
    }
}
