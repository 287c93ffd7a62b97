//! A bound on the RAM of a process and of the page cache that it fills: a control group of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Removed when this is dropped, after its process has ended.
pub struct MemoryLimit {
    group: PathBuf,
}

impl MemoryLimit {
    /// A group for `bytes`; `None`: the system does not let us make any.
    pub fn new(bytes: u64) -> Option<Self> {
        let name = format!("granary-study-{}", std::process::id());
        let versions = [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];
        versions.into_iter().find_map(|(root, limit)| {
            let this = Self { group: Path::new(root).join(&name) };
            fs::create_dir(&this.group).ok()?;
            fs::write(this.group.join(limit), bytes.to_string()).ok()?;
            Some(this)
        })
    }

    /// A command for a program that begins its life in the group.
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
        // An empty group left behind harms nobody.
        let _ = fs::remove_dir(&self.group);
    }
}
