//! Brings the words before JOIN into the order that the parser knows.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::token_cursor::is_word;

const WORDS: &[&str] = &["GLOBAL", "ANY", "ALL", "SEMI", "ANTI", "INNER", "LEFT", "RIGHT", "FULL", "OUTER"];

/// `SEMI RIGHT JOIN` becomes `RIGHT SEMI JOIN`, `ANTI JOIN` becomes `LEFT ANTI JOIN`. ALL is the default, and GLOBAL
/// means nothing on one server: the parser's GLOBAL represents ANY, which it lacks.
pub fn order(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while at < tokens.len() {
        if !is_word(&tokens[at].token, "JOIN") {
            at += 1;
            continue;
        }
        let is_one = |token: &TokenWithSpan| WORDS.iter().any(|word| is_word(&token.token, word));
        let words = tokens[..at].iter().rev().take_while(|token| is_one(token)).count();
        let run = &tokens[at - words..at];
        let has = |word: &str| run.iter().any(|token| is_word(&token.token, word));
        let strictness = if has("SEMI") {
            Some(("SEMI", Keyword::SEMI))
        } else if has("ANTI") {
            Some(("ANTI", Keyword::ANTI))
        } else {
            None
        };
        let side = if has("RIGHT") {
            Some(("RIGHT", Keyword::RIGHT))
        } else if has("FULL") {
            Some(("FULL", Keyword::FULL))
        } else if has("LEFT") || strictness.is_some() {
            Some(("LEFT", Keyword::LEFT))
        } else {
            has("INNER").then_some(("INNER", Keyword::INNER))
        };
        let any = has("ANY").then_some(("GLOBAL", Keyword::GLOBAL));
        let span = tokens[at].span;
        let made: Vec<TokenWithSpan> = [any, side, strictness]
            .into_iter()
            .flatten()
            .map(|(value, keyword)| {
                let word = Word { value: value.to_owned(), quote_style: None, keyword };
                TokenWithSpan { token: Token::Word(word), span }
            })
            .collect();
        let length = made.len();
        tokens.splice(at - words..at, made);
        at = at - words + length + 1;
    }
}

/// `USING a, b` becomes `USING (a, b)`.
pub fn parenthesise_using(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 0;
    while let Some(using) = tokens[at..].iter().position(|token| is_word(&token.token, "USING")) {
        let begin = at + using + 1;
        let is_name = |at: usize| matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_)));
        let is_comma = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Comma);
        let mut end = begin;
        if is_name(begin) {
            end = begin + 1;
            while is_comma(end) && is_name(end + 1) {
                end += 2;
            }
            let span = tokens[begin].span;
            tokens.insert(end, TokenWithSpan { token: Token::RParen, span });
            tokens.insert(begin, TokenWithSpan { token: Token::LParen, span });
        }
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use granary_dict::tokenize;

    #[test]
    fn columns_of_using_are_in_parentheses() {
        for (text, wanted) in [
            ("a JOIN b USING id", "a JOIN b USING ( id )"),
            ("a JOIN b USING x, `y z` WHERE 1", "a JOIN b USING ( x , `y z` ) WHERE 1"),
            ("a JOIN b USING (x) JOIN c USING y", "a JOIN b USING ( x ) JOIN c USING ( y )"),
            ("a JOIN b USING", "a JOIN b USING"),
        ] {
            let mut tokens = tokenize(text).unwrap();
            tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
            parenthesise_using(&mut tokens);
            let texts: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(texts.join(" "), wanted);
        }
    }

    #[test]
    fn words_before_join_are_put_in_order() {
        for (text, wanted) in [
            ("a ANY LEFT JOIN b", "a GLOBAL LEFT JOIN b"),
            ("a LEFT ANY JOIN b", "a GLOBAL LEFT JOIN b"),
            ("a ANY JOIN b", "a GLOBAL JOIN b"),
            ("a GLOBAL ALL INNER JOIN b", "a INNER JOIN b"),
            ("a SEMI RIGHT JOIN b", "a RIGHT SEMI JOIN b"),
            ("a ANTI JOIN b", "a LEFT ANTI JOIN b"),
            ("a FULL OUTER JOIN b JOIN c", "a FULL JOIN b JOIN c"),
            ("a LEFT ARRAY JOIN b", "a LEFT ARRAY JOIN b"),
            ("any(left)", "any ( left )"),
        ] {
            let mut tokens = tokenize(text).unwrap();
            tokens.retain(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
            order(&mut tokens);
            let texts: Vec<String> = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(texts.join(" "), wanted);
        }
    }
}
