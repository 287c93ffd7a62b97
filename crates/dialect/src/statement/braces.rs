//! Maps in VALUES: `{'a':1}` is no SQL elsewhere; ClickHouse reads it there as the column's type reads texts.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::parameters::written;
use super::token_cursor::is_word;

/// Quotes each pair of braces after VALUES, with its content, as a text.
pub fn quote_maps(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.first().is_some_and(|token| is_word(&token.token, "VALUES")) {
        return;
    }
    let mut at = 1;
    while at < tokens.len() {
        if tokens[at].token == Token::LBrace
            && let Some(length) = closed(&tokens[at..])
        {
            let text: String = tokens[at..at + length].iter().map(|token| written(&token.token)).collect();
            let quoted = TokenWithSpan { token: Token::SingleQuotedString(text), span: tokens[at].span };
            tokens.splice(at..at + length, [quoted]);
        }
        at += 1;
    }
}

/// The number of tokens from a brace to its closing one.
fn closed(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0usize;
    let end = tokens.iter().position(|token| {
        match token.token {
            Token::LBrace => depth += 1,
            Token::RBrace => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    end.map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let mut tokens = granary_dict::tokenize(text).unwrap();
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        quote_maps(&mut tokens);
        tokens.iter().map(|token| written(&token.token)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn braces_behind_values_are_texts() {
        assert_eq!(quoted("VALUES ({}, 1)"), "VALUES ( '{}' , 1 )");
        assert_eq!(
            quoted(r"VALUES ({'it\'s' : -1.5, 'b':NULL}), ([{1:{'x':[2]}}])"),
            r"VALUES ( '{\'it\\\'s\':-1.5,\'b\':NULL}' ) , ( [ '{1:{\'x\':[2]}}' ] )"
        );
        assert_eq!(quoted("VALUES ({'a':1)"), "VALUES ( { 'a' : 1 )");
        assert_eq!(quoted("SELECT {'a':1}"), "SELECT { 'a' : 1 }");
    }
}
