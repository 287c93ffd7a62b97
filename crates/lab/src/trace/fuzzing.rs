//! Feeds any bytes to the readers of traces: they are refused or read, never a panic.

use super::generate::{Scale, cachelib, clusters, twitter};
use super::open::guess_contents;
use super::packed::unpack;
use super::{Format, Label, Trace, TraceError};
use std::io::Cursor;
use std::path::{Path, PathBuf};

/// Maximum requests read: a line may stand for a million.
const REQUESTS: usize = 2000;

/// The formats of recorded traces.
const RECORDED: [Format; 6] = [
    Format::CloudPhysics,
    Format::Web,
    Format::Cache2k,
    Format::OracleGeneral,
    Format::Twitter,
    Format::KeyValue,
];

/// A file, packed or not: the first byte chooses the format, or that it is guessed.
pub fn traces(data: &[u8]) {
    let Some((choice, file)) = data.split_first() else { return };
    let path = Path::new("fuzzed.trace");
    let Ok(mut bytes) = unpack(path, Cursor::new(file.to_vec())) else { return };
    let format = match RECORDED.get(usize::from(*choice)) {
        Some(format) => *format,
        None => match guess_contents(path, &mut bytes) {
            Ok(Format::CacheLib | Format::TwitterClusters) | Err(_) => return,
            Ok(format) => format,
        },
    };
    let is_packed = file.starts_with(&[0x1f]) || file.starts_with(&[0xfd]);
    let mut trace = Trace::recorded(format, path, bytes);
    assert_eq!(trace.label, if format == Format::Cache2k { Label::RealKeys } else { Label::RealSized });
    let (requests, failed) = drain(&mut trace);
    if format == Format::Cache2k && !is_packed {
        assert_eq!(requests, (file.len() / 4).min(REQUESTS));
        assert_eq!(
            failed,
            requests < REQUESTS && !file.len().is_multiple_of(4),
            "what is cut off is an error"
        );
    }
    if failed {
        assert!(trace.next().is_none(), "after an error there are no more");
    }
}

/// Published statistics: a table of clusters, or three files of CacheLib's with zeros between.
pub fn statistics(data: &[u8]) {
    let scale = Scale { requests: 100, keys: None, seed: 1 };
    let parts: Vec<&[u8]> = data.splitn(3, |byte| *byte == 0).collect();
    let drawn = match parts[..] {
        [config, popularity, sizes] => cachelib_of(config, popularity, sizes, scale),
        _ => std::str::from_utf8(data).map_err(|_| ()).and_then(|text| {
            let found = clusters::find(Path::new("clusters.md"), text, 14).map_err(drop)?;
            Ok(twitter::open(found, scale))
        }),
    };
    if let Ok(mut trace) = drawn {
        let mut requests = 0;
        for request in &mut trace {
            let request = request.expect("what is drawn is no error");
            assert!(request.value_bytes > 0, "an object has a size");
            requests += 1;
        }
        assert_eq!(requests, scale.requests);
    }
}

fn cachelib_of(config: &[u8], popularity: &[u8], sizes: &[u8], scale: Scale) -> Result<Trace, ()> {
    let json = |text| cachelib::Json::parse(PathBuf::from("fuzzed.json"), text).map_err(drop);
    let (config, popularity, sizes) = (json(config)?, json(popularity)?, json(sizes)?);
    cachelib::draw("fuzzed".to_owned(), &config, &popularity, &sizes, scale).map_err(drop)
}

/// Counts requests up to the first error, and returns whether there is one.
fn drain(trace: &mut Trace) -> (usize, bool) {
    let mut requests = 0;
    for request in trace.take(REQUESTS) {
        match request {
            Ok(_) => requests += 1,
            Err(TraceError::Read { .. } | TraceError::Line { .. } | TraceError::Record { .. }) => {
                return (requests, true);
            }
            Err(other) => panic!("{other} is said of a file as a whole"),
        }
    }
    (requests, false)
}
