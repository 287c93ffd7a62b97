//! A server's figures, for other code in the same process.

use crate::engine::{ServerState, Since};
use crate::protocol::Group;
use std::collections::HashMap;
use std::sync::Weak;

/// The groups of statistics that are read, and the prefixes of their names.
const GROUPS: [(Group, &str); 3] =
    [(Group::General, ""), (Group::Settings, "settings."), (Group::Granary, "granary.")];

/// Reads the figures of a server; does not keep it from stopping.
#[derive(Clone, Debug)]
pub struct Stats(pub(super) Weak<ServerState>);

impl Stats {
    /// Returns the whole numbers that `stats` answers, by name; those of `stats settings` and `stats granary` have
    /// their group as a prefix (`granary.hits_flash`). `stats reset` does not reset them. The map is empty once the
    /// server has stopped.
    pub fn read(&self) -> HashMap<String, u64> {
        let Some(shared) = self.0.upgrade() else { return HashMap::new() };
        let mut figures = HashMap::new();
        for (group, prefix) in GROUPS {
            let mut answer = Vec::new();
            shared.stats(group, Since::Start, None, 0, &mut answer);
            let figure = |line: &str| {
                let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
                Some((format!("{prefix}{name}"), value.parse::<u64>().ok()?))
            };
            figures.extend(String::from_utf8_lossy(&answer).lines().filter_map(figure));
        }
        figures
    }
}
