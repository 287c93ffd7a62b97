//! Bounds on a statement's size: larger ones would take disproportionate memory or time to plan.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::data::{Piece, Scanner};
use super::token_cursor::is_word;
use crate::error::{Error, Result};
use crate::limits::{
    BLANK_BYTES, QUERY_BYTES_MAX, SELECT_COLUMNS_MAX, SORT_COLUMNS_MAX, TEXT_BYTES_MAX, TOKEN_BYTES,
};

/// Refuses a text with a statement that is too long, before it is tokenized. Rows after VALUES do not count.
///
/// # Errors
/// SYNTAX_ERROR, as ClickHouse says it.
pub fn check_bytes(text: &str) -> Result<()> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::syntax_error(format!(
            "The text is longer than {TEXT_BYTES_MAX} bytes. INSERT more rows with FORMAT and a format, as TabSeparated"
        )));
    }
    if longest_statement(text.as_bytes()) > QUERY_BYTES_MAX {
        return Err(too_long());
    }
    Ok(())
}

/// Upper bound of the bytes that a text's tokens take.
pub fn token_bytes(text: &str) -> usize {
    let Counted { tokens, blanks } = count(text);
    tokens * TOKEN_BYTES + blanks * BLANK_BYTES + text.len()
}

/// Upper bound of the number of tokens.
struct Counted {
    tokens: usize,
    /// Each blank is a token; comments count as blanks.
    blanks: usize,
}

fn count(text: &str) -> Counted {
    let mut scanner = Scanner { text: text.as_bytes(), at: 0 };
    let mut counted = Counted { tokens: 0, blanks: 0 };
    loop {
        let begin = scanner.at;
        scanner.skip_blanks();
        counted.blanks += scanner.at - begin;
        counted.tokens += match scanner.piece() {
            // A letter outside of ASCII is a token of its own.
            Some(Piece::Word(word)) => 1 + 2 * word.iter().filter(|byte| **byte >= 0xC0).count(),
            Some(Piece::Quoted | Piece::Other(_)) => 1,
            None => {
                // What is not closed here may be closed for the tokenizer, which could find a token in each byte of the
                // rest.
                counted.tokens += text.len() - scanner.at;
                return counted;
            }
        };
    }
}

/// Bytes of the longest statement of a text.
fn longest_statement(text: &[u8]) -> usize {
    if text.len() <= QUERY_BYTES_MAX {
        return text.len();
    }
    let mut scanner = Scanner { text, at: 0 };
    let (mut longest, mut begin, mut depth) = (0, 0, 0usize);
    let (mut is_first, mut takes_rows, mut has_rows) = (true, false, false);
    while let Some(piece) = scanner.piece() {
        match piece {
            Piece::Other(b';') => {
                (begin, depth) = (scanner.at, 0);
                (is_first, takes_rows, has_rows) = (true, false, false);
                continue;
            }
            Piece::Other(b'(') => depth += 1,
            Piece::Other(b')') => depth = depth.saturating_sub(1),
            Piece::Word(word) if is_first => takes_rows = word.eq_ignore_ascii_case(b"INSERT"),
            Piece::Word(word) if takes_rows => {
                has_rows |= depth == 0 && word.eq_ignore_ascii_case(b"VALUES");
                if ["SELECT", "WITH"].iter().any(|w| word.eq_ignore_ascii_case(w.as_bytes())) {
                    (takes_rows, has_rows) = (false, has_rows && depth > 0);
                }
            }
            _ => {}
        }
        is_first = false;
        if !has_rows {
            longest = longest.max(scanner.at - begin);
        }
    }
    // A piece that is not closed extends to the end.
    if has_rows { longest } else { longest.max(text.len() - begin) }
}

/// The same check on tokens, which know strings, and comments within comments.
///
/// # Errors
/// SYNTAX_ERROR.
pub fn check_statement(text: &str, tokens: &[Token]) -> Result<()> {
    if text.len() > QUERY_BYTES_MAX && !has_rows(tokens) { Err(too_long()) } else { Ok(()) }
}

