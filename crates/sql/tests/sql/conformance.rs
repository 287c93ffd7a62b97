//! Compares Granary's answers with ClickHouse's, which `rivals/clickhouse/sweep.py` recorded in `conformance/*.tsv`: of
//! every function, at the edges. An answer is right, or there is an error; what else differs is in
//! `known_differences.tsv`, and docs/clickhouse.md explains it. What is answered stays answered: how many expressions
//! of a section are refused is recorded in `tests/refused`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use granary_sql::format::{self, Format};
use granary_sql::{Error, Options, Session};
use tokio::runtime::Runtime;

/// Expressions that are asked for in one query.
const EXPRESSIONS_A_QUERY: usize = 24;

/// A type and a value, or an error.
type Answer = Result<(String, String), String>;

/// One expression, or a whole query, and what ClickHouse answers.
struct Case {
    section: String,
    sql: String,
    is_query: bool,
    expected: Answer,
}

/// Reads a file of sections.
fn read(path: &Path) -> Vec<Case> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut section = "";
    let mut cases = Vec::new();
    for line in text.lines() {
        if let Some(template) = line.strip_prefix("= ") {
            section = template;
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [form, data_type, value, arguments @ ..] = fields.as_slice() else {
            panic!("{}: not understood: {line}", path.display());
        };
        let expected = match *data_type {
            "!" => Err((*value).to_owned()),
            data_type => Ok((data_type.to_owned(), (*value).to_owned())),
        };
        let as_columns: &[bool] = match *form {
            "c" => &[false],
            "m" => &[true],
            _ => &[false, true],
        };
        for as_columns in as_columns {
            cases.push(Case {
                section: section.to_owned(),
                sql: substituted(section, arguments, *as_columns),
                is_query: section.starts_with("SELECT") || section == "?",
                expected: expected.clone(),
            });
        }
    }
    cases
}

fn substituted(template: &str, arguments: &[&str], as_columns: bool) -> String {
    let mut parts = template.split('?');
    let mut sql = parts.next().unwrap_or_default().to_owned();
    for (argument, part) in arguments.iter().zip(parts) {
        let written =
            if as_columns { write!(sql, "materialize({argument})") } else { write!(sql, "{argument}") };
        written.and_then(|()| write!(sql, "{part}")).unwrap();
    }
    sql
}

/// A session, and the runtime it runs on.
struct Granary {
    session: Session,
    runtime: Runtime,
}

impl Granary {
    /// The columns' types, and the rows.
    fn ask(&self, sql: &str) -> Result<(Vec<String>, Vec<Vec<String>>), Error> {
        let mut text = Vec::new();
        for statement in granary_sql::split(sql)? {
            let mut output = self.runtime.block_on(self.session.execute(&statement))?;
            let format = Format::TabSeparatedWithNamesAndTypes;
            let mut writer = format::open(format, output.schema.clone(), &mut text)?;
            while let Some(batch) = self.runtime.block_on(output.next()) {
                writer.write(&batch?)?;
            }
            writer.finish(output.progress().read())?;
        }
        let text = String::from_utf8(text).expect("TabSeparated of UTF-8 strings");
        let mut lines =
            text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
        Ok((lines.next().unwrap_or_default(), lines.collect()))
    }

    fn answer(&self, case: &Case) -> Answer {
        let sql =
            if case.sql.starts_with("SELECT") { case.sql.clone() } else { format!("SELECT {}", case.sql) };
        let (types, rows) = self.ask(&sql).map_err(|error| format!("{} {}", error.code, error.message))?;
        let rows: Vec<String> = rows.iter().map(|row| row.join(";")).collect();
        Ok((types.join(";"), rows.join("|")))
    }

