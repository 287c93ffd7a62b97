//! The page of the study.

use std::time::Instant;

use granary_lab::{Report, Samples};

use super::faults::OutageWindow;
use super::kind::{KINDS, THREADS};
use super::size::OutageStudySize;
use super::tally::{Tallies, percentile_ms};
use super::watch::Sample;
use crate::study::figure::count;

/// Number of parts in the course over time.
const PARTS: usize = 10;
/// Maximum growth of RAM from the second part to the last.
const GROWTH_WANTED: f64 = 1.1;

/// Everything that was measured.
pub struct OutagePage<'a> {
    pub size: &'a OutageStudySize,
    /// Machine and versions.
    pub notes: &'a [String],
    pub start: Instant,
    pub windows: &'a [OutageWindow],
    pub tallies: &'a Tallies,
    pub samples: &'a [Sample],
}

fn ms(value: f64) -> String {
    if value.is_nan() { "-".to_owned() } else { format!("{value:.1}") }
}

/// A part of the samples: median RAM in bytes, maximum connections, requests to the source a second.
struct CoursePart {
    resident: f64,
    connections: Option<u64>,
    requests_per_second: f64,
}

impl OutagePage<'_> {
    /// A line for each kind of requests.
    pub fn answers(&self) -> Report {
        let mut report = Report::new(&[
            "dictionary",
            "answered, source there",
            "answered, source away",
            "errors while it was away or left alone",
            "errors nobody asked for",
            "p50, ms",
            "p99, ms",
            "source away: p50, ms",
            "p99, ms ",
            "longest, ms",
        ]);
        for (kind, tally) in KINDS.into_iter().zip(&self.tallies.of) {
            let [there, away] = &tally.latencies;
            report.row([
                kind.name().to_owned(),
                count(tally.answered[0]),
                count(tally.answered[1]),
                count(tally.errors),
                count(tally.faults),
                ms(percentile_ms(there, 0.5)),
                ms(percentile_ms(there, 0.99)),
                ms(percentile_ms(away, 0.5)),
                ms(percentile_ms(away, 0.99)),
                ms(percentile_ms(away, 1.0)),
            ]);
        }
        report
    }

    /// A line for each period without the source.
    pub fn outages(&self) -> Report {
        let mut report = Report::new(&[
            "PostgreSQL was",
            "after, s",
            "for, s",
            "requests to it meanwhile",
            "last error after its return, s",
        ]);
        for (window, recovered) in self.windows.iter().zip(&self.tallies.recovered) {
            report.row([
                format!("{:?}", window.fault).to_lowercase(),
                format!("{:.1}", (window.failed - self.start).as_secs_f64()),
                format!("{:.1}", (window.returned - window.failed).as_secs_f64()),
                count(window.requests),
                format!("{recovered:.1}"),
            ]);
        }
        report
    }

    fn part(&self, part: usize) -> CoursePart {
        let seconds = self.size.time.as_secs_f64() / PARTS as f64;
        let range = part as f64 * seconds..(part + 1) as f64 * seconds;
        let samples: Vec<&Sample> =
            self.samples.iter().filter(|sample| range.contains(&sample.seconds)).collect();
        let mut resident = Samples::default();
        samples.iter().for_each(|sample| resident.push(sample.resident_bytes as f64));
        let requests = match (samples.first(), samples.last()) {
            (Some(first), Some(last)) => {
                last.source_requests.saturating_sub(first.source_requests) as f64
                    / (last.seconds - first.seconds)
            }
            _ => f64::NAN,
        };
        let connections = samples.iter().filter_map(|sample| sample.connections).max();
        CoursePart { resident: resident.median(), connections, requests_per_second: requests }
    }

    /// RAM and load of the source over time.
    pub fn course(&self) -> Report {
        let mut report =
            Report::new(&["part", "RAM, MiB", "connections to PostgreSQL, most", "requests to it a second"]);
        for i in 0..PARTS {
            let part = self.part(i);
            report.row([
                format!("{} to {} %", i * 100 / PARTS, (i + 1) * 100 / PARTS),
                format!("{:.1}", part.resident / f64::from(1 << 20)),
                part.connections.map_or("-".to_owned(), |connections| connections.to_string()),
                format!("{:.1}", part.requests_per_second),
            ]);
        }
        report
    }

    /// The goals.
    fn targets(&self) -> Report {
        let mut report = Report::new(&["", "measured", "wanted", "reached"]);
        let mut row = |what: &str, measured: String, wanted: String, is: bool| {
            report.row([what.to_owned(), measured, wanted, if is { "yes" } else { "no" }.to_owned()]);
        };
        let faults = self.tallies.faults();
        row("errors nobody asked for", count(faults), "0".to_owned(), faults == 0);
        let growth = self.part(PARTS - 1).resident / self.part(1).resident;
        let wanted = format!("{GROWTH_WANTED} at most");
        row("RAM, last part / second part", format!("{growth:.3}"), wanted, growth <= GROWTH_WANTED);
        let most = self.samples.iter().filter_map(|sample| sample.connections).max().unwrap_or(0);
        let allowed = THREADS * KINDS.len() as u64;
        let wanted = format!("{allowed} at most");
        row("connections to PostgreSQL", most.to_string(), wanted, most <= allowed);
        report
    }

    /// docs/studies/outage.md.
    pub fn text(&self) -> String {
        let warning = match self.size.is_quick {
            false => "",
            true => "\n**Made with `--quick`: the sizes are too small for the figures to mean anything.**\n",
        };
        let notes: Vec<String> = self.notes.iter().map(|note| format!("- {note}")).collect();
        let examples = match self.tallies.examples.as_slice() {
            [] => String::new(),
            texts => format!("\nThe first errors that nobody asked for:\n```\n{}\n```\n", texts.join("\n")),
        };
        let per_second = self.tallies.total as f64 / self.size.time.as_secs_f64();
        include_str!("page.md")
            .replace("{warning}", warning)
            .replace("{notes}", &notes.join("\n"))
            .replace("{connections}", &self.size.connections.to_string())
            .replace("{seconds}", &self.size.time.as_secs().to_string())
            .replace("{rows}", &count(self.size.rows))
            .replace("{warm}", &count(self.size.warm))
            .replace("{short}", &count(self.size.short))
            .replace("{threads}", &THREADS.to_string())
            .replace("{total}", &count(self.tallies.total))
            .replace("{per_second}", &count(per_second.round() as u64))
            .replace("{answers}", &self.answers().markdown())
            .replace("{examples}", &examples)
            .replace("{outages}", &self.outages().markdown())
            .replace("{course}", &self.course().markdown())
            .replace("{targets}", &self.targets().markdown())
    }

    /// A line for each second.
    pub fn csv(&self) -> String {
        let mut text = String::from("seconds,resident_bytes,connections,source_requests\n");
        for sample in self.samples {
            let connections = sample.connections.map_or(String::new(), |connections| connections.to_string());
            let Sample { seconds, resident_bytes, source_requests, .. } = sample;
            text.push_str(&format!("{seconds:.1},{resident_bytes},{connections},{source_requests}\n"));
        }
        text
    }
}
