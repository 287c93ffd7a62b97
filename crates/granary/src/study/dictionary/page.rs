//! The page and the table of figures of the study.

use granary_lab::Samples;

use super::device::Device;
use super::grid::Grid;
use super::seed::{CONTENDERS, Seed};
use super::size::{DictionaryStudySize, RunKind};
use crate::study::figure::{bytes, count};

/// Everything that was measured.
pub struct DictionaryPage<'a> {
    pub size: &'a DictionaryStudySize,
    /// Machine and versions.
    pub notes: &'a [String],
    pub seed: &'a Seed,
    pub grid: &'a Grid,
    pub device: &'a Device,
}

impl DictionaryPage<'_> {
    /// docs/studies/dictionary.md.
    pub fn text(&self) -> String {
        let DictionaryPage { size, notes, seed, grid, device } = self;
        let warning = match size.kind {
            RunKind::Full => "",
            RunKind::Smoke => {
                "\n**Made with `--quick`: the sizes are too small for the figures to mean anything.**\n"
            }
        };
        let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
        format!(
            "\
<!-- Written by `granary study dictionary`. Change the program, not this page. -->

# Cache dictionaries: Granary, ClickHouse and the device
{warning}
This is the experiment with which cache dictionaries on SSD were introduced, on today's ClickHouse and on Granary: \
{keys} simple keys with one string attribute are filled into an empty cache from an executable source, and then \
read at random.

```sh
scripts/install-rivals.sh                      # ClickHouse (PyPI chdb), fio
granary study dictionary                       # writes this page, dictionary.csv and dictionary.svg
```

{notes}

## Filling and reading

```sql
{fill}
{read}
```

MAX_STORED_KEYS 2097152, FILE_SIZE {file_size}, BLOCK_SIZE 4096, LIFETIME 100000, the same program as the source. \
ClickHouse's SSD_CACHE has READ_BUFFER_SIZE 16777216: with less it cannot read longer records back ([why](../clickhouse.md)). \
`everything` is a write buffer that is larger than the data. Each line is the median of {repetitions} runs, the \
range in parentheses; the engines took turns, each from an empty cache; a read counts as the best of three in a row, as \
in the introduction. With a write buffer of one block \
ClickHouse ran once: it waits for each write. `read 1 key` is a query for one key, which ClickHouse has on disk, the median of \
{singles} queries for different keys; planning the query is part of it. All values, which are the same for all keys, were checked outside the \
measured time. `faster` is ClickHouse's time divided by Granary's.

{seed}

![Fills and reads](dictionary.svg)

`RAM tier off` is MEMORY_CACHE_SIZE 0: what has left the write buffer comes from the device. With the default, \
16 MiB, **all these entries stay in RAM**: that column says what its users get here, not what a read from the device \
costs. ClickHouse reads and writes with O_DIRECT, and so does Granary where \
the file system allows it.

## Block size and write buffer

The introduction left this open. Granary, RAM tier off, the same queries:

{fills}

{reads}

## The device

One wanted key a block, drawn at random, 65 536 at once, in a file of {block_file}, with the RAM tier off: a batch is \
read in the order of the file, and blocks side by side in one read. fio reads single blocks of the same file in random order, \
with io_uring, O_DIRECT and registered buffers at the same depth. `kill -9`: another process opens the cache, \
writes to it, and is killed meanwhile; then it is opened again.

{device}
",
            keys = count(size.keys),
            notes = notes.join("\n"),
            fill = super::contender::fill_query(size.keys),
            read = super::contender::read_query(size.keys, size.reads[0]),
            file_size = size.file_size,
            repetitions = size.repetitions,
            singles = size.single_keys,
            seed = seed.report().markdown(),
            fills = grid.fills.markdown(),
            reads = grid.reads.markdown(),
            block_file = bytes(size.block_file),
            device = device.report().markdown(),
        )
    }

    /// A line for each figure: part, line, contender, median, least, most, unit.
    pub fn csv(&self) -> String {
        let mut text = String::from("part,line,contender,median,min,max,unit\n");
        let mut add = |part: &str, line: &str, contender: &str, samples: &Samples, unit: &str| {
            let (median, low, high) = (samples.median(), samples.min(), samples.max());
            if !median.is_nan() {
                text.push_str(&format!("{part},\"{line}\",\"{contender}\",{median},{low},{high},{unit}\n"));
            }
        };
        for line in &self.seed.lines {
            let name = format!("{}: {}", line.layout, line.measure);
            for (contender, samples) in CONTENDERS.iter().zip(&line.samples) {
                add("seed", &name, contender, samples, "s");
            }
        }
        for (block, buffer, fill, read) in &self.grid.cells {
            let name = format!("block {block}, buffer {buffer}");
            add("grid fill", &name, CONTENDERS[1], fill, "s");
            add("grid read", &name, CONTENDERS[1], read, "s");
        }
        add("device", "block reads", "Granary", &self.device.granary, "1/s");
        add("device", "block reads", "fio", &self.device.fio, "1/s");
        let reopening = &self.device.reopening;
        for (name, (time, _)) in [("clean stop", reopening.clean), ("kill -9", reopening.killed)] {
            let mut samples = Samples::default();
            samples.push(time.as_secs_f64());
            add("reopening", name, "Granary", &samples, "s");
        }
        text
    }
}
