//! `granary study proxy`: a real ClickHouse and a real PostgreSQL, with and without Granary between them.

mod contender;
mod hop;
mod lives;
mod page;
mod size;
mod stream;

use std::path::PathBuf;

use clap::Args;
use granary_lab::{ClickHouse, bars};

use crate::failure::{Result, at};
use crate::scratch::Scratch;
use crate::study::machine;
use crate::study::postgres::Postgres;
use size::ProxyStudySize;
use stream::Stream;

/// Arguments of `granary study proxy`.
#[derive(Args)]
pub struct ProxyStudyArguments {
    /// Where proxy.md, proxy.csv and proxy.svg go
    #[arg(long, value_name = "DIR", default_value = "docs/studies")]
    out: PathBuf,

    /// Runs of each contender, of which the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    repetitions: u64,

    /// Small sizes, one run: to see that it works. The figures mean nothing
    #[arg(long)]
    quick: bool,

    /// What else is to be known of the machine, such as who worked on it meanwhile
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,

    /// Folder for all data; a new folder in it is used and removed
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    data: PathBuf,

    /// The folder with the drivers of what Granary is compared with
    #[arg(long, value_name = "DIR", default_value = "rivals")]
    rivals: PathBuf,
}

const INSTALL: &str = "scripts/install-rivals.sh installs it";

/// Runs all of it and writes the page.
pub fn run(arguments: &ProxyStudyArguments) -> Result<()> {
    let size = if arguments.quick {
        ProxyStudySize::quick()
    } else {
        ProxyStudySize::full(arguments.repetitions as usize)
    };
    std::fs::create_dir_all(&arguments.out).map_err(at(&arguments.out))?;
    let scratch = Scratch::new(&arguments.data)?;
    let rivals = arguments.rivals.canonicalize().map_err(at(&arguments.rivals))?;
    let postgres = Postgres::start(&scratch.path.join("postgres"))?;
    stream::fill(&postgres, &size)?;
    let mut streams = [Stream::draw(&size, "first", 1), Stream::draw(&size, "second", 2)];

    let mut notes = machine::describe(&scratch.path);
    notes.extend(arguments.note.clone());
    notes.push(format!("Granary: {}", env!("CARGO_PKG_VERSION")));
    notes.push(format!("PostgreSQL: {}", postgres.version()?));
    let referee = scratch.path.join("referee");
    for stream in &streams {
        stream.write(&referee)?;
    }
    let has_clickhouse = match ClickHouse::start(&rivals, &referee) {
        Ok(mut clickhouse) => {
            notes.push(format!("ClickHouse: {} (chdb)", clickhouse.run("SELECT version()")?.1.trim()));
            for stream in &mut streams {
                stream.check_in(&mut clickhouse, &size)?;
            }
            true
        }
        Err(error) => {
            eprintln!("ClickHouse is left out: {error} ({INSTALL})");
            notes.push(format!("ClickHouse: not installed; {INSTALL}"));
            false
        }
    };
    say!("{}", notes.join("\n"));

    let hop = hop::run(&size, &scratch.path, &rivals, &postgres, &streams[0], has_clickhouse)?;
    say!("\n{}", hop.report().text());
    let stage = lives::Stage {
        size: &size,
        scratch: &scratch.path,
        rivals: &rivals,
        postgres: &postgres,
        streams,
        has_clickhouse,
    };
    let runs = lives::run(&stage)?;
    let page =
        page::ProxyPage { size: &size, notes: &notes, streams: &stage.streams, runs: &runs, hop: &hop };
    say!("\n{}\n\n{}\n", page.times().text(), page.rows().text());

    let place = |name: &str| arguments.out.join(name);
    let write = |name: &str, text: String| std::fs::write(place(name), text).map_err(at(&place(name)));
    write("proxy.md", page.text())?;
    write("proxy.csv", page.csv())?;
    let (series, groups) = page.bars();
    bars(&place("proxy.svg"), "A stream of lookups", "seconds", &series, &groups)?;
    say!("Written: proxy.md, proxy.csv, proxy.svg in {}", arguments.out.display());
    Ok(())
}
