//! `INSERT INTO t FORMAT CSV` followed by rows, which are no SQL: they begin after the line of the format's name and
//! extend to the end.

use granary_dict::tokenize;

use super::query::wrong;
use super::size::too_long;
use super::split::Statement;
use crate::error::{Error, Result};
use crate::limits::QUERY_BYTES_MAX;

/// The statement and its rows, if the text is an INSERT with a FORMAT. VALUES are SQL.
pub fn insert_with_data(text: &[u8]) -> Result<Option<Statement>> {
    let Some(parts) = parts(text) else { return Ok(None) };
    check_head(&parts)?;
    statement(&text[..parts.head], text[parts.data..].to_vec()).map(Some)
}

/// Like [`insert_with_data`], without copying the rows, which may fill a whole body; returns the text if it is no such
/// INSERT.
pub(super) fn into_insert_with_data(mut text: Vec<u8>) -> Result<std::result::Result<Statement, Vec<u8>>> {
    let Some(parts) = parts(&text) else { return Ok(Err(text)) };
    check_head(&parts)?;
    let mut insert = statement(&text[..parts.head], Vec::new())?;
    text.drain(..parts.data);
    insert.data = text;
    Ok(Ok(insert))
}

/// Refuses a statement that is too long, before it is tokenized.
fn check_head(parts: &Parts) -> Result<()> {
    if parts.head > QUERY_BYTES_MAX { Err(too_long()) } else { Ok(()) }
}

fn statement(head: &[u8], data: Vec<u8>) -> Result<Statement> {
    let head = std::str::from_utf8(head).map_err(|_| Error::syntax_error("The statement is not UTF-8"))?;
    let tokens = tokenize(head).map_err(wrong)?;
    let tokens = tokens.into_iter().map(|token| token.token);
    let tokens = tokens.filter(|token| !is_blank(token)).collect();
    Ok(Statement { text: head.trim().to_owned(), tokens, data })
}

fn is_blank(token: &datafusion::sql::sqlparser::tokenizer::Token) -> bool {
    use datafusion::sql::sqlparser::tokenizer::Token;
    matches!(token, Token::Whitespace(_) | Token::EOF)
}

/// Where the statement ends and the rows begin.
struct Parts {
    head: usize,
    data: usize,
}

/// Matches `INSERT INTO [TABLE] name [(columns)] [SETTINGS ..] FORMAT name` followed by rows.
fn parts(text: &[u8]) -> Option<Parts> {
    let mut at = Scanner { text, at: 0 };
    if !at.word()?.eq_ignore_ascii_case(b"INSERT") || !at.word()?.eq_ignore_ascii_case(b"INTO") {
        return None;
    }
    let mut depth = 0usize;
    loop {
        match at.piece()? {
            Piece::Word(word) if depth == 0 => {
                if [&b"VALUES"[..], b"SELECT", b"WITH"].iter().any(|end| word.eq_ignore_ascii_case(end)) {
                    return None;
                }
                if word.eq_ignore_ascii_case(b"FORMAT") {
                    break;
                }
            }
            Piece::Other(b'(') => depth += 1,
            Piece::Other(b')') => depth = depth.checked_sub(1)?,
            Piece::Other(b';') => return None,
            Piece::Word(_) | Piece::Quoted | Piece::Other(_) => {}
        }
    }
    if at.word()?.eq_ignore_ascii_case(b"VALUES") {
        return None;
    }
    let (head, rest) = (at.at, &text[at.at..]);
    // Blanks after the name, and one line end; further ones belong to the rows.
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    let data = match rest.get(blanks) {
        Some(b'\n') => head + blanks + 1,
        Some(b';') if rest[blanks + 1..].iter().all(u8::is_ascii_whitespace) => text.len(),
        _ => head + blanks,
    };
    Some(Parts { head, data })
}

/// Scans a text of which only the beginning is SQL.
pub(super) struct Scanner<'a> {
    pub text: &'a [u8],
    /// The offset of the next byte.
    pub at: usize,
}

/// The next piece of the text.
pub(super) enum Piece<'a> {
    Word(&'a [u8]),
    /// A name or a string in quotes.
    Quoted,
    Other(u8),
}

