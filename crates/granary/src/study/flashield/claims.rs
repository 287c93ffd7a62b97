//! What the paper says, what we want, and whether it is so here.

use granary_lab::Report;
use granary_lab::model::Tally;

use super::runs::{Line, Runs, median};

/// A line for each claim.
pub fn report(runs: &Runs) -> Report {
    let mut report = Report::new(&["", "paper", "here", "agrees"]);
    let mut add = |claim: &str, paper: &str, here: String, agrees: bool| {
        let agrees = if agrees { "yes" } else { "no" };
        report.row([claim.to_owned(), paper.to_owned(), here, agrees.to_owned()]);
    };
    let clwa =
        |at: usize| median(&runs.lines.iter().map(|line| line.policies[at].clwa()).collect::<Vec<_>>());
    let [ours, ripq, victim] = [clwa(0), clwa(1), clwa(2)];
    add("median CLWA of Flashield", "0.54", format!("{ours:.2}"), ours <= 0.6);
    add("median CLWA of RIPQ", "2.85", format!("{ripq:.2}"), ripq > 2.0);
    add("median CLWA of the victim cache", "3.67", format!("{victim:.2}"), victim > 2.0);
    add(
        "Flashield writes less than RIPQ, RIPQ less than the victim cache (medians)",
        "yes",
        format!("{ours:.2} < {ripq:.2} < {victim:.2}"),
        ours < ripq && ripq < victim,
    );
    let points = |at: usize| {
        let difference = |line: &Line| hits(&line.policies[0]) - hits(&line.policies[at]);
        median(&runs.lines.iter().map(difference).collect::<Vec<_>>())
    };
    add(
        "hit ratio beside RIPQ's",
        "about the same",
        format!("{:+.2} points", points(1)),
        points(1).abs() < 1.0,
    );
    add("hit ratio beside the victim cache's", "a little lower", format!("{:+.2} points", points(2)), {
        (-3.0..0.0).contains(&points(2))
    });
    let count = |holds: &dyn Fn(&Line) -> bool| runs.lines.iter().filter(|line| holds(line)).count();
    let all = runs.lines.len();
    let fewer_writes = count(&|line| falls(&line.thresholds, Tally::clwa));
    add(
        "a higher n means fewer writes",
        "in general",
        format!("on {fewer_writes} of {all}"),
        2 * fewer_writes > all,
    );
    let fewer_hits = count(&|line| falls(&line.thresholds, Tally::hit_ratio));
    add(
        "a higher n means fewer hits",
        "in general",
        format!("on {fewer_hits} of {all}"),
        2 * fewer_hits > all,
    );
    let less_dram = count(&|line| falls(&line.ratios, Tally::hit_ratio));
    add("less DRAM means fewer hits", "yes", format!("on {less_dram} of {all}"), 2 * less_dram > all);
    report
}

/// What we want, a line for each workload.
pub fn goals(runs: &Runs) -> Report {
    let mut report = Report::new(&[
        "workload",
        "CLWA",
        "of the victim cache's",
        "at most half",
        "hit ratio beside FIFO's",
        "at most 0.5 points less",
    ]);
    let yes = |reached: bool| if reached { "yes" } else { "no" }.to_owned();
    for line in &runs.lines {
        let [ours, _, victim, fifo] = &line.policies[..4] else { continue };
        let (part, points) = (ours.clwa() / victim.clwa(), hits(ours) - hits(fifo));
        report.row([
            line.name.clone(),
            format!("{:.2}", ours.clwa()),
            format!("{:.0} %", part * 100.0),
            yes(part <= 0.5),
            format!("{points:+.2} points"),
            yes(points >= -0.5),
        ]);
    }
    report
}

fn hits(tally: &Tally) -> f64 {
    tally.hit_ratio() * 100.0
}

/// Whether a figure does not rise from one run to the next, but for noise.
fn falls(tallies: &[Tally], figure: impl Fn(&Tally) -> f64) -> bool {
    let figures: Vec<f64> = tallies.iter().map(figure).collect();
    figures.windows(2).all(|pair| pair[1] <= pair[0] * 1.01 + 0.001)
}
