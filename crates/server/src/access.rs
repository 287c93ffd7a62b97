//! Users: who may log in, and with what rights.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{PoisonError, RwLock};

use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{Argon2, Params};
use granary_sql::{Error, Rights};
use sha2::{Digest, Sha256};

/// The user of requests that name none, as in ClickHouse.
pub const DEFAULT_USER: &str = "default";

/// How a user is authenticated.
#[derive(Debug, Clone)]
pub enum Password {
    /// Not at all: without a password.
    None,
    /// By a password with this hash, `$argon2id$...`.
    Hashed(String),
}

/// A user of the configuration.
#[derive(Debug, Clone)]
pub struct User {
    /// The name, as sent with requests.
    pub name: String,
    /// How the user is authenticated.
    pub password: Password,
    /// The user's rights.
    pub rights: Rights,
}

/// All users who may log in.
#[derive(Debug)]
pub struct Users {
    known: HashMap<String, User>,
    /// Whether users were configured; otherwise everybody may log in.
    is_configured: bool,
    /// Hash compared for unknown users, so that timing does not reveal which users exist.
    nobody: Option<String>,
    /// Digests of passwords that were verified before: Argon2 is slow on purpose, and requests are many.
    verified: RwLock<HashMap<String, [u8; 32]>>,
}

/// Hashes a password for the configuration.
///
/// # Errors
/// The system has no random numbers.
pub fn hash_password(password: &str) -> io::Result<String> {
    let mut random = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let salt = SaltString::encode_b64(&random);
    let hash =
        salt.and_then(|salt| Ok(Argon2::default().hash_password(password.as_bytes(), &salt)?.to_string()));
    hash.map_err(|error| io::Error::other(error.to_string()))
}

/// Whether a text is a hash that passwords can be verified with.
pub fn is_password_hash(text: &str) -> bool {
    PasswordHash::new(text).is_ok_and(|hash| hash.algorithm.as_str().starts_with("argon2"))
}

/// What it costs to verify a password with this hash.
fn cost(hash: &str) -> u64 {
    let hash = PasswordHash::new(hash).ok();
    let parameters = hash.and_then(|hash| Params::try_from(&hash).ok()).unwrap_or_default();
    u64::from(parameters.m_cost()) * u64::from(parameters.t_cost())
}

impl Users {
    /// These users; `None`: everybody is `default`, and may do anything.
    pub fn new(users: Option<Vec<User>>) -> Self {
        let everybody =
            User { name: DEFAULT_USER.to_owned(), password: Password::None, rights: Rights::default() };
        let is_configured = users.is_some();
        let known = users.unwrap_or_else(|| vec![everybody]);
        let hash = |user: &User| match &user.password {
            Password::Hashed(hash) => Some(hash.clone()),
            Password::None => None,
        };
        let nobody = known.iter().filter_map(hash).max_by_key(|hash| cost(hash));
        let known = known.into_iter().map(|user| (user.name.clone(), user)).collect();
        Self { known, is_configured, nobody, verified: RwLock::default() }
    }

    /// Whether users were configured.
    pub fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// Whether a request must carry this name and password to be let in.
    pub fn requires_password(&self, name: &str, password: &str) -> bool {
        self.is_configured && (name, password) != (DEFAULT_USER, "")
    }

    /// Whether the password can be verified or refused without running Argon2.
    pub fn is_quick(&self, name: &str, password: &str) -> bool {
        match self.known.get(name).map(|user| &user.password) {
            Some(Password::Hashed(_)) => self.was_right(name, password),
            Some(Password::None) => true,
            None => self.nobody.is_none(),
        }
    }

    /// The rights of a user with this password.
    ///
    /// # Errors
    /// AUTHENTICATION_FAILED, which does not tell whether there is such a user.
    pub fn authenticate(&self, name: &str, password: &str) -> Result<Rights, Error> {
        let failed = || {
            Error::authentication_failed(format!(
                "{name}: Authentication failed: password is incorrect, or there is no user with such name"
            ))
        };
        let Some(user) = self.known.get(name) else {
            if let Some(Ok(hash)) = self.nobody.as_deref().map(PasswordHash::new) {
                let _ = Argon2::default().verify_password(password.as_bytes(), &hash);
            }
            return Err(failed());
        };
        match &user.password {
            Password::None => {}
            Password::Hashed(hash) => {
                if !self.was_right(name, password) {
                    let hash = PasswordHash::new(hash).map_err(|_| failed())?;
                    Argon2::default().verify_password(password.as_bytes(), &hash).map_err(|_| failed())?;
                    let mut verified = self.verified.write().unwrap_or_else(PoisonError::into_inner);
                    verified.insert(name.to_owned(), digest(password));
                }
            }
        }
        Ok(user.rights.clone())
    }

    fn was_right(&self, name: &str, password: &str) -> bool {
        let verified = self.verified.read().unwrap_or_else(PoisonError::into_inner);
        verified.get(name).is_some_and(|known| *known == digest(password))
    }
}

fn digest(password: &str) -> [u8; 32] {
    Sha256::digest(password.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_comes_in() {
        let hash = hash_password("secret").unwrap();
        assert!(is_password_hash(&hash) && !is_password_hash("secret"));
        let user = |name: &str, password| User { name: name.into(), password, rights: Rights::default() };
        let users =
            Users::new(Some(vec![user("ann", Password::Hashed(hash)), user("guest", Password::None)]));
        assert!(!users.is_quick("ann", "secret"));
        for _ in 0..2 {
            assert!(users.authenticate("ann", "secret").is_ok());
            assert!(users.is_quick("ann", "secret") && !users.is_quick("ann", "Secret"));
            assert_eq!(users.authenticate("ann", "Secret").unwrap_err().code, 516);
            assert_eq!(users.authenticate("ann", "").unwrap_err().code, 516);
        }
        assert!(users.authenticate("guest", "").is_ok());
        // The time of a refusal does not reveal whether the user exists.
        assert!(!users.is_quick("nobody", "secret"));
        let started = std::time::Instant::now();
        assert_eq!(users.authenticate("nobody", "secret").unwrap_err().code, 516);
        assert!(started.elapsed() > std::time::Duration::from_millis(2));
        assert_eq!(users.authenticate(DEFAULT_USER, "").unwrap_err().code, 516);
        assert!(Users::new(None).authenticate(DEFAULT_USER, "").is_ok());
    }
}
