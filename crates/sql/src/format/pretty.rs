//! `Pretty` and `PrettyCompact`: tables for people.

use std::io::Write;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use granary_dialect::Result;
use granary_dialect::text::{Style, write_cell};
use unicode_width::UnicodeWidthStr;

use super::{BatchWriter, Statistics, columns, names};
use crate::limits::{PRETTY_FOOTER_ROWS, PRETTY_ROWS_MAX};

/// How much of a frame the table has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// A line between all rows.
    Full,
    /// The header in the upper line.
    Compact,
}

/// Holds the rows back until the widths of all columns are known.
pub struct Pretty<'a> {
    schema: SchemaRef,
    out: &'a mut (dyn Write + Send),
    frame: Frame,
    batches: Vec<RecordBatch>,
    rows_kept: usize,
    rows_seen: usize,
}

impl<'a> Pretty<'a> {
    pub fn new(schema: SchemaRef, out: &'a mut (dyn Write + Send), frame: Frame) -> Self {
        Self { schema, out, frame, batches: Vec::new(), rows_kept: 0, rows_seen: 0 }
    }
}

impl BatchWriter for Pretty<'_> {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows_seen += batch.num_rows();
        let rows = batch.num_rows().min(PRETTY_ROWS_MAX - self.rows_kept);
        if rows > 0 {
            self.rows_kept += rows;
            self.batches.push(batch.slice(0, rows));
        }
        Ok(())
    }

    fn finish(&mut self, _: Statistics) -> Result<()> {
        if self.rows_kept == 0 {
            return Ok(());
        }
        let table = PrettyTable::new(&concat_batches(&self.schema, &self.batches)?)?;
        let mut text = match self.frame {
            Frame::Full => table.full(),
            Frame::Compact => table.compact(),
        };
        if self.rows_seen > self.rows_kept {
            let (kept, seen) = (self.rows_kept, self.rows_seen);
            text.push_str(&format!("  Showed {kept} out of {seen} rows.\n"));
        }
        Ok(self.out.write_all(text.as_bytes())?)
    }
}

struct TableColumn {
    name: String,
    cells: Vec<String>,
    width: usize,
    numeric: bool,
}

impl TableColumn {
    /// One line of a cell; at a line break, arrows replace the blanks beside it.
    fn piece(&self, row: usize, line: usize) -> String {
        let cell = &self.cells[row];
        let text = cell.split_terminator('\n').nth(line);
        let before = if line > 0 && text.is_some() { '↳' } else { ' ' };
        let after = if cell.matches('\n').nth(line).is_some() { '↴' } else { ' ' };
        format!("{before}{}{after}", padded(text.unwrap_or(""), self.width, self.numeric))
    }
}

struct PrettyTable {
    columns: Vec<TableColumn>,
    rows: usize,
    /// Width of the row numbers, with their dot.
    margin: usize,
}

impl PrettyTable {
    fn new(batch: &RecordBatch) -> Result<PrettyTable> {
        let rows = batch.num_rows();
        let mut table = PrettyTable { columns: Vec::new(), rows, margin: rows.to_string().len() + 1 };
        for (name, column) in names(&batch.schema()).into_iter().zip(columns(batch)?) {
            let mut cells = Vec::with_capacity(rows);
            for row in 0..rows {
                let mut cell = Vec::new();
                write_cell(&column, row, Style::Pretty, &mut cell);
                cells.push(String::from_utf8_lossy(&cell).into_owned());
            }
            // A line break would break the header.
            let name = name.replace('\n', "↴");
            let lines = cells.iter().flat_map(|cell| cell.split_terminator('\n'));
            let widest = lines.map(UnicodeWidthStr::width).max().unwrap_or(0);
            let width = widest.max(name.width());
            table.columns.push(TableColumn { name, cells, width, numeric: column.is_numeric() });
        }
        Ok(table)
    }

    /// A line made of one piece a column; `ends` are its left end, the joints and the right end.
    fn line(&self, ends: [&str; 3], piece: impl Fn(&TableColumn) -> String) -> String {
        let pieces: Vec<String> = self.columns.iter().map(piece).collect();
        format!("{}{}{}{}\n", " ".repeat(self.margin + 1), ends[0], pieces.join(ends[1]), ends[2])
    }

    /// A row, which has as many lines as its tallest cell.
    fn row(&self, row: usize) -> String {
        let heights = self.columns.iter().map(|column| column.cells[row].split_terminator('\n').count());
        let mut text = String::new();
        for line in 0..heights.max().unwrap_or(0).max(1) {
            let number = if line == 0 { format!("{}.", row + 1) } else { String::new() };
            let pieces: Vec<String> = self.columns.iter().map(|column| column.piece(row, line)).collect();
            text += &format!("{number:>width$} │{}│", pieces.join("│"), width = self.margin);
            if let Some(tip) = self.large_number() {
                text.push_str(&tip);
            }
            text.push('\n');
        }
        text
    }

    /// ClickHouse writes a single large number in words: `-- 12.35 million`.
    fn large_number(&self) -> Option<String> {
        let [column] = self.columns.as_slice() else { return None };
        if self.rows != 1 || !column.numeric {
            return None;
        }
        let value: f64 = column.cells[0].parse().ok()?;
        let units = ["million", "billion", "trillion", "quadrillion", "quintillion"];
        let power = (value.abs().log10() / 3.0).floor();
        let unit = units.get((power as usize).checked_sub(2)?)?;
        Some(format!(" -- {:.2} {unit}", value / 1000_f64.powf(power)))
    }

    fn full(&self) -> String {
        let names = |c: &TableColumn| format!(" {} ", padded(&c.name, c.width, c.numeric));
        let mut text = self.line(["┏", "┳", "┓"], |c| "━".repeat(c.width + 2));
        text += &self.line(["┃", "┃", "┃"], names);
        text += &self.line(["┡", "╇", "┩"], |c| "━".repeat(c.width + 2));
        for row in 0..self.rows {
            if row > 0 {
                text += &self.line(["├", "┼", "┤"], |c| "─".repeat(c.width + 2));
            }
            text += &self.row(row);
        }
        if self.rows > PRETTY_FOOTER_ROWS {
            text += &self.line(["┢", "╈", "┪"], |c| "━".repeat(c.width + 2));
            text += &self.line(["┃", "┃", "┃"], names);
            text += &self.line(["┗", "┻", "┛"], |c| "━".repeat(c.width + 2));
        } else {
            text += &self.line(["└", "┴", "┘"], |c| "─".repeat(c.width + 2));
        }
        text
    }

    fn compact(&self) -> String {
        let names = |c: &TableColumn| {
            let dashes = "─".repeat(c.width - c.name.width());
            if c.numeric { format!("─{dashes}{}─", c.name) } else { format!("─{}{dashes}─", c.name) }
        };
        let mut text = self.line(["┌", "┬", "┐"], names);
        (0..self.rows).for_each(|row| text += &self.row(row));
        text += &if self.rows > PRETTY_FOOTER_ROWS {
            self.line(["└", "┴", "┘"], names)
        } else {
            self.line(["└", "┴", "┘"], |c| "─".repeat(c.width + 2))
        };
        text
    }
}

fn padded(text: &str, width: usize, right: bool) -> String {
    let padding = " ".repeat(width - text.width());
    if right { format!("{padding}{text}") } else { format!("{text}{padding}") }
}
