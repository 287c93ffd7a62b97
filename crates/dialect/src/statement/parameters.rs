//! Query parameters: `{name:Type}` in a statement stands for the value that came beside it.

use std::collections::HashMap;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use granary_dict::tokenize;

use super::split::{Offsets, Statement, split};
use super::words::{self, is_word};
use crate::error::{Error, Result};

/// Values by name, escaped as in TabSeparated; `\N` is NULL.
pub type Parameters = HashMap<String, String>;

/// The statement with the values in it; `None` if it has no parameters.
///
/// # Errors
/// UNKNOWN_QUERY_PARAMETER for one that was not given, BAD_QUERY_PARAMETER for a value that cannot be of its type.
pub fn fill(statement: &Statement, parameters: &Parameters) -> Result<Option<Statement>> {
    if !statement.tokens.contains(&Token::LBrace) {
        return Ok(None);
    }
    let text = statement.text.as_str();
    let tokens = tokenize(text).map_err(|error| Error::syntax_error(format!("Syntax error: {error}")))?;
    let mut offsets = Offsets::new(text);
    let (mut filled, mut done) = (String::with_capacity(text.len()), 0);
    let mut rest = tokens.into_iter();
    let may_have_maps = statement.tokens.first().is_some_and(|first| is_word(first, "INSERT"));
    while let Some(token) = rest.next() {
        if token.token != Token::LBrace || may_have_maps && !is_name(next(rest.as_slice())) {
            continue;
        }
        filled += &text[done..offsets.of(token.span.start)];
        let mut inside = Vec::new();
        for inner in rest.by_ref() {
            match inner.token {
                Token::RBrace => {
                    done = offsets.of(inner.span.end);
                    break;
                }
                Token::Whitespace(_) => {}
                other => inside.push(other),
            }
        }
        let [Token::Word(name), Token::Colon, of_type @ ..] = inside.as_slice() else {
            return Err(Error::syntax_error("Syntax error: a query parameter is written {name:Type}"));
        };
        let data_type: String = of_type.iter().map(written).collect();
        let Some(value) = parameters.get(&name.value) else {
            let message = format!("Substitution `{}` is not set", name.value);
            return Err(Error::unknown_query_parameter(message));
        };
        filled += &value_text(&name.value, &data_type, value)?;
    }
    if done == 0 {
        return Ok(None);
    }
    filled += &text[done..];
    let mut statements = split(&filled)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(one), true) => Ok(Some(Statement { data: statement.data.clone(), ..one })),
        _ => Err(Error::logical_error("A value made several statements of one")),
    }
}

fn next(tokens: &[TokenWithSpan]) -> Option<&Token> {
    tokens.iter().map(|token| &token.token).find(|token| !matches!(token, Token::Whitespace(_)))
}

/// Whether a brace in front of this begins a parameter, and no map of VALUES.
fn is_name(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Word(word)) if word.quote_style.is_none())
}

/// A value as SQL.
fn value_text(name: &str, data_type: &str, value: &str) -> Result<String> {
    let bad = || {
        let message = format!("Value {value} cannot be parsed as {data_type} for query parameter '{name}'");
        Error::bad_query_parameter(message)
    };
    if value == "\\N" {
        return Ok("NULL".to_owned());
    }
    if data_type == "Identifier" {
        return Ok(words::quoted(&unescaped(value)));
    }
    if data_type.starts_with("Array(") {
        let tokens = plain_tokens(value).filter(|tokens| are_literals(tokens)).ok_or_else(bad)?;
        return Ok(tokens.iter().map(written).collect());
    }
    let text = quoted(&unescaped(value));
    // The type stands in the query itself, so whoever wrote it wrote the query.
    Ok(if data_type == "String" { text } else { format!("CAST({text} AS {data_type})") })
}

/// A token as it is written in SQL.
pub(super) fn written(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => quoted(text),
        token => token.to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn plain_tokens(text: &str) -> Option<Vec<Token>> {
    let tokens = tokenize(text).ok()?.into_iter().map(|token| token.token);
    Some(tokens.filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)).collect())
}

