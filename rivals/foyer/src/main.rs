//! Granary's crate and foyer at the same work, a line of JSON for each measurement: `rival-foyer --help`.

mod engine;
mod measure;

use engine::Kind;
use measure::{memory, restart, speed, stale};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "rival-foyer run [--rounds N] [--folder DIR] [--only WHAT] [--quick]
    All measurements, engines in turns; WHAT is speed, memory, stale or restart. The folder, /var/tmp unless said, has
    6 GB free and takes O_DIRECT.
rival-foyer child WHAT ENGINE FOLDER VALUE_BYTES ENTRIES
    One of them, in a process of its own.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["run", ..] => run(&words[1..]),
        ["child", what, engine, folder, value_bytes, entries] => {
            let kind = Kind::parse(engine).expect("an engine");
            let number = |word: &str| word.parse::<u64>().expect("a number");
            child(what, kind, Path::new(folder), number(value_bytes) as usize, number(entries));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{HELP}");
            ExitCode::FAILURE
        }
    }
}

fn child(what: &str, kind: Kind, folder: &Path, value_bytes: usize, entries: u64) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let work = tokio::spawn({
            let (what, folder) = (what.to_owned(), folder.to_owned());
            async move {
                match what.as_str() {
                    "speed" => speed::measure(kind, &folder, value_bytes, entries).await,
                    "memory" => memory::measure(kind, &folder, value_bytes, entries).await,
                    "stale" => stale::measure(kind, &folder, value_bytes, entries).await,
                    "reopen" => restart::reopen(kind, &folder, value_bytes, entries).await,
                    ending => restart::fill(kind, &folder, value_bytes, entries, ending).await,
                }
            }
        });
        work.await.expect("it ends well");
    });
}

/// A process for each measurement, so that none has what another one left.
fn run(words: &[&str]) -> ExitCode {
    let value_of =
        |name: &str| words.iter().position(|word| *word == name).and_then(|i| words.get(i + 1).copied());
    let rounds: u32 = value_of("--rounds").map_or(5, |word| word.parse().expect("a number"));
    let folder = PathBuf::from(value_of("--folder").unwrap_or("/var/tmp"));
    let only = value_of("--only");
    let quick = words.contains(&"--quick");
    let scale = |entries: u64| if quick { entries / 50 } else { entries };
    let works: [(&str, &[Kind], usize, u64); 8] = [
        ("speed", &Kind::SPEED, 1_000, 200_000),
        ("speed", &Kind::SPEED, 3_900, 200_000),
        ("speed", &Kind::SPEED, 16_000, 50_000),
        ("memory", &Kind::MEMORY, 100, 1_000_000),
        ("stale", &Kind::STALE, 3_900, 2_000),
        ("close", &Kind::RESTART, 1_000, 100_000),
        ("settle", &Kind::RESTART, 1_000, 100_000),
        ("at-once", &Kind::RESTART, 1_000, 100_000),
    ];
    for round in 0..rounds {
        for (what, kinds, value_bytes, entries) in works {
            let group = if ["close", "settle", "at-once"].contains(&what) { "restart" } else { what };
            if only.is_some_and(|only| only != group) {
                continue;
            }
            for kind in kinds {
                let folder = tempfile::tempdir_in(&folder).expect("a folder");
                let ending = what;
                let start = |what: &str| {
                    let mut command = Command::new(std::env::current_exe().expect("this program"));
                    command.args(["child", what, kind.name()]).arg(folder.path());
                    command.args([value_bytes.to_string(), scale(entries).to_string()]);
                    command.env("RIVAL_ROUND", round.to_string()).env("RIVAL_ENDING", ending);
                    command
                };
                let ended = match group {
                    "restart" => restart::restart(start, what),
                    _ => start(what).status().expect("it starts").success(),
                };
                if !ended {
                    eprintln!("{what} of {} failed", kind.name());
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}