    /// The answers to expressions, several at once; each on its own where one of them is refused.
    fn answers(&self, cases: &[&Case]) -> Vec<Answer> {
        if let [case] = cases {
            return vec![self.answer(case)];
        }
        let columns: Vec<String> =
            cases.iter().enumerate().map(|(i, case)| format!("{} AS c{i}", case.sql)).collect();
        match self.ask(&format!("SELECT {}", columns.join(", "))) {
            Ok((types, mut rows)) if rows.len() == 1 && types.len() == cases.len() => {
                types.into_iter().zip(rows.remove(0)).map(Ok).collect()
            }
            _ => {
                let (left, right) = cases.split_at(cases.len() / 2);
                [self.answers(left), self.answers(right)].concat()
            }
        }
    }
}

/// Outcomes of the cases of one section.
#[derive(Default)]
struct Tally {
    right: usize,
    /// Refused here, and answered by ClickHouse.
    refused: usize,
    /// Refused by both.
    errors: usize,
    known: usize,
    wrong: Vec<String>,
}

/// Known differences: a section and an expression of it; `*` stands for all, or `!` and an error code for the
/// expressions that ClickHouse refuses with it.
fn known_differences(folder: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(folder.join("known_differences.tsv")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once('\t').expect("a section, a tab and an expression"))
        .map(|(section, sql)| (section.to_owned(), sql.to_owned()))
        .collect()
}

/// ClickHouse's errors that mean it could not compute an answer, not that there is none: an argument is no constant
/// (ILLEGAL_COLUMN), an intermediate number was too large (DECIMAL_OVERFLOW).
const ANSWERED: [&str; 2] = ["44", "407"];

/// Whether both are NULL: their types do not matter then.
fn are_null(expected: &(String, String), answer: &(String, String)) -> bool {
    expected.1 == "\\N" && answer.1 == "\\N"
}

/// Whether an answer is the same value, and differs only in ClickHouse's LowCardinality type.
fn is_of_low_cardinality(expected: &(String, String), answer: &(String, String)) -> bool {
    expected.1 == answer.1 && expected.0 == format!("LowCardinality({})", answer.0)
}

/// The operators that return a Bool for a Bool in ClickHouse, and always a UInt8 here.
const LOGICAL: [&str; 4] = ["? AND ?", "? OR ?", "NOT ?", "not(?)"];

/// Whether an answer is the same truth value in the other of the two types.
fn is_same_truth(section: &str, expected: &(String, String), answer: &(String, String)) -> bool {
    let number = match expected.1.as_str() {
        "true" => "1",
        "false" => "0",
        _ => return false,
    };
    let types = [("Bool", "UInt8"), ("Nullable(Bool)", "Nullable(UInt8)")];
    LOGICAL.contains(&section)
        && answer.1 == number
        && types.contains(&(expected.0.as_str(), answer.0.as_str()))
}

fn is_known(known: &[(String, String)], case: &Case) -> bool {
    let is_code = |sql: &str| matches!(&case.expected, Err(code) if sql.strip_prefix('!') == Some(code));
    let is_case = |sql: &str| sql == "*" || sql == case.sql || is_code(sql);
    known.iter().any(|(section, sql)| *section == case.section && is_case(sql))
}

fn compare(
    granary: &Granary,
    cases: &[Case],
    known: &[(String, String)],
    tallies: &Mutex<BTreeMap<String, Tally>>,
) {
    let (alone, together): (Vec<&Case>, Vec<&Case>) =
        cases.iter().partition(|case| case.is_query || case.expected.is_err());
    let batches = together.chunks(EXPRESSIONS_A_QUERY).chain(alone.chunks(1));
    for batch in batches {
        let answers = granary.answers(batch);
        let mut tallies = tallies.lock().unwrap();
        for (case, answer) in batch.iter().zip(answers) {
            let tally = tallies.entry(case.section.clone()).or_default();
            match (&case.expected, &answer) {
                (Ok(expected), Ok(answer)) if expected == answer => tally.right += 1,
                (Ok(expected), Ok(answer)) if are_null(expected, answer) => tally.right += 1,
                (Ok(expected), Ok(answer)) if is_of_low_cardinality(expected, answer) => tally.known += 1,
                (Ok(expected), Ok(answer)) if is_same_truth(&case.section, expected, answer) => {
                    tally.known += 1
                }
                (Ok(_), Err(_)) => tally.refused += 1,
                (Err(_), Err(_)) => tally.errors += 1,
                (Err(code), Ok(_)) if ANSWERED.contains(&code.as_str()) => tally.known += 1,
                _ if is_known(known, case) => tally.known += 1,
                (expected, answer) => {
                    let show = |answer: &Answer| match answer {
                        Ok((data_type, value)) => format!("{data_type} {value}"),
                        Err(code) => format!("error {code}"),
                    };
                    let line = format!("{}\t{}\t{}", case.sql, show(expected), show(answer));
                    tally.wrong.push(line);
                }
            }
            if let (Ok(_), Err(why)) = (&case.expected, &answer)
                && std::env::var_os("CONFORMANCE_REFUSED").is_some()
            {
                println!("refused: {}\t{why}", case.sql);
            }
        }
    }
}

