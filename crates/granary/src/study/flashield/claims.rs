//! The paper's claims and our goals, and whether they hold here.

use granary_lab::Report;
use granary_lab::model::Tally;

use super::runs::{FlashieldLine, FlashieldRuns, POLICIES, median};

/// A line for each claim of the paper.
pub fn report(runs: &FlashieldRuns) -> Report {
    let mut report = Report::new(&["", "paper", "here", "agrees"]);
    let mut add = |claim: &str, paper: &str, here: String, agrees: bool| {
        report.row([claim.to_owned(), paper.to_owned(), here, yes(agrees)]);
    };
    let clwa = |policy| median(&runs.lines.iter().map(|line| line.of(policy).clwa()).collect::<Vec<_>>());
    let [ours, ripq, victim] = [clwa("flashield"), clwa("ripq"), clwa("victim")];
    add("median CLWA of Flashield", "0.54", format!("{ours:.2}"), (0.4..0.7).contains(&ours));
    add("median CLWA of RIPQ", "2.85", format!("{ripq:.2}"), ripq > 2.0);
    add("median CLWA of the victim cache", "3.67", format!("{victim:.2}"), victim > 2.0);
    add(
        "Flashield writes less than RIPQ, RIPQ less than the victim cache (medians)",
        "yes",
        format!("{ours:.2} < {ripq:.2} < {victim:.2}"),
        ours < ripq && ripq < victim,
    );
    let points = |policy| {
        let difference = |line: &FlashieldLine| hits(line.of("flashield")) - hits(line.of(policy));
        median(&runs.lines.iter().map(difference).collect::<Vec<_>>())
    };
    let [ripq, victim] = [points("ripq"), points("victim")];
    add("hit ratio beside RIPQ's", "about the same", format!("{ripq:+.2} points"), ripq.abs() < 1.0);
    let little = (-3.0..0.0).contains(&victim);
    add("hit ratio beside the victim cache's", "a little lower", format!("{victim:+.2} points"), little);
    let all = runs.lines.len();
    let mut count = |claim: &str, paper: &str, holds: &dyn Fn(&FlashieldLine) -> bool| {
        let found = runs.lines.iter().filter(|line| holds(line)).count();
        add(claim, paper, format!("on {found} of {all}"), 2 * found > all);
    };
    count("a higher n means fewer writes", "in general", &|line| falls(&line.thresholds, Tally::clwa));
    count("a higher n means fewer hits", "in general", &|line| falls(&line.thresholds, Tally::hit_ratio));
    count("less DRAM means fewer hits", "yes", &|line| falls(&line.paper_ratios, Tally::hit_ratio));
    report
}

/// The goals of our own policy, a line for each workload.
pub fn goals(runs: &FlashieldRuns) -> Report {
    let mut report = Report::new(&[
        "workload",
        "CLWA",
        "of the victim cache's",
        "at most half",
        "hit ratio beside FIFO's",
        "at most 0.5 points less",
        "beside probability:1's",
    ]);
    for line in &runs.lines {
        let [ours, victim, fifo, all] =
            [POLICIES[0], "victim", "fifo", "probability:1"].map(|policy| line.of(policy));
        let (part, points) = (ours.clwa() / victim.clwa(), hits(ours) - hits(fifo));
        report.row([
            line.name.clone(),
            format!("{:.2}", ours.clwa()),
            format!("{:.0} %", part * 100.0),
            yes(part <= 0.5),
            format!("{points:+.2} points"),
            yes(points >= -0.5),
            format!("{:+.2} points", hits(ours) - hits(all)),
        ]);
    }
    report
}

fn yes(holds: bool) -> String {
    if holds { "yes" } else { "no" }.to_owned()
}

fn hits(tally: &Tally) -> f64 {
    tally.hit_ratio() * 100.0
}

/// Whether a figure does not rise from run to run, within noise.
fn falls(tallies: &[Tally], figure: impl Fn(&Tally) -> f64) -> bool {
    let figures: Vec<f64> = tallies.iter().map(figure).collect();
    figures.windows(2).all(|pair| pair[1] <= pair[0] * 1.01 + 0.001)
}
