//! `granary demo`: a dictionary of a million users, kept on SSD and filled from a real database.

mod cities;
mod events;
mod pass;
mod users;

use std::path::{Path, PathBuf};

use clap::Args;
use granary_lab::Report;
use granary_sql::format::Format;
use indicatif::{HumanBytes, HumanCount};

use crate::client::Client;
use crate::failure::{Failure, Result, at};
use pass::Pass;

/// Arguments of `granary demo`.
#[derive(Args)]
pub struct DemoArguments {
    /// Folder for the database, the events and the dictionary; made if it is not there
    #[arg(long, value_name = "DIR", default_value = "granary-demo")]
    path: PathBuf,

    /// Rows of the table that the dictionary is over
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    users: u64,

    /// Events to look up; one in a hundred is of a user whom nobody has
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(100..=1_000_000_000))]
    events: u64,
}

/// Files named in DDL start here, as in ClickHouse.
const USER_FILES: &str = "user_files";
const DATABASE: &str = "users.db";
const EVENTS: &str = "events.parquet";

/// The lifetime is one to two days: entries are fresh when the user tries what the last lines suggest. RAM is a quarter
/// of the default, so that SSD is read.
const CREATE: &str = "\
CREATE OR REPLACE DICTIONARY users
(
    id UInt64,
    name String,
    city String DEFAULT 'unknown',
    score Float64,
    signed_up Date
)
PRIMARY KEY id
SOURCE(SQLITE(PATH 'users.db' TABLE 'users'))
LIFETIME(MIN 86400 MAX 172800)
LAYOUT(SSD_CACHE(PATH 'users' BLOCK_SIZE 4096 WRITE_BUFFER_SIZE 1048576 FILE_SIZE 268435456
    MEMORY_CACHE_SIZE 4194304))";

fn query(events: &Path) -> String {
    format!(
        "\
SELECT user.city AS city,
       count() AS events,
       round(avg(user.score), 2) AS mean_score,
       countIf(user.signed_up >= toDate('2024-01-01')) AS by_new_users
FROM (SELECT dictGet('users', ('city', 'score', 'signed_up'), user_id) AS user FROM '{}')
GROUP BY city
ORDER BY events DESC, city
LIMIT 12",
        events.display().to_string().replace('\\', r"\\").replace('\'', r"\'")
    )
}

/// Makes the missing files, looks all events up three times, and prints the results.
pub fn run(arguments: &DemoArguments) -> Result<()> {
    let folder = arguments.path.join(USER_FILES);
    let database = folder.join(DATABASE);
    let events = folder.join(EVENTS);
    claim(&arguments.path, &events)?;
    // Locks the folder before anything in it is changed.
    let client = Client::open(&arguments.path, false)?;
    let made = users::make(&database, arguments.users)?;
    say_made(made, arguments.users, "users", &database);
    let made = events::make(&events, arguments.users, arguments.events)?;
    say_made(made, arguments.events, "events", &events);

    let query = query(&events);
    client.ask(CREATE)?;
    say!("\nA dictionary over the table, its entries on SSD, its index in RAM:\n\n{CREATE};\n");
    say!("Each event asks it for three attributes of its user:\n\n{query};\n");

    let run = |client: &Client| Pass::run(client, &query, arguments.events);
    let cold = run(&client)?;
    let warm = run(&client)?;
    drop(client);
    let client = Client::open(&arguments.path, false)?;
    let reopened = run(&client)?;
    let answer = client.answer(&query, Format::PrettyCompact, None)?;
    drop(client);

    say!("{}", answer.text);
    say!("{}\n", table(&[("cold", &cold), ("warm", &warm), ("closed and opened", &reopened)]).text());
    say_what_it_means(&cold, &warm, &reopened);
    say_next(&arguments.path, &events);
    Ok(())
}

/// Makes the demo's folder, or finds that of an earlier demo.
///
/// # Errors
/// The folder has other files: the demo replaces `users.db`, `events.parquet` and the dictionary `users`.
fn claim(path: &Path, events: &Path) -> Result<()> {
    let note = events::note(events);
    if note.exists() {
        return Ok(());
    }
    let folder = path.join(USER_FILES);
    std::fs::create_dir_all(&folder).map_err(at(&folder))?;
    let holds = |folder: &Path, most: usize| Ok(std::fs::read_dir(folder)?.count() > most);
    // Nothing but the folder of files, which is empty.
    if holds(path, 1).map_err(at(path))? || holds(&folder, 0).map_err(at(&folder))? {
        return Err(Failure::Argument(format!(
            "{} has files that are not of a demo, which replaces the database and the dictionary called users: \
             give `granary demo --path` a new folder",
            path.display()
        )));
    }
    std::fs::write(&note, "").map_err(at(&note))
}

fn say_made(made: Made, rows: u64, what: &str, path: &Path) {
    let verb = match made {
        Made::Now => "Made",
        Made::Before => "Found",
    };
    say!("{verb} {} {what} in {}", HumanCount(rows), path.display());
}

/// Whether a file was there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Now,
    Before,
}

fn table(passes: &[(&str, &Pass)]) -> Report {
    let headings: Vec<&str> = std::iter::once("").chain(passes.iter().map(|(name, _)| *name)).collect();
    let mut report = Report::new(&headings);
    let mut row = |name: &str, value: &dyn Fn(&Pass) -> String| {
        report.row(std::iter::once(name.to_owned()).chain(passes.iter().map(|(_, pass)| value(pass))));
    };
    let count = |n: u64| HumanCount(n).to_string();
    row("seconds", &|p| format!("{:.2}", p.seconds));
    row("lookups per second", &|p| count((p.lookups as f64 / p.seconds) as u64));
    row("hit ratio", &|p| format!("{:.2} %", 100.0 * p.hits as f64 / p.lookups as f64));
    row("  found in RAM", &|p| count(p.hits_memory));
    row("  found on SSD", &|p| count(p.hits_flash));
    row("requests to SQLite", &|p| count(p.source_requests));
    row("  keys asked", &|p| count(p.source_keys));
    row("  rows fetched", &|p| count(p.source_rows));
    row("blocks read from SSD", &|p| count(p.block_reads));
    row("written to SSD", &|p| HumanBytes(p.bytes_written).to_string());
    row("entries", &|p| count(p.entries));
    row("RAM per entry, index", &|p| format!("{:.2} bytes", p.index_bytes as f64 / p.entries.max(1) as f64));
    row("RAM in all", &|p| HumanBytes(p.bytes_allocated).to_string());
    report
}

fn say_what_it_means(cold: &Pass, warm: &Pass, reopened: &Pass) {
    say!(
        "Cold, SQLite was asked for {} users; warm for {}, and after closing and opening for {}:\n\
         that it does not have a user is remembered too. 4 MiB of the most wanted entries are in RAM, the rest \
         on SSD.\n",
        HumanCount(cold.source_keys),
        HumanCount(warm.source_keys),
        HumanCount(reopened.source_keys),
    );
}

fn say_next(path: &Path, events: &Path) {
    let (path, events) = (path.display(), events.display());
    say!(
        "Try next:\n  \
         granary local --path {path} -q \"SELECT number, dictGet('users', ('name', 'city', 'signed_up'), number) \
         FROM numbers(5)\"\n  \
         granary local --path {path} --time -q \"SELECT count() FROM '{events}' WHERE NOT dictHas('users', user_id)\"\n  \
         granary local --path {path} -q \"SELECT * FROM system.dictionaries FORMAT Vertical\""
    );
}
