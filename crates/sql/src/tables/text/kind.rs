//! Guesses a value's type from its text, as ClickHouse does.

use datafusion::arrow::datatypes::{DataType as Arrow, Field as ArrowField, TimeUnit};
use granary_dialect::types::CLICKHOUSE_TYPE;
use granary_dict::{DataType, Field, TextFormat};

/// The kinds of values that text can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// No value was seen.
    Nothing,
    Bool,
    /// An integer of 64 bits, not negative.
    Natural,
    /// An integer of 64 bits, negative.
    Negative,
    /// Fits UInt64 only.
    Large,
    Float,
    Date,
    DateTime,
    /// With a fraction of a second, or years that DateTime does not have.
    DateTime64,
    Text,
}

impl ValueKind {
    /// The kind of one field.
    pub fn of(format: TextFormat, field: Field<'_>) -> ValueKind {
        match field {
            Field::Null | Field::Plain(b"") => ValueKind::Nothing,
            Field::Exact(b"") if format == TextFormat::TabSeparated => ValueKind::Nothing,
            Field::Exact(bytes) => std::str::from_utf8(bytes).map_or(ValueKind::Text, moment),
            Field::Plain(bytes) => std::str::from_utf8(bytes).map_or(ValueKind::Text, bare),
        }
    }

    /// The kind of a column with values of both kinds.
    pub fn or(self, other: ValueKind) -> ValueKind {
        use ValueKind::*;
        match (self, other) {
            (a, b) if a == b => a,
            (Nothing, kind) | (kind, Nothing) => kind,
            (Natural, Negative) | (Negative, Natural) => Negative,
            (Natural, Large) | (Large, Natural) => Large,
            (Natural | Negative | Large | Float, Natural | Negative | Large | Float) => Float,
            (Date | DateTime | DateTime64, Date | DateTime | DateTime64) => DateTime64,
            _ => Text,
        }
    }

    /// The type that the decoder reads it as.
    pub fn data_type(self) -> DataType {
        let plain = match self {
            ValueKind::Bool => DataType::Bool,
            ValueKind::Natural | ValueKind::Negative => DataType::Int64,
            ValueKind::Large => DataType::UInt64,
            ValueKind::Float => DataType::Float64,
            ValueKind::Date => DataType::Date,
            ValueKind::DateTime => DataType::DateTime { tz: None },
            // Read as text first, then cast.
            ValueKind::DateTime64 | ValueKind::Nothing | ValueKind::Text => DataType::String,
        };
        DataType::Nullable(Box::new(plain))
    }

    /// The table's column of this kind.
    pub fn field(self, name: &str) -> ArrowField {
        match self {
            ValueKind::DateTime64 => {
                ArrowField::new(name, Arrow::Timestamp(TimeUnit::Nanosecond, None), true)
            }
            ValueKind::Bool => ArrowField::new(name, Arrow::Boolean, true)
                .with_metadata([(CLICKHOUSE_TYPE.to_owned(), "Bool".to_owned())].into()),
            other => ArrowField::new(name, other.data_type().to_arrow(), true),
        }
    }
}

fn bare(text: &str) -> ValueKind {
    let first = text.as_bytes()[0];
    match text {
        "true" | "false" => ValueKind::Bool,
        "nan" | "inf" | "-inf" => ValueKind::Float,
        _ if !(first.is_ascii_digit() || b"+-.".contains(&first)) => ValueKind::Text,
        _ if text.parse::<i64>().is_ok() => match first {
            b'-' => ValueKind::Negative,
            _ => ValueKind::Natural,
        },
        _ if text.parse::<u64>().is_ok() => ValueKind::Large,
        _ if text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<f64>().is_ok() => {
            ValueKind::Float
        }
        _ => moment(text),
    }
}

fn moment(text: &str) -> ValueKind {
    use chrono::{Datelike, NaiveDate, NaiveDateTime};
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(i, byte)| match i {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return ValueKind::Text;
    }
    if bytes.len() == 10 {
        return match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            Ok(day) if (1970..=2148).contains(&day.year()) => ValueKind::Date,
            Ok(_) => ValueKind::DateTime64,
            Err(_) => ValueKind::Text,
        };
    }
    let parsed = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f"));
    match parsed {
        Ok(moment) if bytes.len() == 19 && bytes[10] == b' ' && (1970..=2105).contains(&moment.year()) => {
            ValueKind::DateTime
        }
        Ok(_) => ValueKind::DateTime64,
        Err(_) => ValueKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of a column of these values, without quotes.
    fn kind(values: &[&str]) -> ValueKind {
        values
            .iter()
            .map(|value| ValueKind::of(TextFormat::Csv, Field::Plain(value.as_bytes())))
            .fold(ValueKind::Nothing, ValueKind::or)
    }

    #[test]
    fn values_are_what_clickhouse_takes_them_for() {
        for (values, expected) in [
            (&["", "true", "false"][..], ValueKind::Bool),
            (&["True"], ValueKind::Text),
            (&["1", "007", "+5"], ValueKind::Natural),
            (&["1", "-1"], ValueKind::Negative),
            (&["1", "18446744073709551615"], ValueKind::Large),
            (&["-1", "18446744073709551615"], ValueKind::Float),
            (&["1", "1.5", "nan", "-inf"], ValueKind::Float),
            (&["99999999999999999999"], ValueKind::Float),
            (&["1", "true"], ValueKind::Text),
            (&["infinity"], ValueKind::Text),
            (&["-", "."], ValueKind::Text),
            (&["2024-01-02"], ValueKind::Date),
            (&["2024-01-42"], ValueKind::Text),
            (&["2024-01-02 03:04:05"], ValueKind::DateTime),
            (&["2024-01-02 03:04:05", "2024-01-02 03:04:05.25"], ValueKind::DateTime64),
            (&["2024-01-02", "x"], ValueKind::Text),
        ] {
            assert_eq!(kind(values), expected, "{values:?}");
        }
    }

    #[test]
    fn quotes_make_numbers_texts() {
        let quoted = |text: &'static str| ValueKind::of(TextFormat::Csv, Field::Exact(text.as_bytes()));
        assert_eq!(quoted("1"), ValueKind::Text);
        assert_eq!(quoted("true"), ValueKind::Text);
        assert_eq!(quoted("2024-01-02"), ValueKind::Date);
        assert_eq!(quoted(""), ValueKind::Text);
    }
}