/// Whether it is an INSERT with VALUES.
fn has_rows(tokens: &[Token]) -> bool {
    let mut depth = 0usize;
    let words = tokens.iter().filter(|token| {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let ends = |token: &&Token| ["VALUES", "SELECT", "WITH"].iter().any(|word| is_word(token, word));
    tokens.first().is_some_and(|first| is_word(first, "INSERT"))
        // After INTO and the table's name, whatever that is.
        && words.skip(3).find(ends).is_some_and(|token| is_word(token, "VALUES"))
}

pub(super) fn too_long() -> Error {
    Error::syntax_error(format!(
        "Syntax error: failed at position {QUERY_BYTES_MAX}: Max query size exceeded ({QUERY_BYTES_MAX} bytes)"
    ))
}

/// The list that a comma separates.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum List {
    Columns,
    Sorted,
    #[default]
    Other,
}

/// Refuses a statement with so many columns to select, or to sort by, that planning would take minutes: the time grows
/// with the square of their number.
///
/// # Errors
/// TOO_BIG_AST.
pub fn check_lists(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut around: Vec<(List, usize)> = Vec::new();
    let (mut list, mut commas) = (List::Other, 0);
    for TokenWithSpan { token, .. } in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                around.push((list, commas));
                (list, commas) = (List::Other, 0);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                (list, commas) = around.pop().unwrap_or((List::Other, 0));
            }
            Token::Comma => commas += 1,
            word if is_word(word, "SELECT") => (list, commas) = (List::Columns, 0),
            word if is_word(word, "ORDER") => (list, commas) = (List::Sorted, 0),
            word if ["FROM", "WHERE", "GROUP", "LIMIT"].iter().any(|w| is_word(word, w)) => {
                (list, commas) = (List::Other, 0);
            }
            _ => {}
        }
        let (what, most) = match list {
            List::Columns => ("SELECT", SELECT_COLUMNS_MAX),
            List::Sorted => ("ORDER BY", SORT_COLUMNS_MAX),
            List::Other => continue,
        };
        if commas >= most {
            let message = format!("AST is too big. Maximum: {most} expressions of {what}");
            return Err(Error::too_big_ast(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use granary_dict::tokenize;

    #[test]
    fn statements_are_bounded_and_rows_are_not() {
        let long = "1,".repeat(QUERY_BYTES_MAX / 2 + 1);
        let is_refused = |text: &str| check_bytes(text).is_err_and(|error| error.code == 62);
        for text in [
            format!("SELECT {long}1"),
            format!("SELECT 1; SELECT {long}1"),
            format!("SELECT ';' || {long}1"),
            format!("INSERT INTO t SELECT {long}1"),
            format!("INSERT INTO t (values) SELECT {long}1 VALUES"),
            format!("INSERT INTO values SELECT {long}1"),
            format!("SELECT 1 -- {long}"),
            format!("SELECT 'never closed {long}"),
            format!("SELECT {}", " ".repeat(TEXT_BYTES_MAX)),
        ] {
            assert!(is_refused(&text), "{}", &text[..40]);
        }
        for text in [
            format!("INSERT INTO t VALUES {}", "(1),".repeat(QUERY_BYTES_MAX)),
            format!("SELECT 1; INSERT INTO t (a) VALUES ('{}')", "x".repeat(QUERY_BYTES_MAX)),
            "SELECT 1;".repeat(QUERY_BYTES_MAX / 8),
        ] {
            assert!(!is_refused(&text), "{}", &text[..40]);
        }
    }

    #[test]
    fn no_text_has_more_tokens_than_are_counted() {
        for text in [
            "SELECT 1 + 22,'a;b', `x y`  -- it's\n;/* /* */ , */ SELECT $$'$$, 1, 2, 3;",
            "INSERT INTO t VALUES ($$'$$),(1),(1),(1),(1),(1),(1)",
            "1;1;1",
            "INSERT INTO t VALUES ($$'$$),(1),(1),(1),(1),($$'$$)",
            "SELECT $a$ $b$ ' $a$, 1, 2, 3, 4, '5'",
            "SELECT éé, ñ1é, 'é'",
            "SELECT $€$ 1, 2, 3, 4, 5, 6, 7 $€$",
            "SELECT $é$ ' $é$, 1, 2, 3, 4, 5, 6, 7, '8'",
            "SELECT $1, $a, 1, 2, $b$ ' $b$, 3",
            "SELECT \"a\\\", 1, 2, 3, 4, 5\", 6",
            "SELECT `a\\`, 1, 2, 3, 4, 5`, 6",
            "SELECT 'a\\', 1, 2, 3, 4, 5', 6",
        ] {
            let Counted { tokens, blanks } = count(text);
            let all = tokenize(text).unwrap();
            let is_blank = |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_));
            let are_blank = all.iter().filter(is_blank).count();
            assert!(
                tokens >= all.len() - are_blank && tokens + blanks >= all.len(),
                "{text}: {tokens} {blanks}"
            );
        }
        let long = format!("SELECT '{}'", "a, b".repeat(1000));
        assert!(token_bytes(&long) < 2 * long.len());
        assert!(2 * size_of::<TokenWithSpan>() <= BLANK_BYTES);
    }

    #[test]
    fn what_only_tokens_tell_is_bounded_too() {
        let long = "1,".repeat(QUERY_BYTES_MAX / 2 + 1);
        let code = |text: &str| super::super::split(text).map_or_else(|error| error.code, |_| 0);
        for text in [
            format!("SELECT $$;$$, {long} $$;$$, {long} 1"),
            format!("SELECT /* /* */ ; */ {} 1", "1, ".repeat(QUERY_BYTES_MAX / 3 + 1)),
            format!("INSERT INTO values SELECT $$;$$, {long} $$;$$, {long} 1"),
        ] {
            assert_eq!(code(&text), 62, "{}", &text[..40]);
        }
        for text in [
            format!("INSERT INTO t FORMAT CSV\n{}", "1,2\n".repeat(QUERY_BYTES_MAX)),
            format!("INSERT INTO t (a, b) VALUES {}(1, 2)", "(1, 2),".repeat(QUERY_BYTES_MAX / 4)),
            format!("INSERT INTO values VALUES {}(1, 2)", "(1, 2),".repeat(QUERY_BYTES_MAX / 4)),
        ] {
            assert_eq!(code(&text), 0, "{}", &text[..40]);
        }
    }

    #[test]
    fn lists_are_bounded_each_by_itself() {
        let code = |sql: &str| check_lists(&tokenize(sql).unwrap()).map_or_else(|error| error.code, |()| 0);
        let items = |n: usize| vec!["f(1, 2)"; n].join(", ");
        for (start, most) in [
            ("SELECT ", SELECT_COLUMNS_MAX),
            ("SELECT 1 FROM t ORDER BY ", SORT_COLUMNS_MAX),
            ("SELECT sum(1) OVER (ORDER BY ", SORT_COLUMNS_MAX),
            ("SELECT 1 UNION ALL SELECT ", SELECT_COLUMNS_MAX),
        ] {
            assert_eq!(code(&format!("{start}{}", items(most))), 0, "{start}");
            assert_eq!(code(&format!("{start}{}", items(most + 1))), 168, "{start}");
        }
        let (many, rows) = (items(SELECT_COLUMNS_MAX + 1), "(1, 2), ".repeat(SELECT_COLUMNS_MAX));
        assert_eq!(code(&format!("SELECT [{many}] FROM t WHERE x IN ({many})")), 0);
        assert_eq!(code(&format!("INSERT INTO t VALUES {rows} (1, 2)")), 0);
    }
}
