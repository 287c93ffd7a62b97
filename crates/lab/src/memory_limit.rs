//! A bound on the RAM of a process, including its page cache: a control group of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// The file with the limit, in version 1 and in version 2 of control groups.
const VERSIONS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// Number of groups made by this process, for their names. A group that could not be removed does no harm.
static GROUPS: AtomicU64 = AtomicU64::new(0);

/// A control group, removed on drop, after its process has ended.
pub struct MemoryLimit {
    group: PathBuf,
}

impl MemoryLimit {
    /// A new group for `bytes`.
    ///
    /// # Errors
    /// The system refuses to make one.
    pub fn new(bytes: u64) -> io::Result<Self> {
        let name = format!("granary-study-{}-{}", std::process::id(), GROUPS.fetch_add(1, Ordering::Relaxed));
        let make = |(root, limit): (&str, &str)| {
            let group = Path::new(root).join(&name);
            fs::create_dir(&group)?;
            let this = Self { group };
            fs::write(this.group.join(limit), bytes.to_string())?;
            Ok(this)
        };
        make(VERSIONS[0]).or_else(|first: io::Error| {
            // Of the two errors, that of the mounted version is more useful.
            make(VERSIONS[1]).map_err(|second| if Path::new(VERSIONS[0].0).exists() { first } else { second })
        })
    }

    /// A command that starts a program in the group.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.group.join("cgroup.procs"))
            .arg(program);
        command
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        // An empty group left behind does no harm.
        let _ = fs::remove_dir(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_groups_of_their_own() {
        let [Ok(one), Ok(other)] = [1 << 30, 1 << 30].map(MemoryLimit::new) else { return };
        assert_ne!(one.group, other.group);
        assert!(one.command("true").status().unwrap().success());
    }
}
