//! The page of the study.

use granary_lab::{Report, Samples};

use super::contender::{CONTENDERS, FORMAT, ProxyContender, clickhouse_ssd_cache, granary_ssd_cache};
use super::hop::{FORMATS, Hop};
use super::lives::{PASSES, ProxyRuns};
use super::size::ProxyStudySize;
use super::stream::Stream;
use crate::study::figure::{count, ratio, reached, seconds, times};

/// Wanted ratios of ClickHouse's SSD_CACHE to DIRECT on Granary: time, and rows asked for.
const FASTER_WANTED: f64 = 3.0;
const FEWER_WANTED: f64 = 10.0;
/// The pass and the life that these are measured in.
const AFTER_RESTART: (usize, usize) = (2, 1);

/// Everything that was measured.
pub struct ProxyPage<'a> {
    pub size: &'a ProxyStudySize,
    /// Machine and versions.
    pub notes: &'a [String],
    pub streams: &'a [Stream; 2],
    pub runs: &'a [ProxyRuns; CONTENDERS.len()],
    pub hop: &'a Hop,
}

fn of(runs: &[ProxyRuns; CONTENDERS.len()], contender: ProxyContender) -> &ProxyRuns {
    let place = CONTENDERS.iter().position(|other| *other == contender);
    &runs[place.expect("all are listed")]
}

/// How many times fewer rows ours are, and whether that is as wanted. No ratio can be given for no rows.
fn fewer_rows(theirs: &Samples, ours: &Samples) -> (String, String) {
    match (theirs.median(), ours.median()) {
        (theirs, 0.0) if theirs > 0.0 => ("0 rows".to_owned(), "yes".to_owned()),
        _ => {
            let ratio = ratio(theirs, ours);
            (times(ratio), reached(ratio, Some(FEWER_WANTED)))
        }
    }
}

/// A number with thousands separated; `-` without runs.
fn number(samples: &Samples) -> String {
    let median = samples.median();
    if median.is_nan() { "-".to_owned() } else { count(median.round() as u64) }
}

fn mebibytes(samples: &Samples) -> String {
    let median = samples.median();
    if median.is_nan() { "-".to_owned() } else { format!("{:.0}", median / f64::from(1 << 20)) }
}

