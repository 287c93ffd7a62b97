//! Formats tokens as ClickHouse does: `f(a, 'b') + -1`.

use datafusion::sql::sqlparser::tokenizer::{Token, Word};
use granary_dict::quote;

use super::token_cursor::{is_word, quoted};

/// Words that are no functions: a blank separates them from a parenthesis.
const NO_FUNCTIONS: &[&str] = &[
    "ALL", "AND", "AS", "BY", "CASE", "DISTINCT", "ELSE", "FROM", "HAVING", "IN", "INTERVAL", "JOIN", "KEY",
    "LIKE", "LIMIT", "NOT", "ON", "OR", "OVER", "PREWHERE", "SELECT", "SETTINGS", "THEN", "UNION", "USING",
    "VALUES", "WHEN", "WHERE", "WITH",
];

/// The text of some tokens, which tokenizes to the same ones.
pub fn spelled(tokens: &[Token]) -> String {
    let mut text = String::new();
    for (at, token) in tokens.iter().enumerate() {
        if at > 0 && is_apart(&tokens[..at], token) {
            text.push(' ');
        }
        match token {
            Token::SingleQuotedString(string) => text += &quote(string),
            Token::Word(word) if needs_quotes(word) => text += &quoted(&word.value),
            token => text += &token.to_string(),
        }
    }
    text
}

/// Whether a name needs backticks: it had them, or begins with a digit.
fn needs_quotes(word: &Word) -> bool {
    word.quote_style == Some('`') || word.value.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a blank separates a token from those before it, if any.
fn is_apart(before: &[Token], token: &Token) -> bool {
    let [earlier @ .., last] = before else { return false };
    match (last, token) {
        (Token::LParen | Token::LBracket | Token::LBrace | Token::Period | Token::DoubleColon, _) => false,
        (_, Token::RParen | Token::RBracket | Token::RBrace) => false,
        (_, Token::Comma | Token::Period | Token::SemiColon | Token::DoubleColon) => false,
        (Token::Minus | Token::Plus, _) => earlier.last().is_some_and(ends_operand),
        (last, Token::LParen | Token::LBracket) => !ends_operand(last),
        _ => true,
    }
}

/// Whether an operand may end here, so that an operator or a call's parenthesis follows.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) if word.quote_style.is_none() => {
            !NO_FUNCTIONS.iter().any(|name| is_word(token, name))
        }
        Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) => true,
        Token::RParen | Token::RBracket | Token::RBrace => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::split;

    #[test]
    fn blanks_are_where_clickhouse_has_them() {
        for (text, wanted) in [
            ("concat ( 'it\\'s', toString(a) )", "concat('it\\'s', toString(a))"),
            ("dictGet(02_db.d, `a\\`b`)", "dictGet(`02_db`.d, `a\\`b`)"),
            ("dictGet(`02_db`.d,'a',toUInt64( 0 ))", "dictGet(`02_db`.d, 'a', toUInt64(0))"),
            ("a - -1+f( -b )*(c -2)", "a - -1 + f(-b) * (c - 2)"),
            ("x IN(1,2) AND NOT(y)", "x IN (1, 2) AND NOT (y)"),
            ("a[1].b :: UInt8", "a[1].b::UInt8"),
            ("SELECT *FROM t WHERE x=[1 , 2]", "SELECT * FROM t WHERE x = [1, 2]"),
        ] {
            assert_eq!(spelled(&split(text).unwrap()[0].tokens), wanted);
        }
    }
}