/// Whether tokens are an array of literals, so that nothing else can come into a query by a value.
fn are_literals(tokens: &[Token]) -> bool {
    let mut depth = 0;
    for (i, token) in tokens.iter().enumerate() {
        match token {
            Token::LBracket => depth += 1,
            Token::RBracket => depth -= 1,
            Token::Comma | Token::Minus | Token::Number(..) | Token::SingleQuotedString(_) => {}
            _ => return false,
        }
        // It begins with the one bracket that is closed at its end.
        if (depth == 0) != (i + 1 == tokens.len()) {
            return false;
        }
    }
    depth == 0 && tokens.first() == Some(&Token::LBracket)
}

/// TabSeparated's escapes.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        plain.push(match characters.next() {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('0') => '\0',
            Some(other) => other,
            None => '\\',
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(sql: &str, parameters: &[(&str, &str)]) -> Result<String> {
        let parameters = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let statement = &split(sql).unwrap()[0];
        Ok(fill(statement, &parameters)?.map_or_else(|| sql.to_owned(), |filled| filled.text))
    }

    #[test]
    fn values_take_their_places() {
        for (sql, value, expected) in [
            ("SELECT {x:UInt64}", "5", "SELECT CAST('5' AS UInt64)"),
            ("SELECT { x : String } ,1", "a\\'b\\tc\\\\", "SELECT 'a\\'b\tc\\\\' ,1"),
            ("SELECT {x:Nullable(UInt8)}", "\\N", "SELECT NULL"),
            ("SELECT {x:DateTime('UTC')}", "5", "SELECT CAST('5' AS DateTime('UTC'))"),
            ("SELECT * FROM {x:Identifier}", "t; DROP", "SELECT * FROM `t; DROP`"),
            ("k IN {x:Array(String)}", "['a', 'b']", "k IN ['a','b']"),
            ("DROP DICTIONARY {x:Identifier}.d /* {x */", "a`b", "DROP DICTIONARY `a\\`b`.d /* {x */"),
            ("DROP DICTIONARY {x:Identifier}", r"a\\`b", r"DROP DICTIONARY `a\\\`b`"),
            ("SELECT '{x:String}', {x:String}", "é", "SELECT '{x:String}', 'é'"),
            (
                "INSERT INTO t VALUES ({}, { 'a':{'b':{x:String}} }), ({1:2})",
                "é",
                "INSERT INTO t VALUES ({}, { 'a':{'b':'é'} }), ({1:2})",
            ),
            ("INSERT INTO t VALUES ({}, {'a':1})", "é", "INSERT INTO t VALUES ({}, {'a':1})"),
        ] {
            assert_eq!(filled(sql, &[("x", value)]).unwrap(), expected);
        }
    }

    #[test]
    fn a_value_is_never_more_than_a_value() {
        for value in ["[1] OR 1", "[1],[2]", "[(SELECT 1)]", "1", "[1", "]1[", ""] {
            assert_eq!(filled("{x:Array(UInt8)}", &[("x", value)]).unwrap_err().code, 457, "{value}");
        }
        for value in ["' OR 1 --", "` OR 1 --", "\\\\' OR 1 --", "\\\\` OR 1", "'; DROP TABLE t; --", "\\\\"]
        {
            for (data_type, expected) in [
                ("String", Token::SingleQuotedString(unescaped(value))),
                ("Identifier", Token::make_word(&unescaped(value), Some('`'))),
            ] {
                let text = filled(&format!("{{x:{data_type}}}"), &[("x", value)]).unwrap();
                let tokens: Vec<Token> =
                    tokenize(&text).unwrap().into_iter().map(|token| token.token).collect();
                assert_eq!(tokens[0], expected);
                assert!(matches!(tokens[1..], [] | [Token::EOF]), "{tokens:?}");
            }
        }
        assert_eq!(filled("SELECT {y:String}", &[("x", "1")]).unwrap_err().code, 456);
        assert_eq!(filled("SELECT {y}", &[]).unwrap_err().code, 62);
        assert_eq!(filled("SELECT {'a':1}", &[]).unwrap_err().code, 62);
    }
}
