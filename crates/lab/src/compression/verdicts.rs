//! What the study wanted of zstd with a dictionary, and which values miss it.

use super::codec::CodecFigures;
use super::page::TRAINED;
use super::pages::PageRun;
use super::rocksdb::Order;
use super::seed::SeedFigures;
use super::study::CompressionFindings;

pub(super) const ENCODE_US_WANTED: f64 = 2.5;
pub(super) const DECODE_US_WANTED: f64 = 0.8;
/// 1.1 MiB.
const RAM_KIB_WANTED: usize = 1126;

/// The part of the bytes of uncompressed real values that is wanted: a sixth.
const PART_WANTED: f64 = 1.0 / 6.0;

/// The place of zstd with a dictionary among the contenders of the seed's experiment.
const SEED_TRAINED: usize = 3;

impl CompressionFindings {
    /// Which values miss the times and the RAM that were wanted.
    pub(super) fn codec_verdict(&self) -> String {
        let missing = |shown: &dyn Fn(&CodecFigures) -> Option<String>| {
            let of = |(values, figures): &(super::Values, Vec<CodecFigures>)| {
                Some(format!("`{}` ({})", values.name, shown(&figures[TRAINED])?))
            };
            list(self.codecs.iter().filter_map(of).collect())
        };
        let us = |us: f64, wanted| (us > wanted).then(|| format!("{us:.2}"));
        let encode = missing(&|figures| us(figures.encode_us.median(), ENCODE_US_WANTED));
        let decode = missing(&|figures| us(figures.decode_us.median(), DECODE_US_WANTED));
        let ram = missing(&|figures| {
            let kib = figures.ram_bytes >> 10;
            (kib > RAM_KIB_WANTED).then(|| kib.to_string())
        });
        format!(
            "Wanted were at most {ENCODE_US_WANTED} us to compress a KiB, {DECODE_US_WANTED} us to decompress one, and \
             {RAM_KIB_WANTED} KiB (1.1 MiB) of RAM for a dictionary with its contexts. zstd with a dictionary misses the \
             first with {encode}, the second with {decode}, the third with {ram}."
        )
    }

    /// What part of RAM and flash real values take that are compressed.
    pub(super) fn seed_verdict(&self) -> String {
        let shown = |(name, figures): &(String, Vec<SeedFigures>)| {
            let (none, trained) = (&figures[0], &figures[SEED_TRAINED]);
            let part = |room: &str, trained: f64, none: f64| {
                let part = trained / none;
                format!("{part:.3} of the {room}{}", if part > PART_WANTED { ", which is more" } else { "" })
            };
            let ram = part("RAM", trained.ram_bytes, none.ram_bytes);
            format!("`{name}` {ram}, and {}", part("flash", trained.flash_bytes, none.flash_bytes))
        };
        let real = self.seeds.iter().filter(|(name, _)| name != "drawn").map(shown);
        format!(
            "Wanted was a sixth ({PART_WANTED:.3}) for real values. With zstd and a dictionary they take: {}.",
            real.collect::<Vec<String>>().join("; ")
        )
    }

    /// What values and blocks compressed at once come to, beside each alone.
    pub(super) fn page_verdict(&self) -> String {
        let bytes = |values: &str, value_codec: &str, block_codec: &str| {
            let is_meant = |run: &&PageRun| {
                (run.order, &run.values[..], run.value_codec) == (Order::Random, values, value_codec)
            };
            let run = self.pages.iter().find(is_meant)?;
            // Blocks of 16 KiB, the last.
            Some(run.of(block_codec).last()?.disk_bytes)
        };
        let shown = |(name, _): &(String, _)| {
            let (value_codec, block_codec) = match &name[..] {
                "drawn" => ("Snappy", "snappy"),
                _ => ("zstd, trained", "zstd"),
            };
            let values = bytes(name, value_codec, "none")?;
            let blocks = bytes(name, "none", block_codec)?;
            let both = bytes(name, value_codec, block_codec)?;
            Some(format!("`{name}` {values:.0} bytes, {blocks:.0} and {both:.0} ({block_codec})"))
        };
        format!(
            "An entry on disk with compressed values alone, with compressed blocks of 16 KiB alone, and with both, keys as \
             hashes: {}.",
            self.seeds.iter().filter_map(shown).collect::<Vec<_>>().join("; ")
        )
    }
}

/// `a, b and c`, or that there are none.
fn list(mut items: Vec<String>) -> String {
    let Some(last) = items.pop() else { return "no values".to_owned() };
    if items.is_empty() { last } else { format!("{} and {last}", items.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Samples;
    use crate::compression::Values;
    use crate::compression::rocksdb::PageFigures;

    fn samples(us: f64) -> Samples {
        let mut samples = Samples::default();
        samples.push(us);
        samples
    }

    #[test]
    fn values_that_miss_a_bar_are_named() {
        let codec = |name: &str, encode: f64, decode: f64, ram_kib: usize| {
            let figures = || CodecFigures {
                stored_bytes: 1,
                encode_us: samples(encode),
                decode_us: samples(decode),
                ram_bytes: ram_kib << 10,
            };
            let values = Values { name: name.to_owned(), train: Vec::new(), test: Vec::new() };
            (values, vec![figures(), figures(), figures(), figures()])
        };
        let seed = |name: &str, ram: f64, flash: f64| {
            let of =
                |ram_bytes, flash_bytes| SeedFigures { ram_bytes, flash_bytes, ..SeedFigures::default() };
            (name.to_owned(), vec![of(1.0, 1.0), of(1.0, 1.0), of(1.0, 1.0), of(ram, flash)])
        };
        let mut findings = CompressionFindings {
            codecs: vec![codec("a", 2.5, 0.8, 1126), codec("b", 2.51, 1.77, 900), codec("c", 7.0, 0.1, 1215)],
            seeds: vec![seed("drawn", 0.3, 0.3), seed("a", 0.1676, 0.141)],
            pages: Vec::new(),
        };
        let text = findings.codec_verdict();
        assert!(
            text.ends_with(" the first with `b` (2.51) and `c` (7.00), the second with `b` (1.77), the third with `c` (1215)."),
            "{text}"
        );
        let text = findings.seed_verdict();
        assert!(
            text.ends_with(" they take: `a` 0.168 of the RAM, which is more, and 0.141 of the flash."),
            "{text}"
        );
        let page = |codec: &str, kib: u64, disk_bytes: f64| PageFigures {
            codec: codec.to_owned(),
            block_bytes: kib << 10,
            disk_bytes,
            written_bytes: 0.0,
            read_us: 0.0,
            write_us: 0.0,
        };
        let run =
            |order, value_codec, figures| PageRun { values: "a".to_owned(), order, value_codec, figures };
        let alone = vec![page("none", 16, 900.0), page("zstd", 4, 234.0), page("zstd", 16, 169.0)];
        findings.pages = vec![
            run(Order::Document, "none", vec![page("zstd", 16, 89.0)]),
            run(Order::Random, "none", alone),
            run(Order::Random, "zstd, trained", vec![page("none", 16, 140.0), page("zstd", 16, 130.4)]),
        ];
        let text = findings.page_verdict();
        assert!(text.ends_with(" keys as hashes: `a` 140 bytes, 169 and 130 (zstd)."), "{text}");
        findings.codecs.truncate(1);
        assert!(
            findings
                .codec_verdict()
                .ends_with("first with no values, the second with no values, the third with no values.")
        );
    }
}
