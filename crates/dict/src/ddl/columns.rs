//! The list of columns: `name Type [DEFAULT literal] [EXPRESSION e] [HIERARCHICAL] [BIDIRECTIONAL] ..`, options in any
//! order.

use super::default_text;
use super::tokens::Tokens;
use crate::definition::{Attribute, Hierarchy, Injectivity, Literal, ObjectId};
use crate::error::DictError;
use crate::limits;
use crate::types::DataType;
use sqlparser::tokenizer::Token;

const OPTIONS: [&str; 6] =
    ["DEFAULT", "EXPRESSION", "HIERARCHICAL", "BIDIRECTIONAL", "INJECTIVE", "IS_OBJECT_ID"];
const EXPECTED: &str =
    "',' or ')' or one of DEFAULT, EXPRESSION, HIERARCHICAL [BIDIRECTIONAL], INJECTIVE, IS_OBJECT_ID";

/// Reads `( .. )`. PRIMARY KEY says later which columns are the key.
pub(super) fn parse(tokens: &mut Tokens<'_>) -> Result<Vec<Attribute>, DictError> {
    let clause = "the list of columns";
    tokens.expect(&Token::LParen, clause)?;
    let mut columns = Vec::new();
    loop {
        columns.push(column(tokens)?);
        if columns.len() > limits::COLUMNS_MAX {
            return Err(DictError::definition(format!(
                "A dictionary has at most {} columns",
                limits::COLUMNS_MAX
            )));
        }
        if tokens.take(&Token::RParen) {
            return Ok(columns);
        }
        tokens.expect(&Token::Comma, clause).map_err(|_| tokens.unexpected(clause, EXPECTED))?;
        // A trailing comma is allowed.
        if tokens.take(&Token::RParen) {
            return Ok(columns);
        }
    }
}

fn column(tokens: &mut Tokens<'_>) -> Result<Attribute, DictError> {
    let name = tokens.identifier("the list of columns", "the name of a column")?;
    let clause = format!("column {name}");
    let from = tokens.position();
    tokens.identifier(&clause, "a type")?;
    if tokens.take(&Token::LParen) {
        skip_nested(tokens, &clause, PARENTHESES)?;
    }
    let data_type = DataType::parse(tokens.text_since(from)).map_err(|e| e.within(&clause))?;
    let mut column = Attribute::new(name, data_type);
    let mut given = Vec::new();
    while let Some(option) = OPTIONS.into_iter().find(|option| tokens.keyword(option)) {
        if given.contains(&option) {
            return Err(DictError::syntax(format!("Syntax error in {clause}: {option} is given twice")));
        }
        given.push(option);
        match option {
            "DEFAULT" => {
                let literal = literal(tokens, &clause)?;
                column.default = Some(match column.data_type.inner() {
                    DataType::String => default_text::as_text(literal).map_err(|e| e.within(&clause))?,
                    _ => literal,
                });
            }
            "EXPRESSION" => column.expression = Some(expression(tokens, &clause)?),
            "INJECTIVE" => column.injectivity = Injectivity::Injective,
            "IS_OBJECT_ID" => column.object_id = ObjectId::Yes,
            _ => {}
        }
    }
    column.hierarchy = match ["HIERARCHICAL", "BIDIRECTIONAL"].map(|option| given.contains(&option)) {
        [false, false] => Hierarchy::Flat,
        [true, false] => Hierarchy::Hierarchical,
        [true, true] => Hierarchy::Bidirectional,
        [false, true] => {
            let what = format!("{clause}: BIDIRECTIONAL can only be said of a HIERARCHICAL attribute");
            return Err(DictError::bad_arguments(what));
        }
    };
    Ok(column)
}

/// A number, a string, NULL, true, false or an array of these, as DEFAULT takes it.
fn literal(tokens: &mut Tokens<'_>, clause: &str) -> Result<Literal, DictError> {
    let expected = "a literal (a number, a string, NULL, true, false, or an array of these)";
    let sign = if tokens.take(&Token::Minus) {
        "-"
    } else {
        tokens.take(&Token::Plus);
        ""
    };
    let literal = match tokens.peek() {
        Some(Token::LBracket) if sign.is_empty() => return array(tokens, clause),
        Some(Token::Number(text, _)) => Literal::Bare(format!("{sign}{text}")),
        Some(Token::SingleQuotedString(text)) if sign.is_empty() => Literal::Quoted(text.clone()),
        Some(Token::Word(word)) if word.quote_style.is_none() => {
            match word.value.to_ascii_lowercase().as_str() {
                "null" if sign.is_empty() => Literal::Null,
                flag @ ("true" | "false") if sign.is_empty() => Literal::Bare(flag.to_string()),
                float @ ("nan" | "inf") => Literal::Bare(format!("{sign}{float}")),
                _ => return Err(tokens.unexpected(clause, expected)),
            }
        }
        _ => return Err(tokens.unexpected(clause, expected)),
    };
    tokens.skip();
    Ok(literal)
}

/// `[ .. ]`, as it is written.
fn array(tokens: &mut Tokens<'_>, clause: &str) -> Result<Literal, DictError> {
    let from = tokens.position();
    tokens.skip();
    skip_nested(tokens, clause, BRACKETS)?;
    Ok(Literal::Bare(tokens.text_since(from).to_string()))
}

/// Everything up to the next option, comma or closing parenthesis of the list.
fn expression(tokens: &mut Tokens<'_>, clause: &str) -> Result<String, DictError> {
    let from = tokens.position();
    loop {
        match tokens.peek() {
            Some(Token::Comma | Token::RParen) => break,
            Some(Token::LParen) => {
                tokens.skip();
                skip_nested(tokens, clause, PARENTHESES)?;
            }
            Some(_) if OPTIONS.iter().any(|option| tokens.peek_keyword(option)) => break,
            Some(_) => tokens.skip(),
            None => return Err(tokens.unexpected(clause, "')'")),
        }
    }
    match tokens.text_since(from) {
        "" => Err(tokens.unexpected(clause, "an expression")),
        text if tokens.position() > from => Ok(text.to_string()),
        _ => Err(tokens.unexpected(clause, "an expression")),
    }
}

const PARENTHESES: [Token; 2] = [Token::LParen, Token::RParen];
const BRACKETS: [Token; 2] = [Token::LBracket, Token::RBracket];

/// Skips past the token that closes the one just taken.
fn skip_nested(
    tokens: &mut Tokens<'_>,
    clause: &str,
    [opening, closing]: [Token; 2],
) -> Result<(), DictError> {
    let mut depth = 1;
    while depth > 0 {
        match tokens.peek() {
            Some(token) if *token == opening => depth += 1,
            Some(token) if *token == closing => depth -= 1,
            Some(_) => {}
            None => return Err(tokens.unexpected(clause, &format!("'{closing}'"))),
        }
        tokens.skip();
    }
    Ok(())
}
