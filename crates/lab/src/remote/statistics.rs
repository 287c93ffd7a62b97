//! Statistics of a memcached server.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;

/// Maximum that memcached adds to key and value before it compares an item with its limit.
const ITEM_OVERHEAD_BYTES: u64 = 64;

/// Numbers and names in `stats` and its groups. Those that a server does not have are missing.
#[derive(Clone, Debug, Default)]
pub struct Statistics(HashMap<String, String>);

impl Statistics {
    /// Asks a server for groups; the empty name is plain `stats`.
    pub(super) fn ask(stream: &TcpStream, groups: &[&str]) -> io::Result<Self> {
        let mut found = HashMap::new();
        let mut lines = BufReader::new(stream).lines();
        for group in groups {
            let mut stream = stream;
            stream.write_all(format!("stats {group}").trim_end().as_bytes())?;
            stream.write_all(b"\r\n")?;
            loop {
                let line = lines.next().ok_or(io::ErrorKind::UnexpectedEof)??;
                match line.strip_prefix("STAT ").and_then(|line| line.split_once(' ')) {
                    // Different groups use the same name for different things.
                    Some((name, value)) => _ = found.insert(joined(group, name), value.to_owned()),
                    // `END`, or the error of a server that does not know the group.
                    None => break,
                }
            }
        }
        Ok(Self(found))
    }

    /// A number of a group.
    pub fn number(&self, group: &str, name: &str) -> Option<u64> {
        self.text(group, name)?.parse().ok()
    }

    /// The text of a statistic.
    pub fn text(&self, group: &str, name: &str) -> Option<&str> {
        self.0.get(&joined(group, name)).map(String::as_str)
    }

    /// Maximum bytes of an object (key and value), if the server reports it.
    pub fn object_bytes_max(&self) -> Option<u64> {
        self.number("settings", "item_size_max")?.checked_sub(ITEM_OVERHEAD_BYTES)
    }

    /// The difference of a counter between these statistics and later ones; 0 if there is no such counter.
    pub(super) fn counted_until(&self, later: &Self, group: &str, name: &str) -> u64 {
        let of = |statistics: &Self| statistics.number(group, name).unwrap_or(0);
        of(later).saturating_sub(of(self))
    }
}

fn joined(group: &str, name: &str) -> String {
    format!("{group} {name}")
}
