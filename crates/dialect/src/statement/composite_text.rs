//! Texts of arrays, maps and tuples as ClickHouse writes them: which values are quoted, and where the text ends. A cast
//! would accept a number for a text and vice versa, and ignore blanks around them.

use granary_dict::DataType;

/// Why a text does not have its type's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A value whose type is quoted has no quotes.
    Unquoted(DataType),
    /// A value whose type is not quoted has quotes.
    Quoted(DataType),
    /// Something follows the value.
    TooLong,
    /// A bracket, a comma or a quote is missing.
    Malformed,
}

/// Checks the form of a whole text. Numbers and dates in it are not parsed.
///
/// # Errors
/// See [`Wrong`].
pub fn check(text: &str, data_type: &DataType) -> Result<(), Wrong> {
    match skip(text, data_type)? {
        "" => Ok(()),
        _ => Err(Wrong::TooLong),
    }
}

/// The items of an array that passed [`check`], as written.
pub fn items<'a>(text: &'a str, item: &DataType) -> Vec<&'a str> {
    let mut items = Vec::new();
    // For a malformed text, those before the error.
    let _ = sequence(text, ['[', ']'], |rest, _| {
        let behind = skip(rest, item)?;
        items.push(&rest[..rest.len() - behind.len()]);
        Ok(behind)
    });
    items
}

/// The rest of a text after the value of this type at its beginning.
fn skip<'a>(text: &'a str, data_type: &DataType) -> Result<&'a str, Wrong> {
    match data_type {
        DataType::Array(item) | DataType::Nested(item) => {
            sequence(text, ['[', ']'], |rest, _| skip(rest, item))
        }
        DataType::Map(entry) => {
            let DataType::Tuple(both) = entry.as_ref() else { return Err(Wrong::Malformed) };
            let [key, value] = both.as_slice() else { return Err(Wrong::Malformed) };
            sequence(text, ['{', '}'], |rest, _| {
                let rest = skip(rest, &key.data_type)?.trim_start();
                let rest = rest.strip_prefix(':').ok_or(Wrong::Malformed)?;
                skip(rest.trim_start(), &value.data_type)
            })
        }
        DataType::Tuple(elements) => sequence(text, ['(', ')'], |rest, at| {
            let element = elements.get(at).ok_or(Wrong::Malformed)?;
            skip(rest, &element.data_type)
        }),
        DataType::Nullable(inner) => match bare(text) {
            Ok((word, rest)) if word.eq_ignore_ascii_case("NULL") => Ok(rest),
            _ => skip(text, inner),
        },
        DataType::String
        | DataType::Uuid
        | DataType::Ipv4
        | DataType::Ipv6
        | DataType::Date
        | DataType::Date32 => match text.starts_with('\'') {
            true => quoted(text),
            false => Err(Wrong::Unquoted(data_type.clone())),
        },
        // A number is a Unix time.
        DataType::DateTime { .. } | DataType::DateTime64 { .. } | DataType::Bool
            if text.starts_with('\'') =>
        {
            quoted(text)
        }
        _ if text.starts_with('\'') => Err(Wrong::Quoted(data_type.clone())),
        _ => Ok(bare(text)?.1),
    }
}

/// The rest of a text after the bracketed sequence at its beginning. `item` returns the rest after the item with that
/// number.
fn sequence<'a>(
    text: &'a str,
    [open, close]: [char; 2],
    mut item: impl FnMut(&'a str, usize) -> Result<&'a str, Wrong>,
) -> Result<&'a str, Wrong> {
    let mut rest = text.strip_prefix(open).ok_or(Wrong::Malformed)?.trim_start();
    if let Some(behind) = rest.strip_prefix(close) {
        return Ok(behind);
    }
    for at in 0.. {
        rest = item(rest, at)?.trim_start();
        if let Some(behind) = rest.strip_prefix(close) {
            return Ok(behind);
        }
        rest = rest.strip_prefix(',').ok_or(Wrong::Malformed)?.trim_start();
        // `(1,)`
        if let Some(behind) = rest.strip_prefix(close).filter(|_| close == ')') {
            return Ok(behind);
        }
    }
    Err(Wrong::Malformed)
}

