//! The users who may log in: a file of lines `user:password`, as for memcached's `-Y`.

use crate::limits::USERS_MAX;
use std::io;
use std::path::Path;

/// Users and their passwords.
#[derive(Clone, Debug, Default)]
pub struct Users {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Users {
    /// Reads a file; only the first [`USERS_MAX`] users count.
    pub fn read(path: &Path) -> io::Result<Self> {
        Self::parse(&std::fs::read(path)?)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a line is not user:password"))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let pair = |line: &[u8]| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line[..colon].to_vec(), line[colon + 1..].to_vec()))
        };
        let pairs: Option<Vec<_>> = lines.filter(|line| !line.is_empty()).map(pair).take(USERS_MAX).collect();
        pairs.filter(|pairs| !pairs.is_empty()).map(|pairs| Self { pairs })
    }

    /// Whether this user has this password. Takes the same time for all names and passwords of the same length.
    pub fn accepts(&self, user: &[u8], password: &[u8]) -> bool {
        let found = self.pairs.iter().filter(|pair| same(&pair.0, user) & same(&pair.1, password));
        found.count() > 0
    }
}

fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && std::hint::black_box(a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b))) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_user_and_password() {
        let users = Users::parse(b"ann:secret\r\nbob:a:b\n").unwrap();
        assert!(users.accepts(b"ann", b"secret") && users.accepts(b"bob", b"a:b"));
        for (user, password) in [("ann", "secre"), ("ann", "a:b"), ("", ""), ("bob", "")] {
            assert!(!users.accepts(user.as_bytes(), password.as_bytes()));
        }
        assert!(Users::parse(b"").is_none() && Users::parse(b"ann\n").is_none());
    }

    #[test]
    fn the_first_eight_users_count() {
        let lines: String = (1..=9).map(|i| format!("user{i}:{i}\n")).collect();
        let users = Users::parse(lines.as_bytes()).unwrap();
        let known = |i: &u32| users.accepts(format!("user{i}").as_bytes(), i.to_string().as_bytes());
        assert_eq!((1..=9).filter(known).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
