//! A process that works in a folder until it is killed, and reports its progress. It is the test's own program, which
//! runs a test by the name of `worker`.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that tells the process its folder and its numbers.
const WORK: &str = "GRANARY_TEST_KILLED_WORK";

/// The file of the process's progress: 2 * n while operation n runs, 2 * n + 1 when it is done; 0 at the start.
const PROGRESS: &str = "progress";

/// The process's folder and `N` numbers. `None`: this is not the worker process.
pub fn told<const N: usize>() -> Option<(PathBuf, [u64; N])> {
    let work = std::env::var(WORK).ok()?;
    let (folder, numbers) = work.split_once('|').unwrap();
    let numbers: Vec<u64> = numbers.split('|').map(|number| number.parse().unwrap()).collect();
    Some((folder.into(), numbers.try_into().unwrap()))
}

/// Carries out operations, from number `from` on, until the process is killed.
pub fn carry_out(folder: &Path, from: u64, mut operation: impl FnMut(u64), mut then: impl FnMut(u64)) {
    let progress = File::options().write(true).open(folder.join(PROGRESS)).unwrap();
    let say = |reached: u64| progress.write_all_at(&reached.to_le_bytes(), 0).unwrap();
    for n in from.. {
        say(2 * n);
        operation(n);
        say(2 * n + 1);
        then(n);
    }
}

/// The process, killed at the latest when this is dropped.
pub struct Worker {
    child: Child,
    progress: PathBuf,
}

impl Worker {
    /// Starts it.
    pub fn start(folder: &Path, numbers: &[u64]) -> Self {
        let progress = folder.join(PROGRESS);
        std::fs::write(&progress, 0u64.to_le_bytes()).unwrap();
        let numbers: String = numbers.iter().map(|number| format!("|{number}")).collect();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "worker"]).env(WORK, format!("{}{numbers}", folder.display()));
        Self { child: command.stdout(Stdio::null()).spawn().unwrap(), progress }
    }

    /// The progress so far.
    fn reached(&self) -> u64 {
        u64::from_le_bytes(std::fs::read(&self.progress).unwrap().try_into().unwrap())
    }

    /// Waits until it has begun operation `n`.
    pub fn wait_for_operation(&mut self, n: u64) {
        let until = Instant::now() + Duration::from_secs(60);
        while self.reached() < 2 * n {
            assert!(self.child.try_wait().unwrap().is_none(), "the process has ended by itself");
            assert!(Instant::now() < until, "the process does not reach operation {n}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the process, and returns its progress.
    pub fn kill(mut self) -> u64 {
        self.end();
        self.reached()
    }

    fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}
