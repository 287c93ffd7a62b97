//! docs/studies/replay.md.

use granary_lab::Report;
use granary_lab::model::{LARGE_DRAM_DIVISOR, Tally};
use indicatif::{BinaryBytes, HumanCount};

use super::{PART, PolicyRun, RATIO, ReplayLine};

/// A row for each run: a figure of the model, of the model with all costs, and of the server.
fn table(
    lines: &[ReplayLine],
    headings: [&str; 4],
    show: impl Fn(f64) -> String,
    figure: impl Fn(&Tally) -> f64,
    apart: impl Fn(f64, f64) -> String,
) -> Report {
    let [model, exact, real, difference] = headings;
    let mut report = Report::new(&["workload", "policy", model, exact, real, difference]);
    for (line, run) in runs(lines) {
        let [model, exact, real] = [&run.model, &run.exact, &run.real.tally].map(&figure);
        report.row([
            line.name.clone(),
            run.policy.to_owned(),
            show(model),
            show(exact),
            show(real),
            apart(exact, real),
        ]);
    }
    report
}

fn runs(lines: &[ReplayLine]) -> impl Iterator<Item = (&ReplayLine, &PolicyRun)> {
    lines.iter().flat_map(|line| line.runs.iter().map(move |run| (line, run)))
}

/// Hit ratios.
pub fn hits(lines: &[ReplayLine]) -> Report {
    let headings = ["model", "with all costs", "server", "server beside that"];
    let points = |exact: f64, real: f64| format!("{:+.2} points", (real - exact) * 100.0);
    table(lines, headings, |x| format!("{:.2} %", x * 100.0), Tally::hit_ratio, points)
}

/// CLWA.
pub fn writes(lines: &[ReplayLine]) -> Report {
    let headings = ["model", "with all costs", "server", "server beside that"];
    let times = |exact: f64, real: f64| format!("{:.2} times", real / exact);
    table(lines, headings, |x| format!("{x:.2}"), Tally::clwa, times)
}

fn reads(lines: &[ReplayLine]) -> Report {
    let mut report =
        Report::new(&["workload", "policy", "found on flash: model", "server", "reads for each of these"]);
    for (line, run) in runs(lines) {
        let share = |flash: u64, all: u64| format!("{:.1} %", 100.0 * flash as f64 / all as f64);
        let (model, real) = (&run.exact, &run.real.tally);
        report.row([
            line.name.clone(),
            run.policy.to_owned(),
            share(model.flash_hits, model.hits),
            share(real.flash_hits, run.real.found),
            format!("{:.3}", real.flash_reads as f64 / real.flash_hits as f64),
        ]);
    }
    report
}

fn behind(lines: &[ReplayLine]) -> String {
    let (mut unseen, mut refused) = (0, 0);
    for (_, run) in runs(lines) {
        unseen += run.real.left_unseen;
        refused += run.real.refused;
    }
    format!(
        "{} objects left DRAM without the policy being asked, and {} were not kept at all.",
        HumanCount(unseen),
        HumanCount(refused)
    )
}

/// Every count, unrounded.
pub fn csv(lines: &[ReplayLine]) -> String {
    let counts = Tally::default().counts();
    let columns: Vec<&str> =
        ["workload", "policy", "by"].into_iter().chain(counts.iter().map(|(name, _)| *name)).collect();
    let mut report = Report::new(&columns);
    for (line, run) in runs(lines) {
        for (by, tally) in
            [("model", &run.model), ("model with costs", &run.exact), ("server", &run.real.tally)]
        {
            let names = [line.name.clone(), run.policy.to_owned(), by.to_owned()];
            report.row(names.into_iter().chain(tally.counts().iter().map(|(_, count)| count.to_string())));
        }
    }
    report.csv()
}

/// The page.
pub fn text(lines: &[ReplayLine], quick: bool) -> String {
    let warning = match quick {
        true => "\n**Made with `--quick`: the streams are too short for the figures to mean anything.**\n",
        false => "",
    };
    let inputs: Vec<String> = lines
        .iter()
        .map(|line| {
            format!(
                "- {}; {} copies; DRAM {}, flash {}; {} requests left out, for objects over the server's limit",
                line.description,
                line.copies,
                BinaryBytes(line.budget.dram_bytes),
                BinaryBytes(line.budget.flash_bytes),
                HumanCount(line.left_out as u64)
            )
        })
        .collect();
    format!(
        "\
<!-- Written by `granary study replay`. Change the program, not this page. -->

# Do the models predict the real server?
{warning}
[The study of admission](flashield.md) compares policies by models. Here the same requests go through a model and \
through the memcached server on a real disk, over 8 connections, with the same DRAM and flash. Every value that comes \
back is compared with the one stored last; one that differs would have ended this.

```sh
granary study replay --traces DIR --disk /mnt/ssd      # writes this page and replay.csv
granary replay TRACE --disk /mnt/ssd --policy reuse    # one trace
granary replay TRACE --server HOST:PORT                # a server that runs
```

## Workloads

DRAM and flash together are {part:.0} % of what a cache without bounds would hold, 1 part DRAM to {RATIO} parts flash. \
The server writes 4 MiB at once, so small traces are replayed several times side by side, each time for keys of their \
own: a model finds the same part of them in as many times the space.

{inputs}

*model*: objects take their bytes and nothing else, as in the study of admission. *with all costs*: DRAM and flash take \
what an object costs there beside its bytes (37 bytes in DRAM; 21 on flash, and its entry in the segment's summary), \
records are packed into blocks as the log does it, DRAM that the cleaner keeps free and segments that are \
emptied ahead hold nothing, and objects of more than a {large}th of DRAM are written at once.

## Hit ratio

{hits}

## CLWA

Bytes written to flash for each byte that clients store:

{writes}

## Reads of flash

Objects found on flash, of all that are found, by the server also before it deletes them; and what it reads for each, \
misses' reads among them:

{reads}

## Where they differ, and why

- *From `model` to `with all costs`*: small objects lose DRAM and flash to what is kept with them. Large ones lose to \
blocks: `cloudPhysicsIO` has objects of exactly 4096, 8192 and 65536 bytes, which with their headers are a little more \
than a whole number of blocks, and leave the rest of the last one unused. What is written as padding counts as written.
- *Large objects*: a {large}th of DRAM is less than some objects of `cdn` and `kvcache_reg` have. These are written \
whatever the policy says, which is most of what `flashield` writes there. The more DRAM, the fewer they are.
- *What the model with costs leaves out*: DRAM is 64 rings, in each of which an object that is a large part of it drives others \
out sooner; a chunk of DRAM that a large object does not fit stays partly unused; and requests of different keys \
overtake each other by up to some thousands. Objects in write buffers are found there and not on flash.
- *Reads of flash*: keys of a block that are asked for together share a read, so there may be less than one for each \
object. The second read that an object longer than a block takes is not counted. The server looks an item up before \
it deletes it: where clients delete much (`cloudPhysicsIO`, whose objects change their size), it finds and reads more \
than clients ask for. The model does not.
- *Time*: the server gets in seconds what the trace has in hours. Clients wait while more than 16 MiB wait to be \
written. All the same {behind}
- *Lifetimes and deletions*: what ends in the trace's time is deleted by the client that asks for it, in the model and \
on the server.
",
        part = PART * 100.0,
        large = LARGE_DRAM_DIVISOR,
        inputs = inputs.join("\n"),
        hits = hits(lines).markdown(),
        writes = writes(lines).markdown(),
        reads = reads(lines).markdown(),
        behind = behind(lines),
    )
}
