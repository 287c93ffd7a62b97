//! Queries: tokens preprocessed, and parsed.

use std::collections::HashMap;
use std::fmt::Display;

use datafusion::sql::sqlparser::ast::{Expr, Statement};
use datafusion::sql::sqlparser::dialect::ClickHouseDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use granary_dict::tokenize;

use super::braces::quote_maps;
use super::depth::check_depth;
use super::preprocess::{TrailingClauses, preprocess, separate_values};
use super::size::check_lists;
use super::with::{NamedExpression, take_named_expressions};
use crate::error::{Error, Result};

/// A parsed query, not yet rewritten.
pub struct ParsedQuery {
    /// Its syntax tree.
    pub statement: Statement,
    /// The expressions named by its WITH.
    pub named: HashMap<String, Expr>,
    /// The clauses after it.
    pub trailing: TrailingClauses,
}

/// Parses the query after the first `head` tokens of a text.
///
/// # Errors
/// SYNTAX_ERROR, MULTIPLE_EXPRESSIONS_FOR_ALIAS of WITH, and TOO_DEEP_AST or TOO_BIG_AST for what would take too long
/// to plan.
pub fn parse_query(text: &str, head: usize) -> Result<ParsedQuery> {
    let mut tokens = tokens(text)?;
    check_numbers(&tokens)?;
    check_depth(&tokens)?;
    check_lists(&tokens)?;
    let trailing = preprocess(&mut tokens);
    tokens.drain(..head.min(tokens.len()));
    quote_maps(&mut tokens);
    separate_values(&mut tokens);
    let named = take_named_expressions(&mut tokens);
    let mut parser = Parser::new(&ClickHouseDialect {}).with_tokens_with_locations(tokens);
    let statement = parser.parse_statement().map_err(wrong)?;
    check_end(&parser)?;
    let mut expressions: HashMap<String, Expr> = HashMap::new();
    for NamedExpression { name, tokens } in named {
        let mut parser = Parser::new(&ClickHouseDialect {}).with_tokens_with_locations(tokens);
        let expr = parser.parse_expr().map_err(wrong)?;
        check_end(&parser)?;
        if let Some(other) = expressions.get(&name).filter(|other| **other != expr) {
            return Err(Error::two_expressions_for_alias(&name, &expr, other));
        }
        expressions.insert(name, expr);
    }
    Ok(ParsedQuery { statement, named: expressions, trailing })
}

/// Parses a single expression.
///
/// # Errors
/// SYNTAX_ERROR.
pub fn parse_expression(text: &str) -> Result<Expr> {
    let mut tokens = tokens(text)?;
    preprocess(&mut tokens);
    Parser::new(&ClickHouseDialect {}).with_tokens_with_locations(tokens).parse_expr().map_err(wrong)
}

fn tokens(text: &str) -> Result<Vec<TokenWithSpan>> {
    tokenize(text).map_err(wrong)
}

/// Refuses a number directly followed by a name, which would become its alias: `0x1p3` is 8 in ClickHouse.
fn check_numbers(tokens: &[TokenWithSpan]) -> Result<()> {
    let is_one = |pair: &[TokenWithSpan]| {
        matches!(pair[0].token, Token::Number(..))
            && matches!(pair[1].token, Token::Word(_))
            && pair[0].span.end == pair[1].span.start
    };
    match tokens.windows(2).find(|pair| is_one(pair)) {
        None => Ok(()),
        Some(pair) => {
            let (number, name) = (&pair[0].token, &pair[1].token);
            Err(Error::syntax_error(format!("Syntax error: {name} right behind the number {number}")))
        }
    }
}

fn check_end(parser: &Parser<'_>) -> Result<()> {
    let TokenWithSpan { token, span } = parser.peek_token();
    match token {
        Token::EOF => Ok(()),
        token => Err(wrong(format_args!("unexpected {token}{}", span.start))),
    }
}

/// The error of a text that is no SQL, in the words of one sentence, whoever found it.
pub(super) fn wrong(error: impl Display) -> Error {
    let text = error.to_string();
    let text = text.strip_prefix("sql parser error: ").unwrap_or(&text);
    let text = text.replacen("Expected: ", "expected ", 1).replacen(", found: EOF", ", found the end", 1);
    let text = text.replacen(", found: ", ", found ", 1).replacen(" at Line: ", " at line ", 1);
    Error::syntax_error(format!("Syntax error: {}", text.replacen(", Column: ", ", column ", 1)))
}
