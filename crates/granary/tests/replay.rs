//! `granary replay` and `granary study flashield`, on traces made here.

use std::path::Path;
use std::process::{Command, Output};

fn granary(arguments: &[&str], paths: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_granary"));
    command.args(arguments);
    paths.iter().for_each(|(name, path)| {
        command.args([name.as_ref(), path.as_os_str()].iter().filter(|argument| !argument.is_empty()));
    });
    command.output().unwrap()
}

/// `time id size`: one object in four is asked for again and again.
fn write_trace(path: &Path) {
    let lines: String = (0..20_000u64)
        .map(|time| {
            let id = if time % 4 == 0 { time * 7919 % 400 } else { 1000 + time };
            format!("{time} {id} {}\n", 100 + id % 900)
        })
        .collect();
    std::fs::write(path, lines).unwrap();
}

#[test]
fn a_trace_is_replayed_through_every_policy_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, csv) = (folder.path().join("web.trace"), folder.path().join("out.csv"));
    write_trace(&trace);
    let policies =
        "reuse,flashield:2,reject-first,probability:0.3,ripq,victim,fifo,lru,s3-fifo,lru-dram,belady";
    let output = granary(&["replay", "--policy", policies], &[("--csv", &csv), ("", &trace)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("web (real, sized): 20,000 requests"), "{text}");
    assert!(output.stderr.is_empty(), "no progress where nobody watches");
    let csv = std::fs::read_to_string(&csv).unwrap();
    let names: Vec<&str> = csv.lines().skip(1).map(|line| line.split('"').nth(1).unwrap()).collect();
    assert_eq!(names.join(","), policies);
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("web.trace");
    std::fs::write(&trace, "1 2 3\n4 5 six\n").unwrap();
    for (arguments, words) in [
        (&["replay"][..], "line 2: size is \"six\""),
        (&["replay", "--format", "best"], "cloudphysics"),
        (&["replay", "--policy", "best"], "flashield"),
        (&["replay", "--dram", "1MiB"], "--flash"),
        (&["replay", "--part", "0"], "more than 0"),
    ] {
        let output = granary(arguments, &[("", &trace)]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(words), "{arguments:?}: {error}");
    }
}

#[test]
fn the_study_of_admission_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let missing = granary(&["study", "flashield"], &[("--traces", folder.path()), ("--out", &out)]);
    assert!(!missing.status.success(), "there is nothing to study");
    write_trace(&folder.path().join("web_objects.trace.xz"));
    let output = granary(&["study", "flashield", "--quick"], &[("--traces", folder.path()), ("--out", &out)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("flashield.md")).unwrap();
    for words in ["Made with `--quick`", "web_objects (real, sized)", "median CLWA of RIPQ", "n = 5", "1:15"]
    {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(std::fs::read_to_string(out.join("flashield.csv")).unwrap().lines().count() > 25);
    for plot in ["flashield-clwa.svg", "flashield-hits.svg"] {
        assert!(std::fs::read_to_string(out.join(plot)).unwrap().starts_with("<svg"));
    }
}
