//! Block size against write buffer size, which the seed left open.

use granary_lab::{Report, Samples};

use super::contender::{Engine, Granary, create, fill_query, read_query};
use super::size::DictionaryStudySize;
use crate::failure::Result;
use crate::study::figure::{bytes, count, seconds};

/// Two tables: a row for each block size, a column for each write buffer.
pub struct Grid {
    pub fills: Report,
    pub reads: Report,
    pub cells: Vec<Cell>,
}

/// Block size, write buffer, seconds of the fill, seconds of the reads.
pub type Cell = (u64, u64, Samples, Samples);

/// Runs all combinations in turn, with the RAM tier off.
pub fn run(size: &DictionaryStudySize, granary: &mut Granary) -> Result<Grid> {
    let mut cells = Vec::new();
    for &block in &size.grid_blocks {
        for &buffer in size.grid_buffers.iter().filter(|buffer| buffer.is_multiple_of(block)) {
            cells.push((block, buffer, Samples::default(), Samples::default()));
        }
    }
    let source = granary.source.clone();
    for _ in 0..size.repetitions {
        for (block, buffer, fill, read) in &mut cells {
            let layout = format!(
                "SSD_CACHE(BLOCK_SIZE {block} WRITE_BUFFER_SIZE {buffer} FILE_SIZE {} MEMORY_CACHE_SIZE 0 \
                 PATH './grid')",
                size.file_size
            );
            create(granary, &layout, &source)?;
            fill.push(granary.run(&fill_query(size.keys))?.0);
            read.push(granary.run(&read_query(size.keys, size.reads[1]))?.0);
            granary.run("DROP DICTIONARY dict")?;
        }
    }
    let table = |title: String, of: &dyn Fn(&Cell) -> String| {
        let headings: Vec<String> =
            std::iter::once(title).chain(size.grid_buffers.iter().map(|&buffer| bytes(buffer))).collect();
        let mut report = Report::new(&headings.iter().map(String::as_str).collect::<Vec<_>>());
        for &block in &size.grid_blocks {
            let row = size.grid_buffers.iter().map(|&buffer| {
                cells.iter().find(|cell| (cell.0, cell.1) == (block, buffer)).map_or("-".to_owned(), of)
            });
            report.row(std::iter::once(bytes(block)).chain(row));
        }
        report
    };
    Ok(Grid {
        fills: table(format!("fill {}, s: block, buffer", count(size.keys)), &|cell| seconds(&cell.2)),
        reads: table(format!("read {}, s: block, buffer", count(size.reads[1])), &|cell| seconds(&cell.3)),
        cells,
    })
}
