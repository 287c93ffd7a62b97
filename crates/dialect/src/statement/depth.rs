//! The depth of a statement's tree, estimated from its tokens: parser, planner and other visitors recurse that deep, on
//! a bounded stack, and take ever longer.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::token_cursor::is_word;
use crate::error::{Error, Result};
use crate::limits::{AST_DEPTH_MAX, PARENTHESES_DEEP_MAX};

/// A chain of operators is as deep as it is long, each with its cost relative to an OR.
const EXPRESSION: usize = 4;
const CAST: usize = 8;
const JOIN: usize = 16;
const UNION: usize = 2;
const CONDITION: usize = 1;

/// Depths at one level of parentheses.
#[derive(Default, Clone, Copy)]
struct Level {
    /// Of the current operand of the condition.
    expression: usize,
    /// Of the current condition.
    condition: usize,
    /// Of the joined tables and united queries.
    relations: usize,
    /// Whether a comma is a join.
    in_from: bool,
}

impl Level {
    fn cost(self) -> usize {
        self.expression + self.condition + self.relations
    }

    fn read(&mut self, token: &Token) {
        match token {
            Token::Comma => {
                (self.expression, self.condition) = (0, 0);
                self.relations += if self.in_from { JOIN } else { 0 };
            }
            Token::DoubleColon => self.expression += CAST,
            Token::Word(_) => self.read_word(token),
            token if is_operator(token) => self.expression += EXPRESSION,
            _ => {}
        }
    }

    fn read_word(&mut self, word: &Token) {
        let is_one_of = |words: &[&str]| words.iter().any(|other| is_word(word, other));
        if is_one_of(&["AND", "OR", "XOR", "BETWEEN"]) {
            self.expression = 0;
            self.condition += CONDITION;
        } else if is_one_of(&["IS", "LIKE", "ILIKE", "IN", "NOT", "DIV", "MOD"]) {
            self.expression += EXPRESSION;
        } else if is_one_of(&["JOIN"]) {
            self.relations += JOIN;
        } else if is_one_of(&["UNION", "INTERSECT", "EXCEPT"]) {
            self.relations += UNION;
        } else if is_one_of(&[
            "SELECT", "FROM", "PREWHERE", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "WHEN", "THEN",
            "ELSE",
        ]) {
            (self.expression, self.condition) = (0, 0);
            self.in_from = is_word(word, "FROM");
        }
    }
}

fn is_operator(token: &Token) -> bool {
    use Token::*;
    matches!(
        token,
        Plus | Minus
            | Mul
            | Div
            | Mod
            | StringConcat
            | Eq
            | DoubleEq
            | Neq
            | Lt
            | LtEq
            | Gt
            | GtEq
            | LBracket
            | Question
            | Arrow
    )
}

/// Refuses a statement that is too deep, by its parentheses or by chains such as `1 + 1 + 1`.
///
/// # Errors
/// TOO_DEEP_RECURSION if parentheses nest more than [`PARENTHESES_DEEP_MAX`], TOO_DEEP_AST if the whole is deeper than
/// [`AST_DEPTH_MAX`].
pub fn check_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut around: Vec<(Level, usize)> = Vec::new();
    let (mut here, mut outside) = (Level::default(), 0);
    for TokenWithSpan { token, .. } in tokens {
        here.read(token);
        let opens =
            matches!(token, Token::LParen | Token::LBracket | Token::LBrace) || is_word(token, "CASE");
        let closes =
            matches!(token, Token::RParen | Token::RBracket | Token::RBrace) || is_word(token, "END");
        if opens {
            around.push((here, outside));
            outside += here.cost();
            here = Level::default();
        } else if closes && let Some(enclosing) = around.pop() {
            (here, outside) = enclosing;
        }
        if around.len() > PARENTHESES_DEEP_MAX {
            let message = format!("Parentheses are more than {PARENTHESES_DEEP_MAX} deep");
            return Err(Error::too_deep_recursion(message));
        }
        if outside + here.cost() > AST_DEPTH_MAX {
            return Err(Error::too_deep_ast(format!(
                "AST is too deep. Maximum: {AST_DEPTH_MAX}, where AND and OR count {CONDITION}, UNION {UNION}, other \
                 operators {EXPRESSION}, casts {CAST}, and joins {JOIN}"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use granary_dict::tokenize;

    fn code(sql: &str) -> i32 {
        check_depth(&tokenize(sql).unwrap()).map_or_else(|error| error.code, |()| 0)
    }

    #[test]
    fn chains_are_as_deep_as_they_are_long() {
        for (start, link, most) in [
            ("SELECT 1", "+1", 250),
            ("SELECT 1", "::Int8", 125),
            ("SELECT 1", " IS NULL", 250),
            ("SELECT [1]", "[1]", 249),
            ("SELECT 1", " OR x", 1000),
            ("SELECT 1 FROM a", ", a", 62),
            ("SELECT 1 FROM a", " CROSS JOIN a", 62),
            ("SELECT 1", " UNION ALL SELECT 1", 500),
            ("SELECT 1", "+ CASE WHEN 1 THEN 1 END", 250),
            ("SELECT 1", "+ (SELECT 1)", 250),
        ] {
            assert_eq!(code(&format!("{start}{}", link.repeat(most))), 0, "{link}");
            assert_eq!(code(&format!("{start}{}", link.repeat(most + 1))), 167, "{link}");
        }
        let deep = |n: usize| format!("SELECT {}1{}", "(1 + ".repeat(n), ")".repeat(n));
        assert_eq!((code(&deep(250)), code(&deep(251))), (0, 167));
        assert_eq!(code(&format!("SELECT {}", "(".repeat(257))), 306);
        assert_eq!(code(&format!("INSERT INTO t VALUES {}", "(1, -2, [3.5, 1 + 1]), ".repeat(5000))), 0);
        assert_eq!(code(&format!("SELECT {}1", "a + b AS c, x = 1 AND y = 2, ".repeat(5000))), 0);
        assert_eq!(code(&format!("SELECT x IN ({}1)", "-1, ".repeat(5000))), 0);
    }
}