/// Compares how many expressions of each section are refused with what is recorded, or records it where
/// `GRANARY_GOLDEN=write`.
fn check_refused(path: &Path, tallies: &BTreeMap<String, Tally>) {
    let refused = tallies.iter().filter(|(_, tally)| tally.refused > 0);
    if std::env::var("GRANARY_GOLDEN").as_deref() == Ok("write") {
        let lines: String =
            refused.map(|(section, tally)| format!("{}\t{section}\n", tally.refused)).collect();
        return std::fs::write(path, lines).unwrap();
    }
    let text = std::fs::read_to_string(path).unwrap();
    let recorded: BTreeMap<&str, usize> = text
        .lines()
        .map(|line| line.split_once('\t').expect("a number, a tab and a section"))
        .map(|(number, section)| (section, number.parse().expect("a number")))
        .collect();
    let refused: BTreeMap<&str, usize> =
        refused.map(|(section, tally)| (section.as_str(), tally.refused)).collect();
    let sections = refused.keys().chain(recorded.keys()).collect::<std::collections::BTreeSet<_>>();
    let others: Vec<String> = sections
        .into_iter()
        .map(|section| (section, refused.get(section).unwrap_or(&0), recorded.get(section).unwrap_or(&0)))
        .filter(|(_, refused, recorded)| refused != recorded)
        .map(|(section, refused, recorded)| format!("{section}: {refused}, not {recorded}"))
        .collect();
    assert!(
        others.is_empty(),
        "what is refused is not what {} says (CONFORMANCE_REFUSED=1 -- --nocapture tells why; if it is less, \
         GRANARY_GOLDEN=write records it):\n{}",
        path.display(),
        others.join("\n")
    );
}

/// Compares one file.
fn check(file: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let path: PathBuf = folder.join(file);
    let cases = read(&path);
    assert!(cases.len() > 100, "{file} has what was recorded");
    let known = known_differences(&folder);
    let tallies = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(2, |threads| threads.get());
    std::thread::scope(|scope| {
        for part in cases.chunks(cases.len().div_ceil(threads)) {
            let (known, tallies) = (&known, &tallies);
            scope.spawn(move || {
                let runtime = Runtime::new().unwrap();
                let session = Session::open(Options::default()).unwrap();
                compare(&Granary { session, runtime }, part, known, tallies);
            });
        }
    });
    let tallies = tallies.into_inner().unwrap();
    let sum = |of: fn(&Tally) -> usize| tallies.values().map(of).sum::<usize>();
    println!(
        "{file}: {} right, {} refused by both, {} refused here, {} known to differ",
        sum(|tally| tally.right),
        sum(|tally| tally.errors),
        sum(|tally| tally.refused),
        sum(|tally| tally.known),
    );
    let wrong: Vec<&str> = tallies.values().flat_map(|tally| &tally.wrong).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} answers of {file} differ (expression, ClickHouse, Granary):\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    check_refused(&folder.with_file_name("refused").join(file), &tallies);
}

macro_rules! files {
    ($($name:ident),*) => {
        $(
            #[test]
            fn $name() {
                check(concat!(stringify!($name), ".tsv"));
            }
        )*
    };
}

files!(aggregates, arithmetic, arrays, comparisons, conversions, names, strings, times);
