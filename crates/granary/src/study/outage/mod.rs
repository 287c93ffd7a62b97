//! `granary study outage`: many connections to a dictionary server whose PostgreSQL fails and comes back.

mod client;
mod faults;
mod kind;
mod page;
mod size;
mod tally;
mod watch;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use clap::Args;

use crate::failure::{Failure, Result, at};
use crate::scratch::Scratch;
use crate::study::machine;
use crate::study::postgres::Postgres;
use crate::study::process::free_port;
use crate::study::served::Served;
use client::{Keys, Speech};
use kind::KINDS;
use size::OutageStudySize;

/// Arguments of `granary study outage`.
#[derive(Args)]
pub struct OutageStudyArguments {
    /// Where outage.md and outage.csv go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// How long the server is asked
    #[arg(long, value_name = "N", default_value_t = 600, value_parser = clap::value_parser!(u64).range(30..=86_400))]
    seconds: u64,

    /// Connections that ask, half of them by SQL
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(2..=1000))]
    connections: u64,

    /// 24 seconds and a small table: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,

    /// What else is to be known of the machine, such as who worked on it meanwhile
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Folder for all data; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,
}

/// Runs the study, writes the page, and fails if there was an unexpected error.
pub fn run(arguments: &OutageStudyArguments) -> Result<()> {
    let connections = arguments.connections as usize;
    let size = match arguments.quick {
        true => OutageStudySize::quick(connections),
        false => OutageStudySize::full(arguments.seconds, connections),
    };
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let scratch = Scratch::new(&arguments.data)?;
    let postgres = Postgres::start(&scratch.path.join("postgres"))?;
    postgres.ask(&format!(
        "CREATE TABLE users (id int8 PRIMARY KEY, name text, balance int8); INSERT INTO users \
         SELECT i, 'user ' || i, i * 7 FROM generate_series(0, {}) i",
        size.rows - 1
    ))?;
    postgres.ask("VACUUM ANALYZE users")?;
    postgres.ask("CHECKPOINT")?;
    let served = Served::start(&scratch.path.join("granary"), free_port()?)?;
    let mut keys = Keys { of: Default::default(), rows: size.rows };
    for (kind, keys) in KINDS.into_iter().zip(&mut keys.of) {
        *keys = kind.prepare(&size, &served, &postgres)?;
    }
    let mut notes = machine::describe(&scratch.path);
    notes.extend(arguments.note.clone());
    notes.push(format!("Granary: {}", env!("CARGO_PKG_VERSION")));
    notes.push(format!("PostgreSQL: {}", postgres.version()?));
    say!("{}", notes.join("\n"));

    let (postgres, is_there, start) = (Mutex::new(postgres), AtomicBool::new(true), Instant::now());
    let (requests, windows, samples) = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..size.connections)
            .map(|i| {
                let speech = if i % 2 == 0 { Speech::Rows } else { Speech::Sql };
                let (url, keys, end) = (&served.url, &keys, start + size.time);
                scope.spawn(move || client::ask(url, speech, keys, i as u64, end))
            })
            .collect();
        let watcher = scope.spawn(|| watch::watch(&size, start, &postgres, &served, &is_there));
        let say = |there| is_there.store(there, Ordering::SeqCst);
        let windows = faults::happen(&size, start, &postgres, &served, say);
        let requests: Vec<_> =
            clients.into_iter().flat_map(|client| client.join().expect("no panic")).collect();
        (requests, windows, watcher.join().expect("no panic"))
    });
    let windows = windows?;
    let tallies = tally::judge(&requests, &windows);
    served.stop()?;

    let page = page::OutagePage {
        size: &size,
        notes: &notes,
        start,
        windows: &windows,
        tallies: &tallies,
        samples: &samples,
    };
    say!("\n{}\n\n{}\n\n{}\n", page.answers().text(), page.outages().text(), page.course().text());
    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    write("outage.md", page.text())?;
    write("outage.csv", page.csv())?;
    say!("Written: outage.md and outage.csv in {}", arguments.out.display());
    match tallies.faults() {
        0 => Ok(()),
        _ => Err(Failure::Answer(tallies.examples.join("\n"))),
    }
}
