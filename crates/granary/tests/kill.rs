//! `granary local` killed with SIGKILL again and again while it fills, looks up and reloads.
//!
//! The source's answers carry a growing version. After each kill: no value older than the last acknowledged reload,
//! never another key's value, nothing for a key that the source does not have; and entries of sealed segments are
//! served without asking the source.
//!
//! GRANARY_KILLS: number of kills (20). GRANARY_SEED: another sequence of events.

#[path = "server/program.rs"]
mod program;
#[path = "../../cache/tests/common/room.rs"]
mod room;
#[path = "../../log/tests/common/skip.rs"]
mod skip;
#[path = "server/unlocked.rs"]
mod unlocked;

use program::granary;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const KEYS: u64 = 20_000;
/// The source has no multiples of this key; its program agrees.
const ABSENT: u64 = 7;
/// Maximum life of a process, in milliseconds.
const LIFE_MS_MAX: u64 = 250;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// The known state of the source, and what the program acknowledged.
struct World {
    folder: PathBuf,
    /// The newest version that the source may have answered with.
    newest: u64,
    /// Older versions than this must not be seen.
    oldest: u64,
    checked: u64,
}

impl World {
    fn new(folder: &Path) -> World {
        let world = World { folder: folder.to_owned(), newest: 1, oldest: 1, checked: 0 };
        world.write_version();
        world
    }

    fn write_version(&self) {
        let unfinished = self.folder.join("version.new");
        std::fs::write(&unfinished, self.newest.to_string()).unwrap();
        std::fs::rename(&unfinished, self.folder.join("version")).unwrap();
    }

    /// Values of some 150 bytes: a few hundred fill a segment, and the file is written around several times.
    /// In one of two files. Which one it is says the statement that is there last.
    fn replace(&self, path: &str) -> String {
        self.create().replace("CREATE", "CREATE OR REPLACE").replace("PATH 'd'", &format!("PATH '{path}'"))
    }

    fn create(&self) -> String {
        let version = self.folder.join("version");
        let program = r#"$1 % 7 {print $1 "\tk" $1 "v" v "v" pad}"#.replace('\\', r"\\");
        format!(
            "CREATE DICTIONARY d (id UInt64, value String DEFAULT 'none') PRIMARY KEY id \
             SOURCE(EXECUTABLE(COMMAND 'awk -v v=$(cat {}) -v pad=$(printf %120s | tr \" \" x) \\'{program}\\'' \
             FORMAT 'TabSeparated')) LIFETIME(MIN 1 MAX 60) \
             LAYOUT(SSD_CACHE(PATH 'd' FILE_SIZE 2097152 WRITE_BUFFER_SIZE 65536 MEMORY_CACHE_SIZE 200000));",
            version.display()
        )
    }

    fn check(&mut self, line: &str) {
        let (key, value) = line.split_once('\t').unwrap_or_else(|| panic!("{line:?} is no row"));
        let key: u64 = key.parse().unwrap();
        self.checked += 1;
        if key.is_multiple_of(ABSENT) {
            assert_eq!(value, "none", "key {key}, which the source does not have");
            return;
        }
        let version = value
            .strip_prefix(&format!("k{key}v"))
            .and_then(|rest| rest.split_once('v'))
            .unwrap_or_else(|| panic!("key {key} has the value {value:?}"));
        let version: u64 = version.0.parse().unwrap();
        assert!(
            (self.oldest..=self.newest).contains(&version),
            "key {key} came back in version {version}; since the last reload it is {}..={}",
            self.oldest,
            self.newest
        );
    }
}

/// One life of the program. Its methods return `None` once it is dead.
struct Life {
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Without it, it is killed before its lifetime is over.
    keeper: Sender<()>,
    end: JoinHandle<()>,
}

