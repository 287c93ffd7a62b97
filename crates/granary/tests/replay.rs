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

/// `time id size`: one object in four is requested repeatedly.
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
    let paths = [("--traces", folder.path()), ("--out", &out), ("--disk", folder.path())];
    let output = granary(&["study", "flashield", "--quick"], &paths);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("flashield.md")).unwrap();
    for words in [
        "Made with `--quick`",
        "web_objects (real, sized)",
        "median CLWA of RIPQ",
        "n = 5",
        "1:15",
        "in a file of 32 MiB",
    ] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert!(std::fs::read_to_string(out.join("flashield.csv")).unwrap().lines().count() > 25);
    for plot in ["flashield-clwa.svg", "flashield-hits.svg"] {
        assert!(std::fs::read_to_string(out.join(plot)).unwrap().starts_with("<svg"));
    }
}

/// The rows of a CSV file by the policy's name, and the columns of its heading.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let csv = std::fs::read_to_string(path).unwrap();
    let cells = |line: &str| line.trim_matches('"').split("\",\"").map(str::to_owned).collect();
    csv.lines().map(cells).collect()
}

/// A number of a row.
fn number(rows: &[Vec<String>], name: &str, column: &str) -> f64 {
    let at = rows[0].iter().position(|heading| heading == column).unwrap();
    let row = rows.iter().find(|row| row[0] == name).unwrap_or_else(|| panic!("{name} is not in {rows:?}"));
    row[at].parse().unwrap()
}

/// `time id size`: objects of at most 10 KiB, a quarter of which are requested repeatedly, and one that is too large
/// for the server.
fn write_larger_trace(path: &Path) {
    let mut random = 7u64;
    let lines: String = (0..6_000u64)
        .map(|time| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let id = if time % 2 == 0 { (random >> 33) % 700 } else { 1000 + time };
            format!("{time} {id} {}\n", 500 + id * 7919 % 10_000)
        })
        .collect();
    std::fs::write(path, lines + "6000 9999 2000000\n").unwrap();
}

#[test]
fn the_study_of_replays_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    write_larger_trace(&folder.path().join("cloudPhysicsIO.csv.gz"));
    let paths = [("--traces", folder.path()), ("--out", &out), ("--disk", folder.path())];
    let output = granary(&["study", "replay", "--quick"], &paths);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(out.join("replay.md")).unwrap();
    for words in ["Made with `--quick`", "cloudPhysicsIO (real, sized)", " flashield |", " probability:1 |"] {
        assert!(page.contains(words), "{words:?} is not in\n{page}");
    }
    assert_eq!(std::fs::read_to_string(out.join("replay.csv")).unwrap().lines().count(), 1 + 3 * 3);
}

#[test]
fn a_trace_is_replayed_on_the_real_server_as_the_model_says() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, csv) = (folder.path().join("web.trace"), folder.path().join("out.csv"));
    write_larger_trace(&trace);
    let sizes =
        ["--dram", "8MiB", "--flash", "42MiB", "--copies", "4", "--policy", "reuse,probability:1,fifo,lru"];
    let arguments = [&["replay"], &sizes[..]].concat();
    let output = granary(&arguments, &[("--csv", &csv), ("--disk", folder.path()), ("", &trace)]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Left out: 4 requests for objects of more than"), "{text}");
    assert!(text.contains("flash 40.00 MiB in segments of 4.00 MiB"), "{text}");
    let rows = rows(&csv);
    let names: Vec<&str> = rows[1..].iter().map(|row| row[0].as_str()).collect();
    let of_policy =
        |name: &str| [name.to_owned(), format!("{name}, all costs"), format!("{name}, real server")];
    let mut expected: Vec<String> =
        ["reuse", "probability:1"].iter().flat_map(|name| of_policy(name)).collect();
    expected.extend(["fifo", "fifo, real server", "lru"].map(str::to_owned));
    assert_eq!(names, expected);
    for policy in ["reuse", "probability:1"] {
        let [model, real] = ["all costs", "real server"].map(|which| {
            let name = format!("{policy}, {which}");
            ["reads", "hit_ratio", "clwa", "stored_bytes", "flash_bytes_written"]
                .map(|column| number(&rows, &name, column))
        });
        assert_eq!((model[0], real[0]), (24_000.0, 24_000.0), "{policy}");
        // If the device is behind, objects leave unseen: fewer are found, and less is written: less than half on a
        // device that others keep busy.
        let server = format!("{policy}, real server: ");
        let is_behind =
            text.lines().any(|line| line.starts_with(&server) && line.contains("left DRAM unseen"));
        let (fewer, least) = if is_behind { (0.3, 0.2) } else { (0.05, 0.5) };
        let found = model[1] - fewer..model[1] + 0.05;
        assert!(found.contains(&real[1]), "{policy}: hit ratios {model:?} {real:?}\n{text}");
        assert!((least..1.5).contains(&(real[2] / model[2])), "{policy}: CLWA {model:?} {real:?}\n{text}");
        assert!(real[3] > 0.0 && real[4] > 0.0, "{policy}: {real:?}");
    }
    assert!(number(&rows, "probability:1, real server", "flash_reads") > 0.0);
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the servers' folders are gone: {left:?}");
}

/// A memcached server with a bug: it never forgets, and it mixes values up.
fn wrong_server() -> std::net::SocketAddr {
    use std::io::{BufRead, BufReader, Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut last = Vec::new();
                let mut line = String::new();
                while lines.read_line(&mut line).is_ok_and(|len| len > 0) {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let reply = match words[..] {
                        ["set", _, _, _, len] => {
                            last = vec![0; len.parse::<usize>().unwrap() + 2];
                            lines.read_exact(&mut last).unwrap();
                            b"STORED\r\n".to_vec()
                        }
                        ["get", key] if !last.is_empty() => {
                            let head = format!("VALUE {key} 0 {}\r\n", last.len() - 2);
                            [head.as_bytes(), &last, b"END\r\n"].concat()
                        }
                        _ => b"END\r\n".to_vec(),
                    };
                    stream.write_all(&reply).unwrap();
                    line.clear();
                }
            });
        }
    });
    address
}

#[test]
fn a_wrong_value_of_a_server_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("web.trace");
    std::fs::write(&trace, "1 1 100\n2 2 100\n3 1 100\n").unwrap();
    let address = wrong_server().to_string();
    // One at a time: the value stored last is another key's.
    let arguments =
        ["replay", "--policy", "lru", "--connections", "1", "--pipeline", "1", "--server", &address];
    let output = granary(&arguments, &[("", &trace)]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("nothing was stored"), "{error}");
    std::fs::write(&trace, "1 1 100\n3 1 100\n2 2 100\n3 1 100\n").unwrap();
    let output = granary(&["replay", "--server", "127.0.0.1:1"], &[("", &trace)]);
    assert!(String::from_utf8(output.stderr).unwrap().contains("127.0.0.1:1: "));
}
