//! Page compression in RocksDB, by the driver in `rivals/rocksdb`.

use crate::PeerError;
use crate::peers::error;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// One codec with one block size.
pub struct PageFigures {
    /// The codec.
    pub codec: String,
    /// Bytes of a block before compression.
    pub block_bytes: u64,
    /// Bytes of table files for each entry.
    pub disk_bytes: f64,
    /// Bytes written for each write.
    pub written_bytes: f64,
    /// Mean microseconds of a read.
    pub read_us: f64,
    /// Mean microseconds of a write.
    pub write_us: f64,
}

/// Where values lie: beside others of their document, or at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Keys follow the documents.
    Document,
    /// Keys are hash-like.
    Random,
}

/// Runs the driver on a file of values in hexadecimal digits, with its data in `folder`: `keys` of them, and each of
/// `codecs` for its blocks.
pub fn run(
    rivals: &Path,
    values: &Path,
    folder: &Path,
    order: Order,
    keys: usize,
    operations: u64,
    codecs: &[&str],
) -> Result<Vec<PageFigures>, PeerError> {
    let order = if order == Order::Document { "document" } else { "random" };
    let run = Command::new("python3")
        .arg(rivals.join("rocksdb/pages.py"))
        .arg("--values")
        .arg(values)
        .arg("--data")
        .arg(folder)
        .args(["--hexadecimal", "--order", order])
        .args(["--keys", &keys.to_string(), "--operations", &operations.to_string()])
        .arg("--codecs")
        .args(codecs)
        .stdin(Stdio::null())
        .output()
        .map_err(|why| error("cannot run the RocksDB driver", why))?;
    if !run.status.success() {
        return Err(error("the RocksDB driver", String::from_utf8_lossy(&run.stderr)));
    }
    let lines = String::from_utf8_lossy(&run.stdout);
    lines.lines().map(parse).collect()
}

fn parse(line: &str) -> Result<PageFigures, PeerError> {
    let answer: Value = serde_json::from_str(line).map_err(|why| error("the RocksDB driver", why))?;
    let missing = |name: &str| error("the RocksDB driver does not say", name);
    let number = |name: &str| answer[name].as_f64().ok_or_else(|| missing(name));
    Ok(PageFigures {
        codec: answer["codec"].as_str().ok_or_else(|| missing("codec"))?.to_owned(),
        block_bytes: answer["block"].as_u64().ok_or_else(|| missing("block"))?,
        disk_bytes: number("bytes")?,
        written_bytes: number("written")?,
        read_us: number("read_us")?,
        write_us: number("write_us")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_driver_is_understood_or_refused() {
        let line = r#"{"codec": "zstd", "block": 4096, "bytes": 180.5, "written": 12, "read_us": 5.5, "write_us": 1}"#;
        let figures = parse(line).unwrap();
        assert_eq!((figures.codec.as_str(), figures.block_bytes, figures.disk_bytes), ("zstd", 4096, 180.5));
        let error = parse(r#"{"codec": "zstd", "block": 4096}"#).err().unwrap();
        assert_eq!(error.to_string(), "the RocksDB driver does not say: bytes");
        assert!(parse("no JSON").is_err());
    }
}