impl Life {
    fn start(folder: &Path, lifetime: Option<Duration>) -> Life {
        unlocked::await_unlocked(&folder.join("data"));
        let mut child: Child = granary()
            .args(["local", "--allow-executable", "--path"])
            .arg(folder.join("data"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let (keeper, kept) = channel();
        let end = std::thread::spawn(move || match lifetime {
            Some(lifetime) => {
                let _ = kept.recv_timeout(lifetime);
                child.kill().unwrap();
                let status = child.wait().unwrap();
                assert!(status.code().is_none(), "it was killed, and did not end by itself: {status}");
            }
            None => assert!(child.wait().unwrap().success()),
        });
        Life { input, output, keeper, end }
    }

    /// Runs a statement and returns its rows; `None` if the program died before it answered.
    fn ask(&mut self, statement: &str) -> Option<Vec<String>> {
        writeln!(self.input, "{statement}\nSELECT 'end of the answer';").ok()?;
        let mut rows = Vec::new();
        loop {
            match self.output.next()?.ok()? {
                line if line == "end of the answer" => return Some(rows),
                line => rows.push(line),
            }
        }
    }

    fn look_up(&mut self, world: &mut World, first: u64, count: u64) -> Option<()> {
        let rows = self.ask(&format!(
            "SELECT number + {first}, dictGet('d', 'value', number + {first}) FROM numbers({count});"
        ))?;
        assert_eq!(rows.len() as u64, count);
        rows.iter().for_each(|row| world.check(row));
        Some(())
    }

    /// Looks up the first `keys` keys; returns how many needed no source.
    fn look_up_all(&mut self, world: &mut World, keys: u64) -> Option<u64> {
        let counter = "SELECT keys_hit FROM system.dictionaries;";
        let before: u64 = self.ask(counter)?[0].parse().unwrap();
        self.look_up(world, 0, keys)?;
        Some(self.ask(counter)?[0].parse::<u64>().unwrap() - before)
    }

    /// Performs operations until it is killed.
    fn live(&mut self, world: &mut World, random: &mut Random) -> Option<()> {
        loop {
            match random.below(9) {
                8 => {
                    // The old entries go with the old dictionary, however much of the change a kill leaves undone.
                    world.newest += 1;
                    world.write_version();
                    self.ask(&world.replace(["d", "e"][random.below(2) as usize]))?;
                    world.oldest = world.newest;
                }
                0 => {
                    // The version is written before the reload: keys asked for after it have this version or a later
                    // one.
                    world.newest += 1;
                    world.write_version();
                    self.ask("SYSTEM RELOAD DICTIONARY d;")?;
                    world.oldest = world.newest;
                }
                1 => {
                    // Expired entries are asked for again and may change; others keep their version.
                    world.newest += 1;
                    world.write_version();
                }
                _ => {
                    let count = 1 + random.below(4000);
                    self.look_up(world, random.below(KEYS - count), count)?;
                }
            }
        }
    }
}

#[test]
fn kills_bring_nothing_back_and_lose_little() {
    let started = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    let mut random = Random(setting("GRANARY_SEED", 0x9E37_79B9_7F4A_7C15) | 1);
    let mut life = Life::start(folder.path(), None);
    life.ask(&world.create()).expect("it lives");
    life.look_up(&mut world, 0, KEYS).expect("it lives");
    drop(life.input);
    life.end.join().unwrap();

    let (kills, mut warm_lives, mut hits) = (setting("GRANARY_KILLS", 20), 0, 0);
    for _ in 0..kills {
        let lifetime = Duration::from_millis(random.below(LIFE_MS_MAX));
        let mut life = Life::start(folder.path(), Some(lifetime));
        // Some lives begin by looking everything up, others directly with a change.
        if random.below(2) == 0
            && let Some(warm) = life.look_up_all(&mut world, KEYS)
        {
            warm_lives += u64::from(warm > 0);
            hits += warm;
        }
        let _ = life.live(&mut world, &mut random);
        life.end.join().unwrap();
    }

    let mut life = Life::start(folder.path(), None);
    hits += life.look_up_all(&mut world, KEYS).expect("it lives");
    let warm = life.look_up_all(&mut world, KEYS).expect("it lives");
    let corrupt = life.ask("SELECT flash_blocks_corrupt, rows_bad FROM system.dictionaries;").unwrap();
    drop(life.input);
    life.end.join().unwrap();
    println!(
        "{kills} kills in {:?}: {} values checked, {hits} of them found after a kill in {warm_lives} lives, \
         newest version {}",
        started.elapsed(),
        world.checked,
        world.newest
    );
    assert_eq!(corrupt, ["0\t0"]);
    assert!(warm > 0 && hits > 0, "sealed segments are served without the source: {hits}, then {warm}");
}

/// Rows that are in RAM and in write buffers only, none of which was full, are there after a kill.
#[test]
fn a_kill_leaves_what_is_in_ram_only() {
    if !room::has_room(64 << 20) {
        return skip::skipped("no room in /dev/shm: what is in RAM alone does not outlive a kill");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut world = World::new(folder.path());
    let create = world.create().replace("WRITE_BUFFER_SIZE 65536", "WRITE_BUFFER_SIZE 1048576");
    let mut life = Life::start(folder.path(), Some(Duration::from_secs(60)));
    life.ask(&create.replace("LIFETIME(MIN 1 MAX 60)", "LIFETIME(0)")).expect("it lives");
    life.look_up(&mut world, 0, 2000).expect("it lives");
    drop(life.keeper);
    life.end.join().unwrap();
    let mut life = Life::start(folder.path(), None);
    assert_eq!(life.look_up_all(&mut world, 2000), Some(2000));
    drop(life.input);
    life.end.join().unwrap();
}
