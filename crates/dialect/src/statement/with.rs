//! `WITH 5 AS x SELECT ...`: the parser knows only `WITH x AS (SELECT ...)`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_cursor::is_word;

/// An expression and its name, which is an alias in the whole query.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedExpression {
    pub name: String,
    pub tokens: Vec<TokenWithSpan>,
}

/// Takes named expressions out of the WITH at the beginning of a query.
pub fn take_named_expressions(tokens: &mut Vec<TokenWithSpan>) -> Vec<NamedExpression> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    if !is(0, "WITH") || is(1, "RECURSIVE") {
        return Vec::new();
    }
    let mut depth = 0usize;
    let mut ends = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(1) {
        match &token.token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket => depth = depth.saturating_sub(1),
            Token::Comma if depth == 0 => ends.push(at),
            token if depth == 0 && is_word(token, "SELECT") => {
                ends.push(at);
                break;
            }
            _ => {}
        }
    }
    let Some(&select) = ends.last() else { return Vec::new() };
    let (mut named, mut kept) = (Vec::new(), Vec::new());
    let mut start = 1;
    for end in ends {
        match name(&tokens[start..end]) {
            Some(name) => named.push(NamedExpression { name, tokens: tokens[start..end - 2].to_vec() }),
            None => {
                let between = if kept.is_empty() { 0 } else { start - 1 };
                kept.push(tokens[between].clone());
                kept.extend_from_slice(&tokens[start..end]);
            }
        }
        start = end + 1;
    }
    tokens.splice(..select, kept);
    named
}

/// The name after an expression; `None` if it is a subquery after its name.
fn name(item: &[TokenWithSpan]) -> Option<String> {
    if let [_, second, third, ..] = item
        && is_word(&second.token, "AS")
        && third.token == Token::LParen
    {
        return None;
    }
    match item {
        [_, .., before, TokenWithSpan { token: Token::Word(word), .. }] if is_word(&before.token, "AS") => {
            Some(word.value.clone())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::preprocess::preprocess;
    use granary_dict::tokenize;

    #[test]
    fn expressions_are_taken_and_subqueries_stay() {
        for (sql, rest, names) in [
            ("WITH 5 AS x SELECT x", "SELECT x", &["x"][..]),
            (
                "WITH 1 AS x, t AS (SELECT 2), f(3, 4) AS y SELECT 1",
                "WITH t AS ( SELECT 2 ) SELECT 1",
                &["x", "y"],
            ),
            ("WITH (SELECT 1) AS x SELECT x", "SELECT x", &["x"]),
            (
                "WITH a AS (SELECT 1), b AS (SELECT 2) SELECT 1",
                "WITH a AS ( SELECT 1 ) , b AS ( SELECT 2 ) SELECT 1",
                &[],
            ),
            ("SELECT 1", "SELECT 1", &[]),
        ] {
            let mut tokens = tokenize(sql).unwrap();
            preprocess(&mut tokens);
            let named = take_named_expressions(&mut tokens);
            let found: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
            let texts: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!((texts.join(" ").as_str(), found.as_slice()), (rest, names), "{sql}");
        }
    }
}
