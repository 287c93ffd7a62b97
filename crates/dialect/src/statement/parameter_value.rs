//! Values of query parameters as SQL. The form follows from the type, so that a value is never more than a value.

use granary_dict::{DataType, unescape};

use super::array_items::{in_place, is_whole, list};
use super::composite_text::{Wrong, check};
use super::parameters::quoted;
use super::token_cursor;
use crate::error::{Error, Result};

/// The position of a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Context {
    Expression,
    /// In the parentheses after IN, alone.
    Set,
}

/// `{name:Type}`.
pub struct Parameter<'a> {
    pub name: &'a str,
    pub type_name: &'a str,
    pub place: Context,
}

impl Parameter<'_> {
    /// Whether its value is a name.
    pub fn is_identifier(&self) -> bool {
        self.type_name == "Identifier"
    }

    fn unreadable(&self, value: &str, why: &str) -> String {
        let (type_name, name) = (self.type_name, self.name);
        format!("Value {value} cannot be parsed as {type_name} for query parameter '{name}'{why}")
    }

    fn bad(&self, value: &str) -> Error {
        Error::bad_query_parameter(self.unreadable(value, " because it isn't parsed completely"))
    }
}

/// The value of a parameter as SQL; `value` is `None` if none was given.
///
/// # Errors
/// UNKNOWN_QUERY_PARAMETER if a value is required, BAD_QUERY_PARAMETER and the like for one that does not fit the type.
pub fn sql(parameter: &Parameter<'_>, value: Option<&str>) -> Result<String> {
    let type_name = without_low_cardinality(parameter.type_name);
    let nullable = inside("Nullable", &type_name);
    if nullable.is_some() && value.is_none_or(|value| value == "\\N") {
        return Ok(match parameter.place {
            Context::Expression => format!("CAST(NULL AS {type_name})"),
            Context::Set => "NULL".to_owned(),
        });
    }
    let Some(value) = value else {
        let message = format!("Substitution `{}` is not set", parameter.name);
        return Err(Error::unknown_query_parameter(message));
    };
    if parameter.is_identifier() {
        return match value {
            "" => Err(Error::bad_query_parameter(format!(
                "Empty Identifier part after parameter `{}` substitution",
                parameter.name
            ))),
            name => Ok(token_cursor::quoted(name)),
        };
    }
    match (nullable, parameter.place) {
        (Some(inner), Context::Expression) => Ok(format!("toNullable({})", known(parameter, inner, value)?)),
        (Some(inner), Context::Set) => known(parameter, inner, value),
        (None, _) => known(parameter, &type_name, value),
    }
}

/// A value that is not NULL.
fn known(parameter: &Parameter<'_>, type_name: &str, value: &str) -> Result<String> {
    let cast = || format!("CAST({} AS {type_name})", quoted(value));
    // An unknown type is reported by the cast.
    let Ok(data_type) = DataType::parse_column(type_name) else { return Ok(cast()) };
    let is_composite =
        matches!(data_type, DataType::Array(_) | DataType::Map(_) | DataType::Nested(_) | DataType::Tuple(_));
    if is_composite {
        check(value, &data_type).map_err(|wrong| not_as_written(parameter, value, &data_type, &wrong))?;
    }
    match (&data_type, parameter.place) {
        // The type stands in the query itself, so its author could write anything there anyway.
        (DataType::String, _) => Ok(quoted(&unescaped(parameter, value)?)),
        (DataType::Array(item), Context::Set) => Ok(list(value, item).unwrap_or_else(|| {
            // Items of any type, and any number of them.
            format!("SELECT arrayJoin({})", cast())
        })),
        (DataType::Array(item), Context::Expression) => Ok(in_place(value, item).unwrap_or_else(cast)),
        (DataType::Tuple(_), Context::Set) => {
            let message = format!("IN a parameter of type {type_name}: write it as an Array");
            Err(Error::not_implemented(message))
        }
        // There is a cast of texts to arrays and maps of tuples, but not to a tuple.
        (DataType::Tuple(_), Context::Expression) => {
            Ok(format!("CAST({} AS Array({type_name}))[1]", quoted(&format!("[{value}]"))))
        }
        _ if is_whole(value, &data_type) => Ok(cast()),
        _ => Err(parameter.bad(value)),
    }
}