impl<'a> Scanner<'a> {
    fn word(&mut self) -> Option<&'a [u8]> {
        match self.piece()? {
            Piece::Word(word) => Some(word),
            Piece::Quoted | Piece::Other(_) => None,
        }
    }

    /// The next piece; `None`: the text ends, or the piece is not closed.
    pub fn piece(&mut self) -> Option<Piece<'a>> {
        self.skip_blanks();
        let rest = &self.text[self.at..];
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        match *rest.first()? {
            quote @ (b'\'' | b'"' | b'`') => {
                let mut escaped = false;
                let end = rest[1..].iter().position(|&byte| {
                    let ends = byte == quote && !escaped;
                    escaped = byte == b'\\' && !escaped;
                    ends
                })?;
                self.at += end + 2;
                Some(Piece::Quoted)
            }
            b'$' => {
                // A string between two `$tag$`.
                let Some(fence) = fence(rest) else {
                    self.at += 1;
                    return Some(Piece::Other(b'$'));
                };
                let behind = &rest[fence.len()..];
                self.at += behind.windows(fence.len()).position(|part| part == fence)? + 2 * fence.len();
                Some(Piece::Quoted)
            }
            first if is_letter(&first) => {
                let length = rest.iter().take_while(|byte| is_letter(byte)).count();
                self.at += length;
                Some(Piece::Word(&rest[..length]))
            }
            other => {
                self.at += 1;
                Some(Piece::Other(other))
            }
        }
    }

    /// Skips blanks and comments.
    pub fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let end = |end: &[u8]| {
                let found = rest.windows(end.len()).position(|part| part == end);
                found.map_or(rest.len(), |place| place + end.len())
            };
            self.at += match rest {
                [blank, ..] if blank.is_ascii_whitespace() => 1,
                [b'-', b'-', ..] | [b'#', b' ' | b'!', ..] => end(b"\n"),
                [b'/', b'*', ..] => end(b"*/"),
                _ => return,
            };
        }
    }
}

/// `$tag$` at the beginning of the bytes: letters, digits and underscores of any script.
fn fence(bytes: &[u8]) -> Option<&[u8]> {
    let tag = bytes[1..].iter().position(|byte| *byte == b'$' || byte.is_ascii_whitespace())?;
    let text = std::str::from_utf8(&bytes[1..=tag]).ok()?;
    let is_tag = bytes[tag + 1] == b'$' && text.chars().all(|char| char.is_alphanumeric() || char == '_');
    is_tag.then(|| &bytes[..tag + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_begin_behind_the_format() {
        let parts = |text: &str| {
            let statement = insert_with_data(text.as_bytes()).unwrap();
            assert_eq!(into_insert_with_data(text.into()).unwrap().ok(), statement);
            let statement = statement?;
            Some((statement.text, String::from_utf8(statement.data).unwrap()))
        };
        for (text, head, data) in [
            ("INSERT INTO t FORMAT CSV\n1,'\n", "INSERT INTO t FORMAT CSV", "1,'\n"),
            ("insert into `a b`.t (x, y) format TSV 1\t2", "insert into `a b`.t (x, y) format TSV", "1\t2"),
            ("-- '\nINSERT INTO t FORMAT CSV  \r\n\n1", "-- '\nINSERT INTO t FORMAT CSV", "\n1"),
            ("INSERT INTO t FORMAT JSONEachRow{\"a\":1}", "INSERT INTO t FORMAT JSONEachRow", "{\"a\":1}"),
            ("INSERT INTO t FORMAT CSV;\n", "INSERT INTO t FORMAT CSV", ""),
        ] {
            assert_eq!(parts(text), Some((head.to_owned(), data.to_owned())), "{text}");
        }
        for sql in [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t FORMAT Values (1)",
            "INSERT INTO t SELECT 1 FORMAT CSV",
            "INSERT INTO t (format) VALUES (1)",
            "SELECT 1 FORMAT CSV",
            "INSERT INTO t",
            "",
        ] {
            assert_eq!(parts(sql), None, "{sql}");
        }
    }
}
