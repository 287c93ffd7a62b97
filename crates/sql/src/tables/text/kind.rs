//! Guesses a value's type from its text, as ClickHouse does.

use datafusion::arrow::datatypes::{DataType as Arrow, Field as ArrowField, TimeUnit};
use granary_dialect::types::CLICKHOUSE_TYPE;
use granary_dict::{DataType, Field, TextFormat};

/// The kinds of values that text can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

impl Kind {
    /// The kind of one field.
    pub fn of(format: TextFormat, field: Field<'_>) -> Kind {
        match field {
            Field::Null | Field::Plain(b"") => Kind::Nothing,
            Field::Exact(b"") if format == TextFormat::TabSeparated => Kind::Nothing,
            Field::Exact(bytes) => std::str::from_utf8(bytes).map_or(Kind::Text, moment),
            Field::Plain(bytes) => std::str::from_utf8(bytes).map_or(Kind::Text, bare),
        }
    }

    /// The kind of a column with values of both kinds.
    pub fn or(self, other: Kind) -> Kind {
        use Kind::*;
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
            Kind::Bool => DataType::Bool,
            Kind::Natural | Kind::Negative => DataType::Int64,
            Kind::Large => DataType::UInt64,
            Kind::Float => DataType::Float64,
            Kind::Date => DataType::Date,
            Kind::DateTime => DataType::DateTime { tz: None },
            // Read as text first, then cast.
            Kind::DateTime64 | Kind::Nothing | Kind::Text => DataType::String,
        };
        DataType::Nullable(Box::new(plain))
    }

    /// The table's column of this kind.
    pub fn field(self, name: &str) -> ArrowField {
        match self {
            Kind::DateTime64 => ArrowField::new(name, Arrow::Timestamp(TimeUnit::Nanosecond, None), true),
            Kind::Bool => ArrowField::new(name, Arrow::Boolean, true)
                .with_metadata([(CLICKHOUSE_TYPE.to_owned(), "Bool".to_owned())].into()),
            other => ArrowField::new(name, other.data_type().to_arrow(), true),
        }
    }
}

fn bare(text: &str) -> Kind {
    let first = text.as_bytes()[0];
    match text {
        "true" | "false" => Kind::Bool,
        "nan" | "inf" | "-inf" => Kind::Float,
        _ if !(first.is_ascii_digit() || b"+-.".contains(&first)) => Kind::Text,
        _ if text.parse::<i64>().is_ok() => match first {
            b'-' => Kind::Negative,
            _ => Kind::Natural,
        },
        _ if text.parse::<u64>().is_ok() => Kind::Large,
        _ if text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<f64>().is_ok() => Kind::Float,
        _ => moment(text),
    }
}

fn moment(text: &str) -> Kind {
    use chrono::{Datelike, NaiveDate, NaiveDateTime};
    let bytes = text.as_bytes();
    let shaped = bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(i, byte)| match i {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return Kind::Text;
    }
    if bytes.len() == 10 {
        return match NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            Ok(day) if (1970..=2148).contains(&day.year()) => Kind::Date,
            Ok(_) => Kind::DateTime64,
            Err(_) => Kind::Text,
        };
    }
    let parsed = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f"));
    match parsed {
        Ok(moment) if bytes.len() == 19 && bytes[10] == b' ' && (1970..=2105).contains(&moment.year()) => {
            Kind::DateTime
        }
        Ok(_) => Kind::DateTime64,
        Err(_) => Kind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of a column of these values, without quotes.
    fn kind(values: &[&str]) -> Kind {
        values
            .iter()
            .map(|value| Kind::of(TextFormat::Csv, Field::Plain(value.as_bytes())))
            .fold(Kind::Nothing, Kind::or)
    }

    #[test]
    fn values_are_what_clickhouse_takes_them_for() {
        for (values, expected) in [
            (&["", "true", "false"][..], Kind::Bool),
            (&["True"], Kind::Text),
            (&["1", "007", "+5"], Kind::Natural),
            (&["1", "-1"], Kind::Negative),
            (&["1", "18446744073709551615"], Kind::Large),
            (&["-1", "18446744073709551615"], Kind::Float),
            (&["1", "1.5", "nan", "-inf"], Kind::Float),
            (&["99999999999999999999"], Kind::Float),
            (&["1", "true"], Kind::Text),
            (&["infinity"], Kind::Text),
            (&["-", "."], Kind::Text),
            (&["2024-01-02"], Kind::Date),
            (&["2024-01-42"], Kind::Text),
            (&["2024-01-02 03:04:05"], Kind::DateTime),
            (&["2024-01-02 03:04:05", "2024-01-02 03:04:05.25"], Kind::DateTime64),
            (&["2024-01-02", "x"], Kind::Text),
        ] {
            assert_eq!(kind(values), expected, "{values:?}");
        }
    }

    #[test]
    fn quotes_make_numbers_texts() {
        let quoted = |text: &'static str| Kind::of(TextFormat::Csv, Field::Exact(text.as_bytes()));
        assert_eq!(quoted("1"), Kind::Text);
        assert_eq!(quoted("true"), Kind::Text);
        assert_eq!(quoted("2024-01-02"), Kind::Date);
        assert_eq!(quoted(""), Kind::Text);
    }
}