/// The error for a text that does not have its type's form.
fn not_as_written(parameter: &Parameter<'_>, value: &str, data_type: &DataType, wrong: &Wrong) -> Error {
    let message = |why: &str| parameter.unreadable(value, why);
    match (wrong, data_type) {
        (Wrong::Unquoted(DataType::String), _) => {
            Error::cannot_parse_quoted_string(message(": a String in it is in single quotes"))
        }
        (Wrong::Unquoted(inner), _) => Error::cannot_parse_input(message(&format!(
            ": a value of type {inner} in it is in single quotes"
        ))),
        (Wrong::Quoted(inner), _) => {
            Error::cannot_read_array(message(&format!(": a value of type {inner} in it has no quotes")))
        }
        (Wrong::TooLong, _) => parameter.bad(value),
        (Wrong::Malformed, DataType::Array(_)) => Error::cannot_read_array(message("")),
        (Wrong::Malformed, _) => Error::cannot_parse_input(message("")),
    }
}

/// A String, without TabSeparated's escapes.
fn unescaped(parameter: &Parameter<'_>, value: &str) -> Result<String> {
    if ends_before_its_end(value) {
        return Err(parameter.bad(value));
    }
    if ends_in_an_escape(value) {
        let message = parameter.unreadable(value, "");
        return Err(Error::cannot_parse_escape_sequence(format!("Cannot parse escape sequence: {message}")));
    }
    let mut plain = Vec::new();
    unescape(value.as_bytes(), &mut plain);
    String::from_utf8(plain)
        .map_err(|_| Error::bad_query_parameter(parameter.unreadable(value, ": a String is UTF-8 here")))
}

/// Whether there is an unescaped tab or line end, which would end a TabSeparated field.
fn ends_before_its_end(value: &str) -> bool {
    let mut is_escaped = false;
    value.bytes().any(|byte| {
        let ends = !is_escaped && matches!(byte, b'\t' | b'\n');
        is_escaped = !is_escaped && byte == b'\\';
        ends
    })
}

/// Whether a backslash is followed by nothing, or by an `x` without two digits.
fn ends_in_an_escape(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('\\') {
        match behind.as_bytes() {
            [] => return true,
            [b'x', digits @ ..]
                if !digits.get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit)) =>
            {
                return true;
            }
            _ => {}
        }
        let mut characters = behind.chars();
        characters.next();
        rest = characters.as_str();
    }
    false
}

/// The arguments of the type `name(..)`; `None`: it is another type.
fn inside<'a>(name: &str, type_name: &'a str) -> Option<&'a str> {
    let arguments = type_name.strip_prefix(name)?.trim_start();
    Some(arguments.strip_prefix('(')?.strip_suffix(')')?.trim())
}

