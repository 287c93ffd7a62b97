//! Values that a text gets from a regular expression found in it.

use crate::error::{Code, DictError};
use crate::limits;
use crate::row::Cell;
use crate::types::DataType;

/// The value given for an attribute.
#[derive(Debug, PartialEq)]
pub(super) enum RegexpValue {
    Known(Cell),
    /// Contains parts of the text.
    Made(Vec<Piece>),
}

#[derive(Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// What the group with this number matched; 0: the whole match.
    Group(usize),
}

impl RegexpValue {
    /// Reads `'\1'`, `'$2'` and the like as groups, up to the ninth.
    ///
    /// # Errors
    /// `INCORRECT_DICTIONARY_DEFINITION` if `text` has no groups and is no value of the type.
    pub fn parse(text: &str, data_type: &DataType) -> Result<RegexpValue, DictError> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let group = letters.peek().filter(|_| matches!(letter, '\\' | '$')).and_then(|c| c.to_digit(10));
            let Some(group) = group else {
                literal.push(letter);
                continue;
            };
            letters.next();
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Group(group as usize));
        }
        if pieces.is_empty() {
            return cell(text, data_type).map(RegexpValue::Known);
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(RegexpValue::Made(pieces))
    }

    /// Heap bytes of the value.
    pub fn bytes_allocated(&self) -> usize {
        match self {
            RegexpValue::Known(Cell::Text(text)) => text.capacity(),
            RegexpValue::Known(Cell::Items(items)) => items.capacity(),
            RegexpValue::Known(Cell::Null | Cell::Fixed(_)) => 0,
            RegexpValue::Made(pieces) => {
                let text = |piece: &Piece| match piece {
                    Piece::Text(text) => text.capacity(),
                    Piece::Group(_) => 0,
                };
                pieces.capacity() * size_of::<Piece>() + pieces.iter().map(text).sum::<usize>()
            }
        }
    }
}

/// The value that `pieces` make, where `group` gives what each group matched; `None`: the only piece is a group that
/// was not found.
///
/// `bytes_left` counts the bytes that may still be made for a text.
///
/// # Errors
/// `INCORRECT_DICTIONARY_DEFINITION` if it is no value of the type, `LIMIT_EXCEEDED` if it is more than is left.
pub(super) fn made<'t>(
    pieces: &[Piece],
    group: impl Fn(usize) -> &'t str,
    data_type: &DataType,
    bytes_left: &mut usize,
) -> Result<Option<Cell>, DictError> {
    if let [Piece::Group(only)] = pieces
        && group(*only).is_empty()
    {
        return Ok(None);
    }
    let mut text = String::new();
    for piece in pieces {
        let part = match piece {
            Piece::Text(literal) => literal,
            Piece::Group(number) => group(*number),
        };
        *bytes_left = bytes_left.checked_sub(part.len()).ok_or_else(too_long)?;
        text.push_str(part);
    }
    cell(&text, data_type).map(Some)
}

fn too_long() -> DictError {
    let most = limits::ROW_BYTES_MAX;
    DictError::new(Code::LimitExceeded, format!("The values that a text gets are longer than {most} bytes"))
}

/// Parses a value; NULL is one of a Nullable type.
fn cell(text: &str, data_type: &DataType) -> Result<Cell, DictError> {
    if data_type.is_nullable() && (text.eq_ignore_ascii_case("NULL") || text == "ᴺᵁᴸᴸ") {
        return Ok(Cell::Null);
    }
    Cell::parse(data_type, text).map_err(|reason| {
        let reason = reason.message();
        DictError::definition(format!("Cannot parse {text} for data type {data_type}, Reason is: {reason}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, data_type: &str) -> String {
        let data_type = DataType::parse(data_type).unwrap();
        let groups = ["all", "one", "", "3"];
        let group = |number: usize| groups.get(number).copied().unwrap_or("");
        match RegexpValue::parse(text, &data_type) {
            Ok(RegexpValue::Known(cell)) => format!("{cell:?}"),
            Ok(RegexpValue::Made(pieces)) => match made(&pieces, group, &data_type, &mut 100) {
                Ok(cell) => format!("made {cell:?}"),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn groups_are_put_into_texts() {
        for (text, value) in [
            ("plain", "Text(\"plain\")"),
            ("a\\", "Text(\"a\\\\\")"),
            ("$x $", "Text(\"$x $\")"),
            ("$1", "made Some(Text(\"one\"))"),
            (r"<\0> and $12", "made Some(Text(\"<all> and one2\"))"),
            ("$2", "made None"),
            ("$9", "made None"),
            ("$2$2", "made Some(Text(\"\"))"),
            ("-$2", "made Some(Text(\"-\"))"),
        ] {
            assert_eq!(shown(text, "String"), value, "{text}");
        }
    }

    #[test]
    fn values_are_of_their_type() {
        assert_eq!(shown("NULL", "String"), "Text(\"NULL\")");
        assert_eq!(shown("null", "Nullable(String)"), "Null");
        assert!(shown("13", "UInt8").starts_with("Fixed"));
        assert!(shown("$3", "Nullable(UInt8)").starts_with("made Some(Fixed"));
        for wrong in [shown("x", "UInt8"), shown("$1", "UInt8")] {
            assert!(wrong.contains("489") && wrong.contains("for data type UInt8, Reason is: "), "{wrong}");
        }
    }

    #[test]
    fn what_is_made_has_a_bound() {
        let pieces = [Piece::Group(0), Piece::Group(0)];
        let made = |mut left| made(&pieces, |_| "four", &DataType::String, &mut left);
        assert_eq!(made(8).unwrap(), Some(Cell::Text("fourfour".to_owned())));
        assert!(made(7).unwrap_err().to_string().contains("longer than"));
    }
}
