//! Tuples in forms that the parser does not read: it takes `t.1` for a name and the number 0.1, and `(1,)` and `()` for
//! errors.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::preprocess::ends_expression;
use super::token_cursor::is_word;

/// `.1` directly after an expression is a period and a position in a tuple, which gets single quotes: names have
/// others.
pub fn separate_places(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        let (before, here) = (&tokens[at - 1], &tokens[at]);
        let touches = before.span.end == here.span.start && ends_expression(&before.token);
        if let Token::Number(text, false) = &here.token
            && touches
            && let Some(place) = text.strip_prefix('.')
            && place.bytes().all(|byte| byte.is_ascii_digit())
        {
            let place = TokenWithSpan { token: Token::SingleQuotedString(place.to_owned()), span: here.span };
            tokens[at].token = Token::Period;
            tokens.insert(at + 1, place);
            at += 1;
        }
        at += 1;
    }
}

/// `(1,)` is a tuple of one element, `()` of none.
pub fn close(tokens: &mut Vec<TokenWithSpan>) {
    let mut open = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].token {
            Token::LParen => open.push(at),
            Token::RParen => {
                let start = open.pop().unwrap_or_default();
                let before = start.checked_sub(1).map(|before| &tokens[before].token);
                let of_call =
                    before.is_some_and(|token| matches!(token, Token::Word(_)) && ends_expression(token));
                let is_list = before.is_some_and(|token| is_word(token, "IN"));
                let is_tuple = if at == start + 1 {
                    !of_call && !is_empty_group(tokens, start, open.last().copied())
                } else if at > start + 2 && tokens[at - 1].token == Token::Comma && !of_call {
                    tokens.remove(at - 1);
                    at -= 1;
                    !is_list
                } else {
                    false
                };
                if is_tuple {
                    let span = tokens[start].span;
                    tokens.insert(start, TokenWithSpan { token: Token::make_word("tuple", Some('`')), span });
                    at += 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Whether `()` is an empty list or group: after BY or IN, or within GROUPING SETS.
fn is_empty_group(tokens: &[TokenWithSpan], start: usize, around: Option<usize>) -> bool {
    let before = |at: usize| at.checked_sub(1).map(|before| &tokens[before].token);
    let is_behind = |at: usize, word: &str| before(at).is_some_and(|token| is_word(token, word));
    is_behind(start, "BY") || is_behind(start, "IN") || around.is_some_and(|around| is_behind(around, "SETS"))
}

#[cfg(test)]
mod tests {
    use crate::statement::preprocess::preprocess;
    use granary_dict::tokenize;

    fn preprocessed(sql: &str) -> String {
        let mut tokens = tokenize(sql).unwrap();
        preprocess(&mut tokens);
        let texts: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
        texts.join(" ")
    }

    #[test]
    fn places_in_tuples() {
        assert_eq!(
            preprocessed("SELECT t.1, f(x).2.3, (1, 2).1"),
            "SELECT t . '1' , f ( x ) . '2' . '3' , ( 1 , 2 ) . '1'"
        );
        assert_eq!(preprocessed("SELECT .5, 1 + .5"), "SELECT .5 , 1 + .5");
    }

    #[test]
    fn tuples_of_one() {
        assert_eq!(
            preprocessed("SELECT (1,), f((2,)), x IN (3,)"),
            "SELECT `tuple` ( 1 ) , f ( `tuple` ( 2 ) ) , x IN ( 3 )"
        );
        assert_eq!(preprocessed("SELECT f(1,)"), "SELECT f ( 1 , )");
        assert_eq!(preprocessed("SELECT (), f(), f(())"), "SELECT `tuple` ( ) , f ( ) , f ( `tuple` ( ) )");
        for sql in ["x IN ( )", "GROUP BY ( )", "GROUP BY GROUPING SETS ( ( a ) , ( ) )"] {
            assert_eq!(preprocessed(sql), sql);
        }
    }
}