/// A type without LowCardinality, whose values are the same.
fn without_low_cardinality(type_name: &str) -> String {
    let mut plain = type_name.to_owned();
    while let Some(at) = plain.find("LowCardinality(") {
        let open = at + "LowCardinality".len();
        let mut depth = 0usize;
        let close = plain[open..].find(|letter: char| {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        let Some(close) = close else { break };
        plain.replace_range(open + close..=open + close, "");
        plain.replace_range(at..=open, "");
    }
    plain
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Token;
    use granary_dict::tokenize;

    use super::*;
    use crate::limits::LISTED_ITEMS_MAX;

    fn of(type_name: &str, value: &str) -> Result<String> {
        sql(&Parameter { name: "x", type_name, place: Context::Expression }, Some(value))
    }

    fn set_of(type_name: &str, value: &str) -> Result<String> {
        sql(&Parameter { name: "x", type_name, place: Context::Set }, Some(value))
    }

    fn tokens(sql: &str) -> Vec<Token> {
        let tokens = tokenize(sql).unwrap().into_iter().map(|token| token.token);
        tokens.filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)).collect()
    }

    #[test]
    fn strings_have_the_backslashes_of_fields() {
        for (value, text) in [
            (r"^\d+$", r"^\d+$"),
            (r"%100\%%", r"%100\%%"),
            (r"\N", ""),
            (r"a\Nb", "ab"),
            (r"\x41\a\v\e", "A\u{7}\u{b}\u{1b}"),
            (r"a\tb\\", "a\tb\\"),
            (r#"\'\"\`\/\=\?"#, r#"'"`/=\?"#),
            ("NULL", "NULL"),
        ] {
            assert_eq!(of("String", value).unwrap(), quoted(text), "{value}");
            assert_eq!(of("LowCardinality(String)", value).unwrap(), quoted(text), "{value}");
            if value != r"\N" {
                assert_eq!(of("Nullable(String)", value).unwrap(), format!("toNullable({})", quoted(text)));
            }
        }
        for (value, code) in
            [("a\tb", 457), ("a\nb", 457), (r"a\", 25), (r"\x4", 25), (r"\xzz", 25), (r"\xff", 457)]
        {
            assert_eq!(of("String", value).unwrap_err().code, code, "{value}");
        }
    }

    #[test]
    fn null_is_for_types_that_have_it() {
        assert_eq!(of("Nullable(UInt8)", r"\N").unwrap(), "CAST(NULL AS Nullable(UInt8))");
        assert_eq!(of("LowCardinality(Nullable(String))", r"\N").unwrap(), "CAST(NULL AS Nullable(String))");
        assert_eq!(set_of("Nullable( UInt8 )", r"\N").unwrap(), "NULL");
        assert_eq!(of("Nullable(UInt8)", "1").unwrap(), "toNullable(CAST('1' AS UInt8))");
        for (type_name, value, code) in
            [("UInt64", r"\N", 457), ("Nullable(UInt8)", "NULL", 457), ("Array(UInt8)", r"\N", 130)]
        {
            assert_eq!(of(type_name, value).unwrap_err().code, code, "{type_name}");
        }
    }

    #[test]
    fn nothing_is_left_over() {
        for (type_name, value) in [
            ("UInt8", "+1"),
            ("Int8", "-1"),
            ("Date", "2020-01-01"),
            ("DateTime", "2020-01-01 00:00:00"),
            ("DateTime64(3)", "2020-01-01 00:00:00.123"),
            ("UUID", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
        ] {
            assert_eq!(of(type_name, value).unwrap(), format!("CAST('{value}' AS {type_name})"));
        }
        for (type_name, value) in [
            ("UInt8", "-1"),
            ("UInt64", "abc"),
            ("UInt64", "1.5"),
            ("Int256", " 1"),
            ("Date", "2020-01-01 10:00:00"),
            ("DateTime", "2020-01-01T00:00:00Z"),
            ("DateTime('UTC')", "2020-01-01 00:00:00.5"),
            ("DateTime64(3)", "2020-01-01 00:00:00+01:00"),
        ] {
            assert_eq!(of(type_name, value).unwrap_err().code, 457, "{type_name} {value}");
        }
    }

    #[test]
    fn what_is_made_of_others_is_cast_as_it_is_written() {
        let cast = |value: &str, type_name: &str| format!("CAST({} AS {type_name})", quoted(value));
        for (type_name, value) in [
            ("Array(UInt64)", "[]"),
            ("Array(UInt64)", "[1,-1]"),
            ("Array(Nullable(UInt64))", "[ 1 , NULL]"),
            ("Array(Float64)", "[nan,-1e3]"),
            ("Array(Tuple(UInt8, String))", "[(1,'a')]"),
            ("Map(String, String)", r"{'k':'it\'s \\n'}"),
        ] {
            assert_eq!(of(type_name, value).unwrap(), cast(value, type_name));
        }
        assert_eq!(
            of("Tuple(a UInt8, b String)", r"(1,'it\'s')").unwrap(),
            cast(r"[(1,'it\'s')]", "Array(Tuple(a UInt8, b String))") + "[1]"
        );
        assert_eq!(of("Array(LowCardinality(String))", r"['a','\'']").unwrap(), r"['a', '\'']");
        assert_eq!(of("Array(Int8)", "[1, -2]").unwrap(), "[CAST('1' AS Int8), CAST('-2' AS Int8)]");
        let many = format!("[{}0]", "1,".repeat(LISTED_ITEMS_MAX));
        assert_eq!(of("Array(UInt64)", &many).unwrap(), cast(&many, "Array(UInt64)"));
        for (type_name, value, code) in [
            ("Array(String)", "[1,2]", 26),
            ("Array(Date)", "[2020-01-01]", 27),
            ("Array(UInt8)", "['1']", 130),
            ("Array(UInt8)", "1,2", 130),
            ("Array(UInt8)", " [1]", 130),
            ("Array(UInt8)", "[1] ", 457),
            ("Tuple(UInt8, String)", "1", 27),
        ] {
            assert_eq!(of(type_name, value).unwrap_err().code, code, "{type_name} {value}");
        }
    }

    #[test]
    fn behind_in_an_array_is_a_list() {
        for (type_name, value, list) in [
            ("Array(UInt64)", "[3,+5, 007]", "3, 5, 7"),
            ("Array(Int8)", "[-128,300]", "-128, CAST('300' AS Int8)"),
            ("Array(Nullable(UInt8))", "[1,null]", "1, NULL"),
            ("Array(String)", r"['a','it\'s\t']", "'a', 'it\\'s\t'"),
            ("Array(Date)", "['2020-01-01']", "CAST('2020-01-01' AS Date)"),
            ("UInt8", "1", "CAST('1' AS UInt8)"),
        ] {
            assert_eq!(set_of(type_name, value).unwrap(), list);
        }
        let any = [
            ("Array(UInt8)", "[]".to_owned()),
            ("Array(Tuple(UInt8, String))", "[(1,'a')]".to_owned()),
            ("Array(Float64)", format!("[{}0]", "1.5,".repeat(LISTED_ITEMS_MAX))),
        ];
        for (type_name, value) in any {
            let expected = format!("SELECT arrayJoin(CAST({} AS {type_name}))", quoted(&value));
            assert_eq!(set_of(type_name, &value).unwrap(), expected);
        }
        let many = set_of("Array(UInt8)", &format!("[{}0]", "1,".repeat(LISTED_ITEMS_MAX))).unwrap();
        assert!(many.starts_with("1, 1, "), "{many}");
        assert_eq!(set_of("Tuple(UInt8)", "(1)").unwrap_err().code, 48);
    }

    #[test]
    fn a_value_is_never_more_than_a_value() {
        let types = [
            "String",
            "Identifier",
            "UInt8",
            "Decimal(9, 2)",
            "Nope",
            "Array(UInt8)",
            "Array(String)",
            "Array(Date)",
            "Array(Tuple(UInt8, String))",
            "Map(String, String)",
            "Tuple(UInt8, String)",
            "Nullable(String)",
            "Nullable(Float64)",
        ];
        let values = [
            "[1] OR 1",
            "[1],[2]",
            "[(SELECT 1)]",
            "[f(1)]",
            "[1)]",
            "[1]",
            "1",
            "[1",
            "]1[",
            "",
            "' OR 1 --",
            "` OR 1 --",
            r"\\' OR 1 --",
            r"\\` OR 1",
            r"\' OR 1 --",
            "'; DROP TABLE t; --",
            r"\\",
            r"['\'] OR 1 --']",
            r"['\\'] OR 1 --']",
            "['a''] OR 1 --']",
            "['a', 'b'] --",
            "[('1', 2)]",
            "[(1, '\\') OR 1 --')]",
            "{'a':'b'} OR 1",
            "{'a':'b'}",
            "(1, 'x') OR 1",
            "(1, 'x')",
            "['2020-01-01']",
            "['2020-01-01\\'] OR 1']",
        ];
        for type_name in types {
            // Apart from the value, the SQL is the same for any value of the type.
            let shape = |sql: &str| -> Vec<Token> {
                let is_value = |token: &Token| {
                    matches!(token, Token::SingleQuotedString(_))
                        || matches!(token, Token::Word(word) if word.quote_style.is_some())
                };
                tokens(sql).into_iter().filter(|token| !is_value(token)).collect()
            };
            let mut shapes: Vec<Vec<Token>> =
                values.iter().filter_map(|value| of(type_name, value).ok()).map(|sql| shape(&sql)).collect();
            shapes.dedup();
            assert!(shapes.len() <= 1, "{type_name}: {shapes:?}");
            for value in values {
                let Ok(sql) = set_of(type_name, value) else { continue };
                let mut plain = shape(&sql);
                let allowed = ["CAST", "AS", "SELECT", "arrayJoin", "NULL"];
                plain.retain(|token| match token {
                    Token::Word(word) => {
                        !allowed.contains(&word.value.as_str()) && !type_name.contains(&word.value)
                    }
                    Token::Number(..) | Token::Comma | Token::LParen | Token::RParen => false,
                    _ => true,
                });
                assert!(plain.is_empty(), "{type_name}: {sql}");
            }
        }
    }
}