impl ProxyPage<'_> {
    /// Seconds of each pass, and RAM.
    pub fn times(&self) -> Report {
        let passes = PASSES.map(|pass| format!("{}, s", pass.0));
        let mut headings = vec!["dictionary"];
        headings.extend(passes.iter().map(String::as_str));
        headings.extend(["failed batches", "ClickHouse's RAM, MiB", "Granary's RAM, MiB"]);
        let mut report = Report::new(&headings);
        for (contender, runs) in CONTENDERS.iter().zip(self.runs) {
            let mut cells = vec![contender.name().to_owned()];
            cells.extend(runs.seconds.iter().map(seconds));
            cells.push(runs.failed.to_string());
            cells.extend([mebibytes(&runs.clickhouse_bytes), mebibytes(&runs.granary_bytes)]);
            report.row(cells);
        }
        report
    }

    /// Rows that PostgreSQL read.
    pub fn rows(&self) -> Report {
        let mut report = Report::new(&[
            "dictionary",
            "from empty, and again",
            "Granary's own count",
            "restarted, again",
            "restarted, new draws",
        ]);
        for (contender, runs) in CONTENDERS.iter().zip(self.runs) {
            let [first, second, third] = &runs.rows;
            let told = number(&runs.rows_told);
            report.row([contender.name().to_owned(), number(first), told, number(second), number(third)]);
        }
        report
    }

    /// The goals.
    fn targets(&self) -> Report {
        let mut report = Report::new(&["after a restart, the same keys again", "ratio", "wanted", "reached"]);
        let theirs = of(self.runs, ProxyContender::SsdCache);
        let ours = of(self.runs, ProxyContender::DirectOnGranary);
        let (pass, life) = AFTER_RESTART;
        let faster = ratio(&theirs.seconds[pass], &ours.seconds[pass]);
        let (fewer, is_fewer) = fewer_rows(&theirs.rows[life], &ours.rows[life]);
        let lines = [
            ("seconds", times(faster), FASTER_WANTED, reached(faster, Some(FASTER_WANTED))),
            ("rows of PostgreSQL", fewer, FEWER_WANTED, is_fewer),
        ];
        for (what, ratio, wanted, verdict) in lines {
            let what = format!("{what}: ClickHouse's SSD_CACHE / DIRECT on Granary");
            report.row([what, ratio, times(Some(wanted)), verdict]);
        }
        report
    }

    fn failures(&self) -> String {
        let failed = CONTENDERS.iter().zip(self.runs).filter_map(|(contender, runs)| {
            let error: String = runs.error.as_ref()?.chars().take(300).collect();
            Some(format!(
                "\n{}: {} batches failed, the first with `{error}`.\n",
                contender.name(),
                runs.failed
            ))
        });
        failed.collect()
    }

    /// docs/studies/proxy.md.
    pub fn text(&self) -> String {
        let ProxyPage { size, notes, streams, hop, .. } = self;
        let warning = match size.is_quick {
            false => "",
            true => "\n**Made with `--quick`: the sizes are too small for the figures to mean anything.**\n",
        };
        let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
        include_str!("page.md")
            .replace("{warning}", warning)
            .replace("{notes}", &notes.join("\n"))
            .replace("{rows}", &count(size.rows))
            .replace("{keys}", &count(size.keys))
            .replace("{batch}", &count(size.batch as u64))
            .replace("{batches}", &size.batches.to_string())
            .replace("{distinct}", &count(streams[0].distinct() as u64))
            .replace("{cells}", &size.cells.to_string())
            .replace("{theirs}", &clickhouse_ssd_cache(size))
            .replace("{ours}", &granary_ssd_cache(size))
            .replace("{format}", FORMAT)
            .replace("{repetitions}", &size.repetitions.to_string())
            .replace("{singles}", &size.single_queries.to_string())
            .replace("{queries}", &size.batch_queries.to_string())
            .replace("{times}", &self.times().markdown())
            .replace("{rows_read}", &self.rows().markdown())
            .replace("{targets}", &self.targets().markdown())
            .replace("{failures}", &self.failures())
            .replace("{hop}", &hop.report().markdown())
    }

    /// A line for each figure: part, line, contender, median, least, most, unit.
    pub fn csv(&self) -> String {
        let mut text = String::from("part,line,contender,median,min,max,unit\n");
        let mut add = |part: &str, line: &str, contender: &str, samples: &Samples, unit: &str| {
            let (median, low, high) = (samples.median(), samples.min(), samples.max());
            if !median.is_nan() {
                text.push_str(&format!("{part},\"{line}\",\"{contender}\",{median},{low},{high},{unit}\n"));
            }
        };
        for (contender, runs) in CONTENDERS.iter().zip(self.runs) {
            for ((pass, ..), samples) in PASSES.iter().zip(&runs.seconds) {
                add("stream", pass, contender.name(), samples, "s");
            }
            for (life, samples) in runs.rows.iter().enumerate() {
                add("rows", &format!("start {}", life + 1), contender.name(), samples, "rows");
            }
            add("RAM", "ClickHouse, grown by", contender.name(), &runs.clickhouse_bytes, "bytes");
            add("RAM", "Granary", contender.name(), &runs.granary_bytes, "bytes");
        }
        for line in &self.hop.lines {
            let keys = format!("{} keys", line.keys);
            add("hop", &keys, "ClickHouse's CACHE", &line.in_ram, "ms");
            for (i, format) in FORMATS.into_iter().enumerate() {
                add("hop", &keys, &format!("DIRECT on Granary, {format}"), &line.direct[i], "ms");
                add("hop", &keys, &format!("request, {format}"), &line.requests[i], "ms");
            }
        }
        text
    }

    /// For the plot: a group for each pass, a bar for each contender.
    pub fn bars(&self) -> (Vec<&'static str>, Vec<(String, Vec<f64>)>) {
        let groups = PASSES.iter().enumerate().map(|(pass, (name, ..))| {
            let medians = self.runs.iter().map(|runs| runs.seconds[pass].median());
            // A contender without runs has no bar.
            ((*name).to_owned(), medians.map(|m| if m.is_nan() { 0.0 } else { m }).collect())
        });
        (CONTENDERS.iter().map(|contender| contender.name()).collect(), groups.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rows_are_no_multiple() {
        let samples = |value: Option<f64>| {
            let mut samples = Samples::default();
            value.into_iter().for_each(|value| samples.push(value));
            samples
        };
        let said = |theirs, ours| {
            let (ratio, verdict) = fewer_rows(&samples(Some(theirs)), &samples(ours));
            [ratio, verdict]
        };
        assert_eq!(said(566_426.0, Some(0.0)), ["0 rows", "yes"]);
        assert_eq!(said(100.0, Some(50.0)), ["2.0x", "no"]);
        assert_eq!(said(100.0, Some(10.0)), ["10x", "yes"]);
        assert_eq!([said(0.0, Some(0.0)), said(100.0, None)], [["-", "-"], ["-", "-"]]);
    }
}
