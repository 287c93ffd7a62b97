//! docs/studies/cache.md, its figures as CSV, and its plots.

use super::contender::{ALLOWANCE_BYTES, ALLOWANCE_KEY_BYTES};
use super::error::StoreError;
use super::measurement::Phase;
use super::run::{Job, Runs, samples};
use super::study::{PEER_SECONDS_MAX, Part, StoreFindings};
use crate::Report;
use std::path::{Path, PathBuf};

const INTRODUCTION: &str = include_str!("introduction.md");
const BLOCKS: &str = include_str!("blocks.md");
const LARGE: &str = include_str!("large.md");
const MODEL: &str = include_str!("model.md");
const DIVISION: &str = include_str!("division.md");
const SKEWED: &str = include_str!("skewed.md");

/// A number with `digits` decimals; `-` if it was not measured.
pub fn number(value: f64, digits: usize) -> String {
    if value.is_finite() { format!("{value:.digits$}") } else { "-".to_owned() }
}

/// Whether a goal is reached; `-` if it was not measured.
pub fn reached(measured: f64, holds: bool) -> String {
    match (measured.is_finite(), holds) {
        (false, _) => "-",
        (_, true) => "yes",
        (_, false) => "no",
    }
    .to_owned()
}

/// A size in MiB or MB, whichever it is a multiple of.
pub fn size_name(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{} MiB", bytes >> 20)
    } else {
        format!("{} MB", bytes / 1_000_000)
    }
}

type PhaseFigure = fn(&Phase) -> f64;

/// Adds the figures of a job to the CSV.
pub fn add_runs(report: &mut Report, part: &str, name: &str, job: &Job, runs: &Runs) {
    let Some(runs) = runs else { return };
    let (contents, reading) = (&job.contents, &job.reading);
    let phases = runs.first().map_or(0, |measured| measured.phases.len());
    let mut add = |phase: usize, figure: &str, samples: crate::Samples| {
        let numbers = [samples.median(), samples.min(), samples.max()];
        if numbers[0].is_nan() {
            return;
        }
        let sizes = [contents.keys, contents.block_bytes, reading.cache_bytes, reading.row_cache_bytes];
        let words = [part, name, &runs[0].phases[phase].name, figure].map(str::to_owned);
        let sizes = sizes.map(|size| size.to_string());
        report.row(words.into_iter().chain(sizes).chain(numbers.map(|number| number.to_string())));
    };
    for phase in 0..phases {
        let figures: [(&str, PhaseFigure); 5] = [
            ("mean us", |phase| phase.mean_us),
            ("median us", |phase| phase.p50_us.unwrap_or(f64::NAN)),
            ("p99 us", |phase| phase.p99_us.unwrap_or(f64::NAN)),
            ("reads an operation", |phase| phase.reads_per_operation()),
            ("bytes read an operation", |phase| phase.read_bytes as f64 / phase.operations as f64),
        ];
        for (figure, of) in figures {
            add(phase, figure, samples(runs, |measured| of(&measured.phases[phase])));
        }
    }
    if phases > 0 {
        add(0, "device us", samples(runs, |measured| measured.device_us.unwrap_or(f64::NAN)));
    }
}

impl StoreFindings {
    /// The page; `notes` describe the machine. Parts that were not measured are taken from the page `before`.
    pub fn text(&self, notes: &[String], before: &str) -> String {
        let mut warnings = String::new();
        if self.size.is_quick {
            warnings +=
                "\n**Made with `--quick`: the runs are too short for the figures to mean anything.**\n";
        }
        if !self.has_peers {
            warnings += "\n**The driver of LevelDB and RocksDB was not there (`rivals/stores/setup.sh` compiles it): their columns are empty.**\n";
        }
        if !self.can_limit {
            warnings += "\n**No memory cgroup could be made: what is said to be limited was not, and the page cache hides the answer for LevelDB.**\n";
        }
        let repetitions = self.size.repetitions;
        let measured_on = format!("Medians of {repetitions}. {}.", notes.join("; "));
        let introduction = INTRODUCTION
            .replace("ALLOWANCE_MIB", &(ALLOWANCE_BYTES >> 20).to_string())
            .replace("ALLOWANCE_KEY_BYTES", &ALLOWANCE_KEY_BYTES.to_string())
            .replace("PEER_SECONDS_MAX", &PEER_SECONDS_MAX.to_string());
        let mut text = format!(
            "<!-- Written by `granary study cache`. Change the program, not this page. -->\n\n\
             # What a cache in front of an on-disk store is worth\n{warnings}\n{introduction}"
        );
        let parts = [
            (Part::Blocks, BLOCKS, self.blocks.as_ref().map(super::blocks::Blocks::text)),
            (Part::Large, LARGE, self.large.as_ref().map(super::large::Large::text)),
            (Part::Model, MODEL, self.model.as_ref().map(super::model::LatencyModel::text)),
            (Part::Division, DIVISION, self.division.as_ref().map(super::division::Division::text)),
            (Part::Skewed, SKEWED, self.skewed.as_ref().map(super::skewed::SkewedReads::text)),
        ];
        for (part, words, tables) in parts {
            let heading = words.lines().next().unwrap_or_default();
            text += &match (tables, section(before, heading)) {
                (Some(tables), _) => format!("\n{words}\n{measured_on}\n\n{tables}"),
                (None, Some(kept)) => format!("\n{kept}\n"),
                (None, None) => format!(
                    "\n{}\nNot measured: `--only` left out `{}`.\n",
                    without_plots(words),
                    part.name()
                ),
            };
        }
        text
    }

