//! Query parameters: `{name:Type}` in a statement stands for a value given beside it.

use std::collections::HashMap;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use granary_dict::tokenize;

use super::parameter_value::{Context, Parameter, sql};
use super::query::wrong;
use super::split::{Offsets, Statement, split};
use super::token_cursor::{self, is_word};
use crate::error::{Error, Result};

/// Values by name, as texts of TabSeparated.
pub type Parameters = HashMap<String, String>;

/// The statement with its parameters replaced; `None` if it has none.
///
/// # Errors
/// UNKNOWN_QUERY_PARAMETER for one that was not given and cannot be NULL, BAD_QUERY_PARAMETER and the like for a value
/// that does not fit its type.
pub fn fill(statement: &Statement, parameters: &Parameters) -> Result<Option<Statement>> {
    if !statement.tokens.contains(&Token::LBrace) {
        return Ok(None);
    }
    let text = statement.text.as_str();
    let tokens = tokenize(text).map_err(wrong)?;
    let mut offsets = Offsets::new(text);
    let (mut filled, mut done) = (String::with_capacity(text.len()), 0);
    let mut rest = tokens.into_iter();
    let may_have_maps = statement.tokens.first().is_some_and(|first| is_word(first, "INSERT"));
    // The two tokens before this one, the nearer one last.
    let mut before: [Token; 2] = [Token::EOF, Token::EOF];
    while let Some(token) = rest.next() {
        if token.token != Token::LBrace || may_have_maps && !is_name(next(rest.as_slice())) {
            if !matches!(token.token, Token::Whitespace(_)) {
                before.swap(0, 1);
                before[1] = token.token;
            }
            continue;
        }
        filled += &text[done..offsets.of(token.span.start)];
        let (mut inside, mut type_name, mut is_closed) = (Vec::new(), String::new(), false);
        for inner in rest.by_ref() {
            match inner.token {
                Token::RBrace => {
                    done = offsets.of(inner.span.end);
                    is_closed = true;
                    break;
                }
                Token::Whitespace(_) if type_name.is_empty() || type_name.ends_with(' ') => {}
                Token::Whitespace(_) => type_name.push(' '),
                other => {
                    if inside.len() > 1 {
                        type_name += &of_type(&other);
                    }
                    inside.push(other);
                }
            }
        }
        let ([Token::Word(name), Token::Colon, _, ..], true) = (inside.as_slice(), is_closed) else {
            return Err(Error::syntax_error("Syntax error: a query parameter is written {name:Type}"));
        };
        let in_parentheses = is_word(&before[0], "IN")
            && before[1] == Token::LParen
            && next(rest.as_slice()) == Some(&Token::RParen);
        let follows_in = is_word(&before[1], "IN");
        let place = if in_parentheses || follows_in { Context::Set } else { Context::Expression };
        let parameter = Parameter { name: &name.value, type_name: type_name.trim_end(), place };
        let value = sql(&parameter, parameters.get(&name.value).map(String::as_str))?;
        filled += &match follows_in && !parameter.is_identifier() {
            true => format!("({value})"),
            false => value,
        };
        before = [Token::EOF, Token::RBrace];
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

/// Whether a brace before this token begins a parameter, not a map of VALUES.
fn is_name(token: Option<&Token>) -> bool {
    matches!(token, Some(Token::Word(word)) if word.quote_style.is_none())
}

/// A token of a type, as written.
fn of_type(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_some() => token_cursor::quoted(&word.value),
        token => written(token),
    }
}

/// A token, as written in SQL.
pub(super) fn written(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => quoted(text),
        token => token.to_string(),
    }
}

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
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
            ("SELECT {x:Nullable(UInt8)}", "\\N", "SELECT CAST(NULL AS Nullable(UInt8))"),
            ("SELECT {y:Nullable(UInt8)}", "1", "SELECT CAST(NULL AS Nullable(UInt8))"),
            ("SELECT {x:DateTime('UTC')}", "5", "SELECT CAST('5' AS DateTime('UTC'))"),
            ("SELECT {x: Decimal( 9,\n/* two */ 2 ) }", "5", "SELECT CAST('5' AS Decimal( 9, 2 ))"),
            ("SELECT * FROM {x:Identifier}", "t; DROP", "SELECT * FROM `t; DROP`"),
            ("DROP DICTIONARY {x:Identifier}.d /* {x */", "a`b", "DROP DICTIONARY `a\\`b`.d /* {x */"),
            ("DROP DICTIONARY {x:Identifier}", r"a\tb", r"DROP DICTIONARY `a\\tb`"),
            ("SELECT '{x:String}', {x:String}", "é", "SELECT '{x:String}', 'é'"),
            (
                "INSERT INTO t VALUES ({}, { 'a':{'b':{x:String}} }), ({1:2})",
                "é",
                "INSERT INTO t VALUES ({}, { 'a':{'b':'é'} }), ({1:2})",
            ),
            ("INSERT INTO t VALUES ({}, {'a':1})", "é", "INSERT INTO t VALUES ({}, {'a':1})"),
            ("f({x:Array(UInt8)})", "[1]", "f([CAST('1' AS UInt8)])"),
            ("k IN {x:Array(String)}", r"['a', 'it\'s']", r"k IN ('a', 'it\'s')"),
            ("k NOT IN ( {x:Array(UInt8)} )", "[1,2]", "k NOT IN ( 1, 2 )"),
            ("k IN ({x:UInt8}, 7)", "5", "k IN (CAST('5' AS UInt8), 7)"),
            ("k in {x:UInt8}", "5", "k in (CAST('5' AS UInt8))"),
            ("k IN {x:Identifier}", "t", "k IN `t`"),
        ] {
            assert_eq!(filled(sql, &[("x", value)]).unwrap(), expected);
        }
    }

    #[test]
    fn a_parameter_is_written_as_one() {
        assert_eq!(filled("SELECT {y:String}", &[("x", "1")]).unwrap_err().code, 456);
        assert_eq!(filled("SELECT {y}", &[]).unwrap_err().code, 62);
        assert_eq!(filled("SELECT {y:}", &[]).unwrap_err().code, 62);
        assert_eq!(filled("SELECT {'a':1}", &[]).unwrap_err().code, 62);
        assert_eq!(filled("SELECT {x:UInt8}, {x:UInt8", &[("x", "1")]).unwrap_err().code, 62);
    }
}