/// The rest of a text after the quoted string at its beginning.
fn quoted(text: &str) -> Result<&str, Wrong> {
    let mut characters = text.chars();
    characters.next();
    while let Some(letter) = characters.next() {
        match letter {
            '\\' => {
                characters.next();
            }
            '\'' => return Ok(characters.as_str()),
            _ => {}
        }
    }
    Err(Wrong::Malformed)
}

/// A value without quotes, and the rest after it.
fn bare(text: &str) -> Result<(&str, &str), Wrong> {
    let ends = |letter: char| matches!(letter, ',' | ':' | '\'' | '(' | ')' | '[' | ']' | '{' | '}');
    let end = text.find(|letter: char| ends(letter) || letter.is_whitespace()).unwrap_or(text.len());
    if end == 0 { Err(Wrong::Malformed) } else { Ok(text.split_at(end)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str, data_type: &str) -> Result<(), Wrong> {
        check(text, &DataType::parse_column(data_type).unwrap())
    }

    #[test]
    fn values_are_written_as_their_types_are() {
        for (data_type, text) in [
            ("Array(UInt8)", "[]"),
            ("Array(UInt8)", "[ 1 , 2 ]"),
            ("Array(String)", r"['a', 'b\'],[', 'it\\']"),
            ("Array(Array(Nullable(String)))", "[[NULL, 'NULL'],[ ]]"),
            ("Array(DateTime)", "[1577836800,'2020-01-01 00:00:00']"),
            ("Array(Float64)", "[nan,-inf,1e3]"),
            ("Array(Bool)", "[true,0]"),
            ("Tuple(UInt8, String)", "( 1 , 'x' )"),
            ("Tuple(UInt8)", "(1,)"),
            ("Map(String, Array(UInt8))", "{ 'k' : [1] , 'l':[]}"),
            ("Map(UInt8, Tuple(Date, Decimal(9, 2)))", "{1:('2020-01-01',-1.5)}"),
        ] {
            assert_eq!(checked(text, data_type), Ok(()), "{data_type} {text}");
        }
        for (data_type, text, wrong) in [
            ("Array(String)", "['a',1]", Wrong::Unquoted(DataType::String)),
            ("Array(Nullable(Date))", "[2020-01-01]", Wrong::Unquoted(DataType::Date)),
            ("Map(String, UInt8)", "{k:1}", Wrong::Unquoted(DataType::String)),
            ("Array(UInt8)", "['1']", Wrong::Quoted(DataType::UInt8)),
            ("Array(UInt8)", "[1] ", Wrong::TooLong),
            ("Array(UInt8)", "[1][2]", Wrong::TooLong),
            ("Array(UInt8)", "[1,]", Wrong::Malformed),
            ("Array(UInt8)", "[,1]", Wrong::Malformed),
            ("Array(UInt8)", "[1 2]", Wrong::Malformed),
            ("Array(UInt8)", "[f(1)]", Wrong::Malformed),
            ("Array(UInt8)", " [1]", Wrong::Malformed),
            ("Array(String)", r"['a\']", Wrong::Malformed),
            ("Array(String)", "['a''b']", Wrong::Malformed),
            ("Tuple(UInt8)", "(1,2)", Wrong::Malformed),
            ("Map(String, UInt8)", "{'k'}", Wrong::Malformed),
            ("Map(String, UInt8)", "", Wrong::Malformed),
        ] {
            assert_eq!(checked(text, data_type), Err(wrong), "{data_type} {text}");
        }
    }

    #[test]
    fn items_are_what_stands_between_commas() {
        let of = |text, item: &str| items(text, &DataType::parse_column(item).unwrap());
        assert_eq!(of(r"[ 'a,' ,'b\']' ]", "String"), ["'a,'", r"'b\']'"]);
        assert_eq!(of("[[1,2],[ 3 ]]", "Array(UInt8)"), ["[1,2]", "[ 3 ]"]);
        assert!(of("[ ]", "UInt8").is_empty());
    }
}