    /// A line for each figure. Lines of parts that were not measured are taken from the CSV `before`.
    pub fn csv(&self, before: &str) -> String {
        let mut report = Report::new(&[
            "part",
            "contender",
            "workload",
            "figure",
            "keys",
            "block bytes",
            "cache bytes",
            "row cache bytes",
            "median",
            "min",
            "max",
        ]);
        self.blocks.iter().for_each(|part| part.csv(&mut report));
        self.large.iter().for_each(|part| part.csv(&mut report));
        self.model.iter().for_each(|part| part.csv(&mut report));
        self.division.iter().for_each(|part| part.csv(&mut report));
        self.skewed.iter().for_each(|part| part.csv(&mut report));
        let is_kept = |line: &&str| {
            let part = Part::ALL.into_iter().find(|part| line.starts_with(&format!("\"{}\",", part.name())));
            part.is_some_and(|part| !self.has(part))
        };
        let kept: String = before.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect();
        report.csv() + &kept
    }

    fn has(&self, part: Part) -> bool {
        match part {
            Part::Blocks => self.blocks.is_some(),
            Part::Large => self.large.is_some(),
            Part::Model => self.model.is_some(),
            Part::Division => self.division.is_some(),
            Part::Skewed => self.skewed.is_some(),
        }
    }

    /// Draws `cache-<part>.svg` into a folder.
    ///
    /// # Errors
    /// A plot cannot be drawn or written.
    pub fn plot(&self, folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
        let path = |part: Part| folder.join(format!("cache-{}.svg", part.name()));
        let mut drawn = Vec::new();
        if let Some(blocks) = &self.blocks {
            drawn.push(path(Part::Blocks));
            blocks.plot(&path(Part::Blocks))?;
        }
        if let Some(large) = &self.large {
            drawn.push(path(Part::Large));
            large.plot(&path(Part::Large))?;
        }
        if let Some(model) = &self.model {
            drawn.push(path(Part::Model));
            model.plot(&path(Part::Model))?;
        }
        if let Some(division) = &self.division {
            drawn.push(path(Part::Division));
            division.plot(&path(Part::Division))?;
        }
        Ok(drawn)
    }
}

/// The section of a page under this heading, without surrounding empty lines.
fn section<'a>(page: &'a str, heading: &str) -> Option<&'a str> {
    let start = page.find(&format!("\n{heading}\n"))? + 1;
    let section = &page[start..];
    let end = section[heading.len()..].find("\n## ").map_or(section.len(), |end| heading.len() + end);
    Some(section[..end].trim_end())
}

/// The text of a part that was not measured, without its plots, which are missing.
fn without_plots(words: &str) -> String {
    let lines = words.lines().filter(|line| !line.starts_with("!["));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing_measured() -> StoreFindings {
        StoreFindings {
            size: super::super::study::Size::quick(),
            has_peers: true,
            can_limit: true,
            blocks: None,
            large: None,
            model: None,
            division: None,
            skewed: None,
        }
    }

    #[test]
    fn parts_that_are_not_measured_stay_as_they_were() {
        let nothing = nothing_measured();
        let first = nothing.text(&[], "");
        assert_eq!(first.matches("\nNot measured").count(), 5);
        assert_eq!(nothing.text(&[], &first), first);
        let heading = MODEL.lines().next().unwrap();
        let at = first.find(heading).unwrap() + heading.len();
        let edited = format!("{}\n\n### measured\n\n| 7 |{}", &first[..at], &first[at..]);
        let again = nothing.text(&[], &edited);
        assert!(again.contains("### measured\n\n| 7 |"));
        assert_eq!(again, edited);

        let line = "\"model\",\"Granary\",\"readrandom\",\"mean us\",\"1\"\n";
        let csv = nothing.csv(&format!("\"part\",\"contender\"\n{line}\"other\",\"x\"\n"));
        assert!(csv.ends_with(&format!("\"max\"\n{line}")), "{csv}");
    }
}
