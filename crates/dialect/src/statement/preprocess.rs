//! Rewrites tokens before parsing, where ClickHouse's grammar allows what the parser does not.
//!
//! In a query without FROM, the parser reads the word FORMAT or SETTINGS as an alias of the last column, and `FROM
//! table` as the beginning of a table function.

use std::fmt::Display;

use datafusion::sql::sqlparser::ast::DataType;
use datafusion::sql::sqlparser::dialect::ClickHouseDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use granary_dict::tokenize;

use super::depth::check_depth;
use super::token_cursor::{TokenCursor, is_word};
use super::{joins, tuples};
use crate::error::{Error, Result};

/// The clauses after a query.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrailingClauses {
    /// The name after FORMAT.
    pub format: Option<String>,
    /// SETTINGS, as text.
    pub settings: Vec<(String, String)>,
}

/// After these words an expression or a name follows, so `format` there is one.
const OPEN: &[&str] = &[
    "ALL", "AND", "AS", "BETWEEN", "BY", "CASE", "DISTINCT", "ELSE", "FROM", "HAVING", "IN", "IS", "JOIN",
    "LIKE", "LIMIT", "NOT", "OFFSET", "ON", "OR", "PREWHERE", "SELECT", "THEN", "USING", "WHEN", "WHERE",
];

/// Quotes the table name `table`, and cuts FORMAT and SETTINGS off at the end.
pub fn preprocess(tokens: &mut Vec<TokenWithSpan>) -> TrailingClauses {
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
    quote_table(tokens);
    quote_roundings(tokens);
    quote_zoned(tokens);
    open_lists(tokens);
    joins::order(tokens);
    joins::parenthesise_using(tokens);
    tuples::separate_places(tokens);
    tuples::close(tokens);
    let plain: Vec<Token> = tokens.iter().map(|token| token.token.clone()).collect();
    let mut depth = 0usize;
    for (at, token) in plain.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth == 0 && at > 0 && ends_expression(&plain[at - 1]) => {
                if let Some(trailing) = read_trailing_clauses(&plain[at..]) {
                    tokens.truncate(at);
                    return trailing;
                }
            }
            _ => {}
        }
    }
    TrailingClauses::default()
}

/// Parses a type by ClickHouse's name.
///
/// # Errors
/// SYNTAX_ERROR if it is not exactly one type.
pub fn data_type(name: &str) -> Result<DataType> {
    let wrong = |error: &dyn Display| Error::syntax_error(format!("Syntax error: {name}: {error}"));
    let mut tokens = tokenize(name).map_err(|error| wrong(&error))?;
    if preprocess(&mut tokens) != TrailingClauses::default() {
        return Err(wrong(&"this is more than a type"));
    }
    check_depth(&tokens)?;
    let mut parser = Parser::new(&ClickHouseDialect {}).with_tokens_with_locations(tokens);
    let parsed = parser.parse_data_type().map_err(|error| wrong(&error))?;
    match parser.peek_token().token {
        Token::EOF => Ok(parsed),
        token => Err(wrong(&format_args!("unexpected {token}"))),
    }
}

