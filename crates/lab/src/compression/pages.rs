//! Values in a store that compresses its blocks: as they are, and compressed already.

use super::Values;
use super::rocksdb::{self, Order, PageFigures};
use crate::PeerError;
use crate::peers::error;
use granary_cache::{Compression, ValueCodec};
use std::path::Path;

/// What values are compressed with before the store gets them, and the codecs of its blocks then.
pub const VALUE_CODECS: [(&str, &[&str]); 3] = [
    ("none", &["none", "snappy", "zstd", "zstd, dictionaries"]),
    ("Snappy", &["none", "snappy"]),
    ("zstd, trained", &["none", "zstd"]),
];

/// Bytes of values that the store is filled with, before any compression.
const FILL_BYTES: usize = 64 << 20;

/// One kind of values in one order, compressed with one of [`VALUE_CODECS`].
pub struct PageRun {
    /// The kind of values.
    pub values: String,
    /// Where they lie.
    pub order: Order,
    /// What they are compressed with before the store gets them.
    pub value_codec: &'static str,
    /// Each codec of blocks with each size.
    pub figures: Vec<PageFigures>,
}

impl PageRun {
    /// The figures of one codec of blocks, from small blocks to large ones.
    pub fn of<'a>(&'a self, block_codec: &'a str) -> impl Iterator<Item = &'a PageFigures> {
        self.figures.iter().filter(move |figures| figures.codec == block_codec)
    }
}

/// The values as they are stored with a codec. Dictionaries are trained on the values themselves.
fn compress(value_codec: &str, values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    match value_codec {
        "Snappy" => {
            let mut encoder = snap::raw::Encoder::new();
            let mut compress = |value: &Vec<u8>| encoder.compress_vec(value).expect("there is room");
            values.iter().map(&mut compress).collect()
        }
        "zstd, trained" => {
            let mut codec = ValueCodec::trained(Compression::Zstd, values.iter().map(|value| &value[..]));
            values.iter().map(|value| codec.compress(value).bytes().to_vec()).collect()
        }
        _ => values.to_vec(),
    }
}

/// A line for each value, in hexadecimal digits, as the driver reads them.
fn lines(values: &[Vec<u8>]) -> String {
    let digit = |number: u8| char::from_digit(number.into(), 16).expect("it is below 16");
    let line = |value: &Vec<u8>| {
        let digits = value.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        format!("\t{}\n", digits.map(digit).collect::<String>())
    };
    values.iter().map(line).collect()
}

/// Runs RocksDB on values of one kind, compressed with each of [`VALUE_CODECS`]; its data and the driver's input are in
/// `folder`.
pub fn run(
    rivals: &Path,
    folder: &Path,
    (name, values): (&str, &[Vec<u8>]),
    order: Order,
    operations: u64,
) -> Result<Vec<PageRun>, PeerError> {
    let keys = values.len() * FILL_BYTES / super::bytes(values);
    let input = folder.join("values");
    let run = |(value_codec, block_codecs): (&'static str, &[&str])| {
        std::fs::write(&input, lines(&compress(value_codec, values)))
            .map_err(|why| error("cannot write values for the RocksDB driver", why))?;
        let figures = rocksdb::run(rivals, &input, folder, order, keys, operations, block_codecs)?;
        Ok(PageRun { values: name.to_owned(), order, value_codec, figures })
    };
    let runs = VALUE_CODECS.into_iter().map(run).collect();
    // Whatever is left is removed with the folder.
    let _ = std::fs::remove_file(&input);
    runs
}

/// The values of a file in the order of its documents.
pub fn in_document_order(path: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    Ok(Values::lines(path)?.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::values::drawn;

    #[test]
    fn values_are_compressed_as_their_codec_says() {
        let values = drawn(2000);
        let stored = VALUE_CODECS.map(|(codec, _)| compress(codec, &values));
        assert_eq!(stored[0], values);
        let len = stored.each_ref().map(|values| crate::compression::bytes(values) / values.len());
        assert!((370..390).contains(&len[1]), "{len:?}");
        assert!(len[2] < len[1], "{len:?}");
    }

    #[test]
    fn the_driver_gets_hexadecimal_digits() {
        assert_eq!(lines(&[b"\0a".to_vec(), vec![], vec![0xff]]), "\t0061\n\t\n\tff\n");
    }
}
