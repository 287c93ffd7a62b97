//! Every function of the conformance tables within a lambda over an empty array: it gets columns without rows, and must
//! not read a first row.

use std::path::Path;

use granary_sql::{Options, Session};
use tokio::runtime::Runtime;

/// Number of calls tried in each section.
const CALLS_A_SECTION: usize = 8;

/// The expressions of a file with `x` in the place of each argument in turn, and an empty array of such arguments.
fn lambdas(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut template, mut calls, mut lambdas) = ("", 0, Vec::new());
    for line in text.lines() {
        if let Some(section) = line.strip_prefix("= ") {
            (template, calls) = (section, 0);
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        let [_, data_type, _, arguments @ ..] = fields.as_slice() else { continue };
        let is_expression = !template.starts_with("SELECT") && template != "?" && *data_type != "!";
        if !is_expression || calls == CALLS_A_SECTION {
            continue;
        }
        calls += 1;
        for (place, argument) in arguments.iter().enumerate() {
            let mut parts = template.split('?');
            let mut body = parts.next().unwrap_or_default().to_owned();
            for (at, (other, part)) in arguments.iter().zip(parts).enumerate() {
                body += if at == place { "x" } else { other };
                body += part;
            }
            lambdas.push(format!("SELECT arrayMap(x -> {body}, arrayPopBack([{argument}]))"));
        }
    }
    lambdas
}

/// A function may refuse here what it refuses elsewhere.
#[test]
fn functions_of_no_rows() {
    let runtime = Runtime::new().unwrap();
    let session = Session::open(Options::default()).unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let (mut answered, mut refused) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.ends_with("known_differences.tsv") {
            continue;
        }
        for sql in lambdas(&path) {
            let rows = runtime.block_on(async {
                let statements = granary_sql::split(&sql)?;
                let mut output = session.execute(&statements[0]).await?;
                let mut rows = 0;
                while let Some(batch) = output.next().await {
                    rows += batch?.num_rows();
                }
                Ok::<_, granary_sql::Error>(rows)
            });
            match rows {
                Ok(rows) => {
                    assert_eq!(rows, 1, "{sql}");
                    answered += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(answered > 3 * refused, "{answered} answered, {refused} refused");
}