fn quote_table(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        let follows_from = ["FROM", "JOIN"].iter().any(|word| is_word(&tokens[at - 1].token, word));
        let called = tokens.get(at + 1).is_some_and(|next| next.token == Token::LParen);
        if let Token::Word(word) = &mut tokens[at].token
            && follows_from
            && !called
            && word.keyword == Keyword::TABLE
            && word.quote_style.is_none()
        {
            word.quote_style = Some('`');
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// `IN [1, 2]` is `IN (1, 2)`.
fn open_lists(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        if tokens[at].token != Token::LBracket || !is_word(&tokens[at - 1].token, "IN") {
            continue;
        }
        let mut depth = 0usize;
        for end in at..tokens.len() {
            match tokens[end].token {
                Token::LBracket => depth += 1,
                Token::RBracket => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                tokens[at].token = Token::LParen;
                tokens[end].token = Token::RParen;
                break;
            }
        }
    }
}

/// Inserts commas between rows of VALUES, which may follow each other without.
pub fn separate_values(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.first().is_some_and(|token| is_word(&token.token, "VALUES")) {
        return;
    }
    let mut depth = 0usize;
    let mut at = 1;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen if depth == 0 && tokens[at - 1].token == Token::RParen => {
                let span = tokens[at].span;
                tokens.insert(at, TokenWithSpan { token: Token::Comma, span });
                at += 1;
                depth += 1;
            }
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
}

/// The parser's own `floor` and `ceil` take no decimal places; as quoted names they are ordinary functions.
fn quote_roundings(tokens: &mut [TokenWithSpan]) {
    for at in 1..tokens.len() {
        let (before, called) = tokens.split_at_mut(at);
        if let Token::Word(word) = &mut before[at - 1].token
            && called[0].token == Token::LParen
            && word.quote_style.is_none()
            && ["floor", "ceil"].iter().any(|name| word.value.eq_ignore_ascii_case(name))
        {
            word.quote_style = Some('`');
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// In `DateTime('zone')` the parser expects digits; for a quoted type it accepts anything.
fn quote_zoned(tokens: &mut [TokenWithSpan]) {
    for at in 2..tokens.len() {
        let (before, zone) = tokens.split_at_mut(at);
        if let [.., name, open] = before
            && let Token::Word(word) = &mut name.token
            && word.keyword == Keyword::DATETIME
            && word.value == "DateTime"
            && open.token == Token::LParen
            && matches!(zone[0].token, Token::SingleQuotedString(_))
        {
            word.quote_style = Some('`');
            word.keyword = Keyword::NoKeyword;
        }
    }
}

/// Whether an expression may end here.
pub(super) fn ends_expression(token: &Token) -> bool {
    match token {
        Token::Word(word) if word.quote_style.is_none() => {
            !OPEN.iter().any(|open| word.value.eq_ignore_ascii_case(open))
        }
        Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) => true,
        Token::RParen | Token::RBracket | Token::RBrace | Token::Mul => true,
        _ => false,
    }
}

/// FORMAT and SETTINGS in either order, and nothing else.
fn read_trailing_clauses(tokens: &[Token]) -> Option<TrailingClauses> {
    let mut cursor = TokenCursor::new(tokens);
    let mut trailing = TrailingClauses::default();
    if cursor.take(&["SETTINGS"]) {
        trailing.settings.push(cursor.setting().ok()?);
        while cursor.comma() {
            trailing.settings.push(cursor.setting().ok()?);
        }
        trailing.format = cursor.format_and_end().ok()?;
        return Some(trailing);
    }
    if !cursor.take(&["FORMAT"]) {
        return None;
    }
    trailing.format = Some(cursor.identifier().ok()?);
    if cursor.take(&["SETTINGS"]) {
        trailing.settings.push(cursor.setting().ok()?);
        while cursor.comma() {
            trailing.settings.push(cursor.setting().ok()?);
        }
    }
    cursor.format_and_end().ok()?.is_none().then_some(trailing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preprocessed(sql: &str) -> (String, TrailingClauses) {
        let mut tokens = tokenize(sql).unwrap();
        let trailing = preprocess(&mut tokens);
        let texts: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        (texts.join(" "), trailing)
    }

    #[test]
    fn format_and_settings_are_cut_off() {
        let trailing = |format: Option<&str>, settings: &[(&str, &str)]| TrailingClauses {
            format: format.map(str::to_owned),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
        };
        for (sql, rest, expected) in [
            ("SELECT 1 FORMAT CSV", "SELECT 1", trailing(Some("CSV"), &[])),
            ("SELECT 'a' AS format format Null", "SELECT 'a' AS format", trailing(Some("Null"), &[])),
            (
                "SELECT f(1) SETTINGS a = 1, b = 'x'",
                "SELECT f ( 1 )",
                trailing(None, &[("a", "1"), ("b", "x")]),
            ),
            ("SELECT 1 SETTINGS a = 1 FORMAT CSV", "SELECT 1", trailing(Some("CSV"), &[("a", "1")])),
            ("SELECT 1 FORMAT CSV SETTINGS a = 1", "SELECT 1", trailing(Some("CSV"), &[("a", "1")])),
        ] {
            assert_eq!(preprocessed(sql), (rest.to_owned(), expected), "{sql}");
        }
    }

    #[test]
    fn columns_may_have_these_names() {
        for sql in [
            "SELECT format FROM t ORDER BY format DESC",
            "SELECT settings = 1 FROM t",
            "SELECT 1 , format",
            "SELECT ( SELECT 1 format x )",
        ] {
            assert_eq!(preprocessed(sql), (sql.to_owned(), TrailingClauses::default()));
        }
    }

    #[test]
    fn an_array_behind_in_is_a_list() {
        assert_eq!(preprocessed("SELECT x IN [ 1 , [ 2 ] ] [ 1 ]").0, "SELECT x IN ( 1 , [ 2 ] ) [ 1 ]");
        assert_eq!(preprocessed("SELECT x IN [ 1").0, "SELECT x IN [ 1");
    }

    #[test]
    fn a_table_may_be_called_table() {
        assert_eq!(preprocessed("SELECT 1 FROM table WHERE x").0, "SELECT 1 FROM `table` WHERE x");
        assert_eq!(preprocessed("SELECT 1 FROM t JOIN Table").0, "SELECT 1 FROM t JOIN `Table`");
        assert_eq!(preprocessed("SELECT 1 FROM TABLE ( f )").0, "SELECT 1 FROM TABLE ( f )");
    }
}
