//! Query parameters: `{name:Type}` in a query stands for the value that came beside it.

use std::collections::HashMap;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use granary_dict::tokenize;

use crate::error::{Error, Result};

/// Values by name, escaped as in TabSeparated; `\N` is NULL.
pub type Parameters = HashMap<String, String>;

/// Puts the values in.
///
/// # Errors
/// UNKNOWN_QUERY_PARAMETER for one that was not given, BAD_QUERY_PARAMETER for a value that cannot be of its type.
pub fn fill(tokens: &mut Vec<TokenWithSpan>, parameters: &Parameters) -> Result<()> {
    if !tokens.iter().any(|token| token.token == Token::LBrace) {
        return Ok(());
    }
    let mut filled = Vec::with_capacity(tokens.len());
    let mut rest = std::mem::take(tokens).into_iter();
    while let Some(token) = rest.next() {
        if token.token != Token::LBrace {
            filled.push(token);
            continue;
        }
        let inside: Vec<Token> = rest
            .by_ref()
            .map(|inner| inner.token)
            .take_while(|inner| *inner != Token::RBrace)
            .filter(|inner| !matches!(inner, Token::Whitespace(_)))
            .collect();
        let [Token::Word(name), Token::Colon, of_type @ ..] = inside.as_slice() else {
            return Err(Error::syntax_error("Syntax error: a query parameter is written {name:Type}"));
        };
        let data_type: String = of_type.iter().map(Token::to_string).collect();
        let Some(value) = parameters.get(&name.value) else {
            let message = format!("Substitution `{}` is not set", name.value);
            return Err(Error::unknown_query_parameter(message));
        };
        let value = value_tokens(&name.value, &data_type, value)?;
        filled.extend(value.into_iter().map(|value| TokenWithSpan { token: value, span: token.span }));
    }
    *tokens = filled;
    Ok(())
}

fn value_tokens(name: &str, data_type: &str, value: &str) -> Result<Vec<Token>> {
    let bad = || {
        let message = format!("Value {value} cannot be parsed as {data_type} for query parameter '{name}'");
        Error::bad_query_parameter(message)
    };
    let cast = |value: Token| -> Result<Vec<Token>> {
        // The type stands in the query itself, so whoever wrote it wrote the query.
        let mut tokens = plain_tokens("CAST(x AS )").ok_or_else(bad)?;
        tokens[2] = value;
        tokens.splice(4..4, plain_tokens(data_type).ok_or_else(bad)?);
        Ok(tokens)
    };
    if value == "\\N" {
        return plain_tokens("NULL").ok_or_else(bad);
    }
    if data_type == "Identifier" {
        let quoted = Word { value: unescaped(value), quote_style: Some('`'), keyword: Keyword::NoKeyword };
        return Ok(vec![Token::Word(quoted)]);
    }
    if data_type.starts_with("Array(") {
        let tokens = plain_tokens(value).filter(|tokens| are_literals(tokens));
        return tokens.ok_or_else(bad);
    }
    let text = Token::SingleQuotedString(unescaped(value));
    if data_type == "String" { Ok(vec![text]) } else { cast(text) }
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
        let mut tokens = tokenize(sql).unwrap();
        let parameters = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        fill(&mut tokens, &parameters)?;
        Ok(tokens.iter().map(|token| token.token.to_string()).collect())
    }

    #[test]
    fn values_take_their_places() {
        for (sql, value, expected) in [
            ("SELECT {x:UInt64}", "5", "SELECT CAST('5'ASUInt64)"),
            // A token is shown without escapes.
            ("SELECT { x : String } ,1", "a\\'b\\tc", "SELECT 'a'b\tc' ,1"),
            ("SELECT {x:Nullable(UInt8)}", "\\N", "SELECT NULL"),
            ("SELECT * FROM {x:Identifier}", "t; DROP", "SELECT * FROM `t; DROP`"),
            ("k IN {x:Array(String)}", "['a', 'b']", "k IN ['a','b']"),
        ] {
            assert_eq!(filled(sql, &[("x", value)]).unwrap(), expected);
        }
    }

    #[test]
    fn a_value_is_never_more_than_a_value() {
        for value in ["[1] OR 1", "[1],[2]", "[(SELECT 1)]", "1", "[1", "]1[", ""] {
            assert_eq!(filled("{x:Array(UInt8)}", &[("x", value)]).unwrap_err().code, 457, "{value}");
        }
        let mut tokens = tokenize("{x:String}").unwrap();
        fill(&mut tokens, &[("x".into(), "' OR 1 --".into())].into()).unwrap();
        assert_eq!(tokens[0].token, Token::SingleQuotedString("' OR 1 --".into()));
        assert_eq!(filled("SELECT {y:String}", &[("x", "1")]).unwrap_err().code, 456);
        assert_eq!(filled("SELECT {y}", &[]).unwrap_err().code, 62);
    }
}
