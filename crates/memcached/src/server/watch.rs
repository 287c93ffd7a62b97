//! A server's figures, for whoever watches it from within the process.

use crate::engine::Shared;
use crate::protocol::Group;
use std::collections::HashMap;
use std::sync::Weak;

/// The groups that are read, and what their names begin with.
const GROUPS: [(Group, &str); 3] =
    [(Group::General, ""), (Group::Settings, "settings."), (Group::Granary, "granary.")];

/// Reads the figures of a server, which can be stopped meanwhile.
#[derive(Clone, Debug)]
pub struct Stats(pub(super) Weak<Shared>);

impl Stats {
    /// Returns the whole numbers that `stats` answers, by name; those of `stats settings` and `stats granary` have
    /// their group in front (`granary.hits_flash`). A server that has stopped has none.
    pub fn read(&self) -> HashMap<String, u64> {
        let Some(shared) = self.0.upgrade() else { return HashMap::new() };
        let mut figures = HashMap::new();
        for (group, prefix) in GROUPS {
            let mut answer = Vec::new();
            shared.stats(group, None, 0, &mut answer);
            let figure = |line: &str| {
                let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
                Some((format!("{prefix}{name}"), value.parse::<u64>().ok()?))
            };
            figures.extend(String::from_utf8_lossy(&answer).lines().filter_map(figure));
        }
        figures
    }
}
