//! The characters that a database's encoding has, where that is not UTF-8. A key with another one is in no table, and
//! the server would refuse all keys that are sent with it.

use super::driver::Session;
use crate::error::DictError;
use std::collections::{BTreeSet, HashMap};
use tokio_postgres::error::SqlState;

/// Encodings that have all characters, or no characters but bytes.
const WHOLE: [&str; 2] = ["UTF8", "SQL_ASCII"];

/// The characters that the database's encoding is known to have or to lack.
#[derive(Default)]
pub(super) struct Repertoire {
    /// Whether the encoding has a character, of those that were asked for.
    known: HashMap<char, bool>,
}

impl Repertoire {
    /// `None`: the encoding has all characters.
    pub fn of(session: &mut Session) -> Result<Option<Repertoire>, DictError> {
        let Session { client, driver } = session;
        let row = driver.wait(client.query_one("SELECT getdatabaseencoding()::text", &[]))?;
        let encoding: String = row.get(0);
        Ok((!WHOLE.contains(&encoding.as_str())).then(Repertoire::default))
    }

    /// Learns which characters of these texts the encoding has.
    pub fn learn<'t>(
        &mut self,
        session: &mut Session,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<(), DictError> {
        let is_new = |character: &char| !character.is_ascii() && !self.known.contains_key(character);
        let asked: BTreeSet<char> = texts.flat_map(str::chars).filter(is_new).collect();
        let asked: Vec<char> = asked.into_iter().collect();
        if !asked.is_empty() {
            self.ask(session, &asked)?;
        }
        Ok(())
    }

    /// Whether a text can be in the database.
    pub fn has(&self, text: &str) -> bool {
        text.is_ascii() || text.chars().all(|c| c.is_ascii() || self.known.get(&c) == Some(&true))
    }

    /// Asks for all characters together; if that fails, for halves of them.
    fn ask(&mut self, session: &mut Session, characters: &[char]) -> Result<(), DictError> {
        let Session { client, driver } = &mut *session;
        let text: String = characters.iter().collect();
        let are_there = driver.wait(async {
            match client.query_one("SELECT $1::text", &[&text]).await {
                Ok(_) => Ok(true),
                Err(e) if e.code() == Some(&SqlState::UNTRANSLATABLE_CHARACTER) => Ok(false),
                Err(e) => Err(e),
            }
        })?;
        match characters {
            &[one] => _ = self.known.insert(one, are_there),
            all if are_there => self.known.extend(all.iter().map(|&character| (character, true))),
            some => {
                let (first, second) = some.split_at(some.len() / 2);
                self.ask(session, first)?;
                self.ask(session, second)?;
            }
        }
        Ok(())
    }
}
