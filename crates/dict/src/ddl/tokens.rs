//! The statement as tokens, and a cursor over them.

use crate::error::DictError;
use crate::limits;
use crate::tokens::tokenize;
use sqlparser::tokenizer::{Location, Token};

/// A cursor over the tokens of one statement, blanks and comments left out.
pub(super) struct Tokens<'a> {
    sql: &'a str,
    tokens: Vec<Placed>,
    at: usize,
}

/// A token and the bytes of the statement it came from.
struct Placed {
    token: Token,
    start: usize,
    end: usize,
}

impl<'a> Tokens<'a> {
    pub fn new(sql: &'a str) -> Result<Self, DictError> {
        if sql.len() > limits::STATEMENT_BYTES_MAX {
            return Err(DictError::syntax(format!(
                "The statement is longer than {} bytes",
                limits::STATEMENT_BYTES_MAX
            )));
        }
        let tokens = tokenize(sql).map_err(|e| DictError::syntax(format!("Syntax error: {e}")))?;
        let mut offsets = Offsets { sql, at: 0, line: 1, column: 1 };
        let mut placed = Vec::new();
        for token in tokens {
            let start = offsets.advance(token.span.start);
            let end = offsets.advance(token.span.end);
            if !matches!(token.token, Token::Whitespace(_) | Token::EOF) {
                placed.push(Placed { token: token.token, start, end });
            }
        }
        Ok(Self { sql, tokens: placed, at: 0 })
    }

    pub fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    pub fn position(&self) -> usize {
        self.at
    }

    /// The text from token `from` up to where the cursor is.
    pub fn text_since(&self, from: usize) -> &'a str {
        match (self.tokens.get(from), self.at.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some(first), Some(last)) if first.start <= last.end => &self.sql[first.start..last.end],
            _ => "",
        }
    }

    pub fn skip(&mut self) {
        self.at += 1;
    }

    /// Takes an unquoted word if it is this keyword.
    pub fn keyword(&mut self, keyword: &str) -> bool {
        let is = self.peek_keyword(keyword);
        self.at += usize::from(is);
        is
    }

    pub fn peek_keyword(&self, keyword: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(word))
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    pub fn expect_keyword(&mut self, keyword: &str, clause: &str) -> Result<(), DictError> {
        if self.keyword(keyword) { Ok(()) } else { Err(self.unexpected(clause, keyword)) }
    }

    pub fn take(&mut self, token: &Token) -> bool {
        let is = self.peek() == Some(token);
        self.at += usize::from(is);
        is
    }

    pub fn expect(&mut self, token: &Token, clause: &str) -> Result<(), DictError> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(clause, &format!("'{token}'"))) }
    }

    /// A name: a word, or anything in backticks or double quotes.
    pub fn identifier(&mut self, clause: &str, what: &str) -> Result<String, DictError> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let name = word.value.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(clause, what)),
        }
    }

    /// A whole number.
    pub fn number(&mut self, clause: &str) -> Result<u64, DictError> {
        let number = match self.peek() {
            Some(Token::Number(text, _)) => text.parse().ok(),
            _ => None,
        };
        self.at += usize::from(number.is_some());
        number.ok_or_else(|| self.unexpected(clause, "a whole number"))
    }

    pub fn string(&mut self, clause: &str) -> Result<String, DictError> {
        match self.peek() {
            Some(Token::SingleQuotedString(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.unexpected(clause, "a string in single quotes")),
        }
    }

    /// A syntax error at the cursor.
    pub fn unexpected(&self, clause: &str, expected: &str) -> DictError {
        match self.tokens.get(self.at) {
            Some(placed) => {
                let found: String = self.sql[placed.start..placed.end].chars().take(40).collect();
                let position = placed.start + 1;
                DictError::syntax(format!(
                    "Syntax error in {clause}: at position {position} ({found}): expected {expected}"
                ))
            }
            None => DictError::syntax(format!(
                "Syntax error in {clause}: at the end of the statement: expected {expected}"
            )),
        }
    }
}

/// Turns the tokenizer's lines and columns (in characters) into byte offsets, going forward only.
struct Offsets<'a> {
    sql: &'a str,
    at: usize,
    line: u64,
    column: u64,
}

impl Offsets<'_> {
    fn advance(&mut self, to: Location) -> usize {
        while (self.line, self.column) < (to.line, to.column) {
            let Some(next) = self.sql[self.at..].chars().next() else { break };
            self.at += next.len_utf8();
            if next == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.at
    }
}
