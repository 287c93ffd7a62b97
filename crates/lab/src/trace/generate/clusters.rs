//! The published statistics of Twitter's caches: a Markdown table, a row for each cluster.

use crate::trace::read::twitter::operation;
use crate::trace::{Operation, TraceError};
use std::path::Path;

/// The statistics of one cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its number.
    pub number: u32,
    /// Mean bytes of keys.
    pub key_bytes: f64,
    /// Mean bytes of values.
    pub value_bytes: f64,
    /// Requests for each object, in the week that was traced.
    pub requests_an_object: f64,
    /// Lifetimes in seconds, and their shares.
    pub ttls: Vec<(u32, f64)>,
    /// Operations, and their shares.
    pub operations: Vec<(Operation, f64)>,
    /// Exponent of the popularity's Zipf law.
    pub zipf: f64,
}

/// Reads the row of a cluster.
pub fn read(path: &Path, number: u32) -> Result<Cluster, TraceError> {
    let text = std::fs::read_to_string(path).map_err(TraceError::read(path))?;
    find(path, &text, number)
}

/// Finds the row of a cluster in a table. `path` is for errors.
pub(in crate::trace) fn find(path: &Path, text: &str, number: u32) -> Result<Cluster, TraceError> {
    let wanted = format!("cluster{number}");
    for (line, row) in text.lines().enumerate() {
        let cells: Vec<&str> = row.trim().trim_matches('|').split('|').map(str::trim).collect();
        if cells.first() == Some(&wanted.as_str()) {
            return parse(number, &cells).map_err(|what| TraceError::Line {
                path: path.to_owned(),
                line: line as u64 + 1,
                what: format!("{wanted}: {what}"),
            });
        }
    }
    Err(TraceError::file(path, format!("there is no {wanted}")))
}

fn parse(number: u32, cells: &[&str]) -> Result<Cluster, String> {
    let cell = |at: usize, name: &str| cells.get(at).copied().ok_or(format!("{name} is missing"));
    let positive = |at: usize, name: &str| -> Result<f64, String> {
        let text = cell(at, name)?;
        let value: f64 = text.parse().map_err(|_| format!("{name} is {text:?}, not a number"))?;
        if (0.0..1e12).contains(&value) { Ok(value) } else { Err(format!("{name} is {value}")) }
    };
    let operations: Result<Vec<(Operation, f64)>, String> = shares(cell(12, "operations")?)
        .map(|pair| pair.and_then(|(name, share)| Ok((operation(name)?, share))))
        .collect();
    let ttls: Result<Vec<(u32, f64)>, String> = shares(cell(9, "TTL")?)
        .map(|pair| pair.and_then(|(time, share)| Ok((duration(time)?, share))))
        .collect();
    let cluster = Cluster {
        number,
        key_bytes: positive(3, "key size")?,
        value_bytes: positive(4, "value size")?,
        requests_an_object: positive(6, "mean frequency")?,
        ttls: ttls?,
        operations: operations?,
        zipf: positive(13, "Zipf alpha")?,
    };
    if cluster.operations.iter().map(|(_, share)| share).sum::<f64>() <= 0.0 {
        return Err("no operation has a share".into());
    }
    Ok(cluster)
}

/// Splits `a:0.5, b:0.5`, or the same with spaces only.
fn shares(text: &str) -> impl Iterator<Item = Result<(&str, f64), String>> {
    text.split([',', ' ']).filter(|pair| !pair.is_empty()).map(|pair| {
        let wrong = || format!("{pair:?} is not a name, a colon and a share");
        let (name, share) = pair.split_once(':').ok_or_else(wrong)?;
        let share: f64 = share.parse().map_err(|_| wrong())?;
        if (0.0..=1.0).contains(&share) { Ok((name, share)) } else { Err(wrong()) }
    })
}

/// `90s`, `1.5h` or `14d` in seconds.
fn duration(text: &str) -> Result<u32, String> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];
    let seconds = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(number * seconds)
    });
    match seconds {
        Some(seconds) if (0.0..1e9).contains(&seconds) => Ok(seconds as u32),
        _ => Err(format!("{text:?} is not a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
|  cluster  | miss | category | key | value | rate | freq | one-hit | compulsory | TTL | WSS | WSS | operation | Zipf |
|:---------:|:----:|:--------:|:---:|:-----:|:----:|:----:|:-------:|:----------:|:---:|:---:|:---:|:---------:|:----:|
| cluster5  | 0.7 | 3 | N/A | N/A | N/A | N/A | N/A | N/A | N/A | N/A | N/A | N/A | NA |
| cluster14 | 0.12 | 1 | 96 | 414 | 5.81 | 35.4 | 10.94 | 2.82 | 1d:0.9, 1.5h:0.1, | 18333 | 8732 | get:0.65 delete:0.22 set:0.13 | 1.2959 |
";

    #[test]
    fn a_row_is_read_and_a_row_without_figures_is_an_error_that_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clusters.md");
        std::fs::write(&path, TABLE).unwrap();
        let cluster = read(&path, 14).unwrap();
        assert_eq!((cluster.key_bytes, cluster.value_bytes, cluster.zipf), (96.0, 414.0, 1.2959));
        assert_eq!(cluster.ttls, [(86_400, 0.9), (5400, 0.1)]);
        let operations = [(Operation::Get, 0.65), (Operation::Delete, 0.22), (Operation::Set, 0.13)];
        assert_eq!(cluster.operations, operations);
        let error = read(&path, 5).unwrap_err().to_string();
        assert!(error.contains("line 3: cluster5"), "{error}");
        assert!(read(&path, 1).unwrap_err().to_string().contains("there is no cluster1"));
    }
}
