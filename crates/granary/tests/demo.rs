//! `granary demo`, small: its answer against SQLite's own, and that only the cold pass asks the source.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use rusqlite::Connection;

fn granary(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_granary")).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn demo(path: &Path) -> String {
    granary(&["demo", "--users", "5000", "--events", "40000", "--path", path.to_str().unwrap()])
}

/// The numbers in a line of the table, one for each pass.
fn figures(text: &str, name: &str) -> Vec<f64> {
    let cells = |line: &str| line.split(['│', '┆']).map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let line = text.lines().map(cells).find(|cells| cells.get(1).is_some_and(|cell| cell == name));
    let cells = line.unwrap_or_else(|| panic!("no line {name} in\n{text}"));
    let number = |cell: &String| cell.split(' ').next().and_then(|n| n.replace(',', "").parse().ok());
    cells[2..].iter().filter_map(number).collect()
}

/// City, events, mean score, events of users who signed up in 2024 or later.
type Row = (String, u64, f64, u64);

fn recomputed(folder: &Path) -> (Vec<Row>, u64) {
    let events = folder.join("user_files/events.parquet");
    let ids = granary(&["local", "-q", &format!("SELECT user_id FROM '{}'", events.display())]);
    let database = Connection::open(folder.join("user_files/users.db")).unwrap();
    let mut select = database.prepare("SELECT city, score, signed_up FROM users WHERE id = ?1").unwrap();
    let mut cities: HashMap<String, (u64, f64, u64)> = HashMap::new();
    let mut users: HashMap<i64, (String, f64, String)> = HashMap::new();
    for id in ids.lines() {
        let id: i64 = id.parse().unwrap();
        let (city, score, signed_up) = users.entry(id).or_insert_with(|| {
            let found = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            found.unwrap_or(("unknown".to_owned(), 0.0, "1970-01-01".to_owned()))
        });
        let sums = cities.entry(city.clone()).or_default();
        sums.0 += 1;
        sums.1 += *score;
        sums.2 += u64::from(signed_up.as_str() >= "2024-01-01");
    }
    let mut rows: Vec<Row> =
        cities.into_iter().map(|(city, (n, sum, new))| (city, n, sum / n as f64, new)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(12);
    (rows, users.len() as u64)
}

fn answered(text: &str) -> Vec<Row> {
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('│').map(str::trim).collect();
        let [_, city, events, score, new, _] = cells.as_slice() else { return None };
        Some(((*city).to_owned(), events.parse().ok()?, score.parse().ok()?, new.parse().ok()?))
    });
    rows.collect()
}

/// A key may evict another one with its tag from the index, which is then asked for again.
const LOST: f64 = 3.0;

/// Whether the cold pass asks for each user once, and the warm and reopened ones for none.
fn asked_once(keys: &[f64], users: u64) -> bool {
    let [cold, warm, reopened] = keys else { return false };
    (0.0..=LOST).contains(&(cold - users as f64)) && *warm <= LOST && *reopened <= LOST
}

#[test]
fn the_answer_is_right_and_only_the_cold_pass_asks_the_source() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo");
    let text = demo(&path);
    let (expected, users) = recomputed(&path);
    let answer = answered(&text);
    assert_eq!(answer.len(), expected.len(), "{text}");
    for (answered, expected) in answer.iter().zip(&expected) {
        assert_eq!((&answered.0, answered.1, answered.3), (&expected.0, expected.1, expected.3));
        assert!((answered.2 - expected.2).abs() < 0.006, "{answered:?} {expected:?}");
    }

    let keys = figures(&text, "keys asked");
    assert!(asked_once(&keys, users), "{users} users\n{text}");
    let hits = figures(&text, "hit ratio");
    assert!(hits[0] < 100.0 && hits[1..].iter().all(|&hits| hits > 99.5), "{hits:?}");
    let entries = figures(&text, "entries");
    assert!(
        entries.iter().all(|&n| (n - users as f64).abs() <= LOST),
        "unknown users are entries too: {entries:?}"
    );

    // A second run uses the existing files, and the dictionary begins empty again.
    let again = demo(&path);
    assert!(again.starts_with("Found 5,000 users"), "{again}");
    assert_eq!(answered(&again).len(), answer.len());
    assert!(asked_once(&figures(&again, "keys asked"), users), "{again}");
}

#[test]
fn what_it_says_to_try_next_works() {
    let folder = tempfile::tempdir().unwrap();
    let text = demo(&folder.path().join("demo"));
    let lines: Vec<&str> = text.lines().filter(|line| line.trim().starts_with("granary local ")).collect();
    assert_eq!(lines.len(), 3, "{text}");
    let answers: Vec<String> = lines
        .iter()
        .map(|line| {
            let program = env!("CARGO_BIN_EXE_granary");
            let command = line.trim().replacen("granary", program, 1);
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        })
        .collect();
    assert!(answers[0].starts_with("0\t('user 0','") && answers[0].lines().count() == 5, "{}", answers[0]);
    assert_eq!(answers[1], "400\n", "one event in a hundred is of an unknown user");
    assert!(answers[2].contains("SSDCache"), "{}", answers[2]);
}

#[test]
fn files_of_others_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (path, refused) = (folder.path().join("data"), "has files that are not of a demo");
    let run = || {
        let arguments = ["demo", "--users", "100", "--events", "1000", "--path", path.to_str().unwrap()];
        Command::new(env!("CARGO_BIN_EXE_granary")).args(arguments).output().unwrap()
    };
    let database = path.join("user_files/users.db");
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    std::fs::write(&database, "mine").unwrap();
    let output = run();
    assert!(
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains(refused),
        "{output:?}"
    );
    assert_eq!(std::fs::read(&database).unwrap(), b"mine");
    // In a demo's folder, too.
    std::fs::remove_dir_all(&path).unwrap();
    assert!(run().status.success());
    std::fs::write(&database, "mine").unwrap();
    let output = run();
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(std::fs::read(&database).unwrap(), b"mine");
}
