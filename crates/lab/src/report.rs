//! A table, for printing, Markdown and CSV.

use comfy_table::presets::{ASCII_MARKDOWN, UTF8_FULL_CONDENSED};
use comfy_table::{CellAlignment, Table};

/// Rows of text under headings.
#[derive(Clone, Debug, Default)]
pub struct Report {
    headings: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Report {
    /// An empty table with these headings.
    pub fn new(headings: &[&str]) -> Self {
        Self { headings: headings.iter().map(|h| (*h).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; it has as many cells as there are headings.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.headings.len(), "a row has a cell for each heading");
        self.rows.push(cells);
    }

    fn table(&self, preset: &str) -> Table {
        let mut table = Table::new();
        table.load_preset(preset).set_header(&self.headings).add_rows(&self.rows);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        self.table(UTF8_FULL_CONDENSED).to_string()
    }

    /// For a document.
    pub fn markdown(&self) -> String {
        self.table(ASCII_MARKDOWN).to_string()
    }

    /// For a spreadsheet.
    pub fn csv(&self) -> String {
        let line = |cells: &[String]| {
            let quoted: Vec<String> =
                cells.iter().map(|c| format!("\"{}\"", c.replace('"', "\"\""))).collect();
            quoted.join(",") + "\n"
        };
        std::iter::once(&self.headings).chain(&self.rows).map(|cells| line(cells)).collect()
    }
}
