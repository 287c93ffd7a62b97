//! The columns of a text, guessed from its beginning.

use granary_dialect::{Error, Result};
use granary_dict::{DictError, Field, FieldSink, TextFormat};

use super::kind::ValueKind;

/// Whether the first row has the columns' names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderRow {
    /// It has the names.
    Given,
    /// It has the names if it has texts only and a column below has something else.
    Guessed,
}

/// The guessed columns and header.
#[derive(Debug, PartialEq, Eq)]
pub struct Guess {
    pub columns: Vec<(String, ValueKind)>,
    /// Bytes of the first row, if it is a header.
    pub header_bytes: usize,
}

#[derive(Default)]
struct Sample {
    format: Option<TextFormat>,
    names: Vec<String>,
    first: Vec<ValueKind>,
    rest: Vec<ValueKind>,
    rows: usize,
}

impl FieldSink for Sample {
    fn field(&mut self, column: usize, field: Field<'_>) -> Result<(), DictError> {
        let kind = self.format.map_or(ValueKind::Text, |format| ValueKind::of(format, field));
        if self.rows == 0 {
            let text = match field {
                Field::Null => String::new(),
                Field::Plain(bytes) | Field::Exact(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            };
            self.names.push(text);
            self.first.push(kind);
            self.rest.push(ValueKind::Nothing);
        } else if let Some(known) = self.rest.get_mut(column) {
            *known = known.or(kind);
        }
        Ok(())
    }

    fn end_row(&mut self, columns: usize) -> Result<(), DictError> {
        self.rows += 1;
        if columns == self.first.len() {
            return Ok(());
        }
        let (row, expected) = (self.rows, self.first.len());
        Err(DictError::new(
            granary_dict::Code::CannotParseText,
            format!("Row {row} has {columns} columns, the first row has {expected}"),
        ))
    }
}

/// Guesses from whole rows at the beginning of a text.
pub fn guess(format: TextFormat, header: HeaderRow, text: &[u8]) -> Result<Guess> {
    let start = TextFormat::start(text);
    let text = &text[start..];
    let mut sample = Sample { format: Some(format), ..Sample::default() };
    format.fields(text, &mut sample)?;
    if sample.first.is_empty() {
        return Err(Error::cannot_extract_structure("it has no rows"));
    }
    let texts = sample
        .first
        .iter()
        .zip(&sample.names)
        .all(|(kind, name)| *kind == ValueKind::Text && !name.is_empty());
    let others = sample.rest.iter().any(|kind| !matches!(kind, ValueKind::Text | ValueKind::Nothing));
    if header == HeaderRow::Given || (texts && others) {
        let columns = sample.names.into_iter().zip(sample.rest).collect();
        return Ok(Guess { columns, header_bytes: start + first_row(format, text) });
    }
    let kinds = sample.first.iter().zip(&sample.rest).map(|(first, rest)| first.or(*rest));
    let columns = kinds.enumerate().map(|(i, kind)| (format!("c{}", i + 1), kind)).collect();
    Ok(Guess { columns, header_bytes: start })
}

fn first_row(format: TextFormat, text: &[u8]) -> usize {
    let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    ends.into_iter().find(|&end| format.whole_rows(&text[..end]) == end).unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(header: HeaderRow, text: &str) -> (Vec<String>, usize) {
        let guess = guess(TextFormat::Csv, header, text.as_bytes()).unwrap();
        (guess.columns.into_iter().map(|(name, _)| name).collect(), guess.header_bytes)
    }

    #[test]
    fn a_header_is_told_from_a_row_by_what_follows() {
        assert_eq!(names(HeaderRow::Guessed, "a,b\nc,d\n"), (vec!["c1".into(), "c2".into()], 0));
        assert_eq!(names(HeaderRow::Guessed, "a,b\nc,1\n"), (vec!["a".into(), "b".into()], 4));
        assert_eq!(names(HeaderRow::Guessed, "\u{feff}a,b\nc,1\n"), (vec!["a".into(), "b".into()], 7));
        assert_eq!(names(HeaderRow::Guessed, "\u{feff}a,b\nc,d\n"), (vec!["c1".into(), "c2".into()], 3));
        assert_eq!(names(HeaderRow::Guessed, "a,b\n"), (vec!["c1".into(), "c2".into()], 0));
        assert_eq!(names(HeaderRow::Given, "\"a\nb\",2\nc,d\n"), (vec!["a\nb".into(), "2".into()], 8));
        assert_eq!(guess(TextFormat::Csv, HeaderRow::Guessed, b"a,b\nc\n").unwrap_err().code, 6);
        assert!(guess(TextFormat::Csv, HeaderRow::Guessed, b"").is_err());
    }
}
