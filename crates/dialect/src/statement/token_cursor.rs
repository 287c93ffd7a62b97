//! A cursor over the tokens of a statement.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::command::OnConflict;
use super::spelled::spelled;
use crate::error::{Error, Result};
use crate::full_name::FullName;

/// The remaining tokens of a statement.
pub struct TokenCursor<'a> {
    tokens: &'a [Token],
}

/// `database.name` or `name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The database, if it is given.
    pub database: Option<String>,
    /// The name in it.
    pub name: String,
}

impl<'a> TokenCursor<'a> {
    pub fn new(tokens: &'a [Token]) -> Self {
        Self { tokens }
    }

    /// Takes the words if all of them come next, in any case.
    pub fn take(&mut self, words: &[&str]) -> bool {
        let next = self.tokens.get(..words.len());
        let same =
            next.is_some_and(|tokens| tokens.iter().zip(words).all(|(token, word)| is_word(token, word)));
        if same {
            self.tokens = &self.tokens[words.len()..];
        }
        same
    }

    /// IF EXISTS.
    pub fn if_exists(&mut self) -> OnConflict {
        if self.take(&["IF", "EXISTS"]) { OnConflict::Ignore } else { OnConflict::Error }
    }

    /// IF NOT EXISTS.
    pub fn if_not_exists(&mut self) -> OnConflict {
        if self.take(&["IF", "NOT", "EXISTS"]) { OnConflict::Ignore } else { OnConflict::Error }
    }

    /// Takes the rest as a query. Returns the number of tokens before it, in a statement of `length`.
    pub fn query(&mut self, length: usize) -> usize {
        let head = length - self.left();
        self.tokens = &[];
        head
    }

    /// A single identifier.
    pub fn identifier(&mut self) -> Result<String> {
        match self.tokens.split_first() {
            Some((Token::Word(word), rest)) => {
                self.tokens = rest;
                Ok(word.value.clone())
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// A name with or without a database, or `'db.name'` in quotes.
    pub fn name(&mut self) -> Result<Name> {
        self.refuse_cluster()?;
        let name = match self.tokens {
            [Token::SingleQuotedString(text), rest @ ..] => {
                self.tokens = rest;
                let mut readings = FullName::readings(text);
                match (readings.next(), readings.next()) {
                    (None, _) => Name { database: None, name: text.clone() },
                    (Some(name), None) => Name { database: Some(name.database), name: name.name },
                    (Some(_), Some(_)) => {
                        return Err(Error::bad_arguments(format!(
                            "'{text}' may be several names: write the database and the name in backticks"
                        )));
                    }
                }
            }
            _ => {
                let first = self.identifier()?;
                match self.token(&Token::Period) {
                    true => Name { database: Some(first), name: self.identifier()? },
                    false => Name { database: None, name: first },
                }
            }
        };
        self.refuse_cluster()?;
        Ok(name)
    }

    /// Refuses ON CLUSTER, which may stand before or after a name.
    ///
    /// # Errors
    /// CLUSTER_DOESNT_EXIST: there are no clusters.
    pub fn refuse_cluster(&mut self) -> Result<()> {
        if !self.take(&["ON", "CLUSTER"]) {
            return Ok(());
        }
        let cluster = self.string().or_else(|_| self.identifier())?;
        Err(Error::cluster_doesnt_exist(format!(
            "Requested cluster '{cluster}' not found; run the statement on each server"
        )))
    }

    /// Names, separated by commas.
    pub fn names(&mut self) -> Result<Vec<Name>> {
        let mut names = vec![self.name()?];
        while self.comma() {
            names.push(self.name()?);
        }
        Ok(names)
    }

    /// A string literal.
    pub fn string(&mut self) -> Result<String> {
        match self.tokens.split_first() {
            Some((Token::SingleQuotedString(text), rest)) => {
                self.tokens = rest;
                Ok(text.clone())
            }
            _ => Err(self.unexpected("a string")),
        }
    }

    /// `name = value`, the value as text.
    pub fn setting(&mut self) -> Result<(String, String)> {
        let name = self.identifier()?;
        match self.tokens {
            [Token::Eq, value, rest @ ..] => {
                self.tokens = rest;
                let text = match value {
                    Token::SingleQuotedString(text) => text.clone(),
                    other => other.to_string(),
                };
                Ok((name, text))
            }
            _ => Err(self.unexpected("= and a value")),
        }
    }

    /// Takes a comma if it comes next.
    pub fn comma(&mut self) -> bool {
        self.token(&Token::Comma)
    }

    /// Takes a token if it comes next.
    pub fn token(&mut self, token: &Token) -> bool {
        match self.tokens.split_first() {
            Some((next, rest)) if next == token => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }

    /// The next token.
    pub fn peek(&self) -> Option<&'a Token> {
        self.tokens.first()
    }

    /// All remaining tokens.
    pub fn rest(&self) -> &'a [Token] {
        self.tokens
    }

    /// The tokens taken since [`rest`](Self::rest) returned `rest`.
    pub fn since(&self, rest: &'a [Token]) -> &'a [Token] {
        &rest[..rest.len() - self.tokens.len()]
    }

    /// The text of an expression, up to a token outside of its parentheses for which `ends` holds.
    ///
    /// # Errors
    /// SYNTAX_ERROR if there is none.
    pub fn expression(&mut self, ends: impl Fn(&Token) -> bool) -> Result<String> {
        let (rest, mut depth) = (self.rest(), 0usize);
        while let Some(token) = self.peek() {
            match token {
                token if depth == 0 && ends(token) => break,
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.any();
        }
        match self.since(rest) {
            [] => Err(self.unexpected("an expression")),
            tokens => Ok(spelled(tokens)),
        }
    }

    /// The number of remaining tokens.
    pub fn left(&self) -> usize {
        self.tokens.len()
    }

    /// Takes the next token.
    pub fn any(&mut self) -> Option<&'a Token> {
        let (next, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(next)
    }

    /// A word that must come next.
    pub fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(&[word]) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    /// FORMAT X, if it comes next, and then the end.
    pub fn format_and_end(&mut self) -> Result<Option<String>> {
        let format = if self.take(&["FORMAT"]) { Some(self.identifier()?) } else { None };
        match self.tokens {
            [] => Ok(format),
            _ => Err(self.unexpected("the end of the statement")),
        }
    }

    pub fn unexpected(&self, wanted: &str) -> Error {
        match self.tokens.first() {
            Some(token) => Error::syntax_error(format!("Syntax error: expected {wanted}, found {token}")),
            None => Error::syntax_error(format!(
                "Syntax error: expected {wanted}, found the end of the statement"
            )),
        }
    }
}

/// A name in SQL's quotes.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

pub fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}
