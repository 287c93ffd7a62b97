//! Conditions on keys for the servers that take keys as text inside the statement.

use super::float_keys::doubles;
use super::sql::{Dialect, in_utc, with_utc_zone};
use crate::definition::Structure;
use crate::error::DictError;
use crate::limits;
use crate::row::{Cells, Raw, Style, print};
use crate::types::{DataType, print_fixed};
use arrow::array::{Array, ArrayRef};

/// What is known of a server's key column that affects how keys are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerColumn {
    /// Times are local ones, in no time zone.
    pub is_local: bool,
    /// The column holds texts, with which a number is compared as its text.
    pub is_text: bool,
    /// Character set of a text column that lacks some characters.
    pub charset: Option<Charset>,
}

/// A character set, and the collation of its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charset {
    pub name: String,
    pub collation: String,
}

/// Conditions that together hold these keys, each short enough for one statement: for one key column an IN, for several
/// what the server has an index for: tuples in ClickHouse, `(a = 1 AND b = 'x') OR ..` in MySQL. `server_columns` holds
/// the server's column types, where conditions depend on them.
pub(super) fn conditions(
    dialect: Dialect,
    structure: &Structure,
    keys: &[ArrayRef],
    server_columns: &[ServerColumn],
) -> Result<Vec<String>, DictError> {
    let columns = structure
        .key_columns()
        .into_iter()
        .zip(keys)
        .enumerate()
        .map(|(place, (column, array))| {
            let cells = Cells::new(&column.data_type, array)?;
            let server_column = server_columns.get(place).cloned().unwrap_or_default();
            let data_type = match server_column.is_local {
                true => column.data_type,
                false => in_utc(&column.data_type),
            };
            Ok(SqlKeyColumn { name: dialect.name(&column.name), data_type, server_column, cells })
        })
        .collect::<Result<Vec<_>, DictError>>()?;
    let (mut conditions, mut condition) = (Vec::new(), Condition::default());
    for row in 0..keys[0].len() {
        let key = KeyLiteral::new(dialect, &columns, row);
        if !condition.has_room_for(&key) {
            conditions.push(std::mem::take(&mut condition).text(&columns));
        }
        condition.add(&key);
    }
    if condition.keys > 0 {
        conditions.push(condition.text(&columns));
    }
    Ok(conditions)
}

/// A key column, its name in quotes, its type as it is written.
struct SqlKeyColumn {
    name: String,
    data_type: DataType,
    server_column: ServerColumn,
    cells: Cells,
}

/// A key as a condition has it.
enum KeyLiteral {
    /// In the list of an IN.
    Listed(String),
    /// It cannot be in an IN, as NULL cannot.
    Chained(String),
}

impl KeyLiteral {
    fn new(dialect: Dialect, columns: &[SqlKeyColumn], row: usize) -> KeyLiteral {
        let values: Option<Vec<String>> = columns.iter().map(|column| column.literal(dialect, row)).collect();
        match (values.as_deref(), dialect) {
            // ClickHouse takes a single array in an IN for the list itself.
            (Some([value]), _) if !columns[0].is_composite() => match columns[0].widened(row) {
                Some(widened) => KeyLiteral::Listed(format!("{value}, {widened}")),
                None => KeyLiteral::Listed(value.clone()),
            },
            (Some(values @ [_, _, ..]), Dialect::Clickhouse)
                if columns.iter().all(|column| column.widened(row).is_none()) =>
            {
                KeyLiteral::Listed(format!("({})", values.join(", ")))
            }
            _ => {
                let equal: Vec<String> = columns.iter().map(|column| column.equality(dialect, row)).collect();
                KeyLiteral::Chained(format!("({})", equal.join(" AND ")))
            }
        }
    }

    fn len(&self) -> usize {
        let (KeyLiteral::Listed(text) | KeyLiteral::Chained(text)) = self;
        text.len()
    }
}

/// A condition being written.
#[derive(Default)]
struct Condition {
    keys: usize,
    /// Keys in the IN, separated by commas.
    listed: String,
    /// Conditions that cannot stand in the IN, joined by ORs.
    chained: String,
}

impl Condition {
    /// A key that is longer than a statement may be gets one of its own.
    fn has_room_for(&self, key: &KeyLiteral) -> bool {
        let bytes = self.listed.len() + self.chained.len() + key.len();
        self.keys == 0 || self.keys < limits::KEYS_PER_STATEMENT_MAX && bytes <= limits::STATEMENT_KEYS_BYTES
    }

    fn add(&mut self, key: &KeyLiteral) {
        match key {
            KeyLiteral::Listed(text) => append(&mut self.listed, ", ", text),
            KeyLiteral::Chained(text) => append(&mut self.chained, " OR ", text),
        }
        self.keys += 1;
    }

    fn text(self, columns: &[SqlKeyColumn]) -> String {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let names = if let [name] = names[..] { name.to_string() } else { format!("({})", names.join(", ")) };
        match (self.listed.as_str(), self.chained.as_str()) {
            ("", chained) => format!("({chained})"),
            (listed, "") => format!("{names} IN ({listed})"),
            (listed, chained) => format!("({names} IN ({listed}) OR {chained})"),
        }
    }
}

impl SqlKeyColumn {
    fn equality(&self, dialect: Dialect, row: usize) -> String {
        match (self.literal(dialect, row), self.widened(row)) {
            (Some(value), None) => format!("{} = {value}", self.name),
            (Some(value), Some(widened)) => format!("{} IN ({value}, {widened})", self.name),
            (None, _) => format!("{} IS NULL", self.name),
        }
    }

    /// A Float32 with all its digits, where its literal has fewer: servers compare in 64 bits, in which the float
    /// nearest to 0.1 is 0.10000000149011612. A column of 64 bits has 0.1 itself.
    fn widened(&self, row: usize) -> Option<String> {
        let (DataType::Float32, Raw::Fixed(raw), false) =
            (self.data_type.inner(), self.cells.get(row), self.server_column.is_text)
        else {
            return None;
        };
        let [_, widened] = doubles(raw)[..] else { return None };
        let mut text = String::new();
        print_fixed(&DataType::Float64, &widened.to_le_bytes(), &mut text);
        Some(text)
    }

    /// A value as the server reads it; `None`: NULL.
    fn literal(&self, dialect: Dialect, row: usize) -> Option<String> {
        let mut text = String::new();
        match (self.data_type.inner(), self.cells.get(row)) {
            (_, Raw::Null) => return None,
            (_, Raw::Bit(bit)) => text.push(if bit { '1' } else { '0' }),
            (_, Raw::Text(bytes)) => return Some(self.text(dialect, &String::from_utf8_lossy(bytes))),
            // Independent of the column's time zone.
            (DataType::DateTime { .. }, Raw::Fixed(raw)) if dialect == Dialect::Clickhouse => {
                let seconds = raw.first_chunk().map_or(0, |raw| i64::from_le_bytes(*raw));
                return Some(seconds.to_string());
            }
            (data_type, value @ Raw::Items(_)) if dialect == Dialect::Clickhouse => {
                let in_utc = with_utc_zone(data_type);
                // A DateTime is written as its number, which does not depend on the zone in which the server reads
                // texts.
                let written = in_utc.with_parts(&|plain: &DataType| match plain {
                    DataType::DateTime { .. } => DataType::UInt64,
                    other => other.clone(),
                });
                print(&written, &value, Style::Calls, &mut text);
                let value = format!("CAST({text} AS {in_utc})");
                // Compared values have one type.
                return Some(match in_utc == *data_type {
                    true => value,
                    false => format!("CAST({value} AS {data_type})"),
                });
            }
            (data_type, value @ Raw::Items(_)) => {
                print(data_type, &value, Style::Quoted, &mut text);
                return Some(self.text(dialect, &text));
            }
            (data_type, Raw::Fixed(raw)) => print_fixed(data_type, raw, &mut text),
        }
        if dialect == Dialect::Clickhouse
            && let Some(call) = call(self.data_type.inner(), &text)
        {
            return Some(call);
        }
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"-.e".contains(&byte));
        Some(if is_number && self.is_bare(dialect) { text } else { dialect.string(&text) })
    }

    /// A text in the column's character set. A character that this lacks becomes another one, so that another key is
    /// found; unconverted, it would be an error for all keys.
    fn text(&self, dialect: Dialect, text: &str) -> String {
        let literal = dialect.string(text);
        match &self.server_column.charset {
            Some(Charset { name, collation }) if !text.is_ascii() => {
                format!("CONVERT({literal} USING {name}) COLLATE {collation}")
            }
            _ => literal,
        }
    }

    fn is_composite(&self) -> bool {
        self.data_type.is_composite()
    }

    /// Whether a value is written without quotes. ClickHouse takes no Decimal for a number with a point.
    fn is_bare(&self, dialect: Dialect) -> bool {
        match self.data_type.inner() {
            _ if self.server_column.is_text => false,
            quoted if quoted.is_quoted() => false,
            DataType::Decimal { .. } => dialect != Dialect::Clickhouse,
            _ => true,
        }
    }
}

/// The call that makes a ClickHouse value of a type without literals; `None`: the type has literals.
fn call(data_type: &DataType, text: &str) -> Option<String> {
    Some(match data_type {
        DataType::DateTime64 { precision, .. } => format!("toDateTime64('{text}', {precision}, 'UTC')"),
        DataType::Decimal { precision: 39.., scale } => format!("toDecimal256('{text}', {scale})"),
        DataType::Ipv4 | DataType::Ipv6 | DataType::Int128 | DataType::UInt128 | DataType::Int256 => {
            format!("to{data_type}('{text}')")
        }
        _ => return None,
    })
}

fn append(list: &mut String, separator: &str, item: &str) {
    if !list.is_empty() {
        list.push_str(separator);
    }
    list.push_str(item);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_create;
    use arrow::array::{Date32Array, Float32Array, Int64Array, StringArray, UInt64Array};
    use std::sync::Arc;

    fn structure(columns: &str, key: &str) -> Structure {
        let sql = format!(
            "CREATE DICTIONARY d ({columns}) PRIMARY KEY {key} SOURCE(SQLITE(PATH 'x' TABLE 't')) \
             LAYOUT(COMPLEX_KEY_DIRECT())"
        );
        parse_create(&sql).unwrap().definition.structure
    }

    #[test]
    fn lists_one_column_and_chains_several() {
        let one = structure("`a``b` Nullable(Int64)", "`a``b`");
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(-1), None, Some(i64::MAX)]));
        assert_eq!(
            conditions(Dialect::Mysql, &one, &[keys], &[]).unwrap(),
            ["(`a``b` IN (-1, 9223372036854775807) OR (`a``b` IS NULL))"]
        );
        let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(1)]));
        assert_eq!(conditions(Dialect::Mysql, &one, &[keys], &[]).unwrap(), ["`a``b` IN (1)"]);
        let two = structure("d Date, s Nullable(String)", "d, s");
        let keys: [ArrayRef; 2] = [
            Arc::new(Date32Array::from(vec![0, 19_782])),
            Arc::new(StringArray::from(vec![Some("it's \\ \0 \"é"), None])),
        ];
        assert_eq!(
            conditions(Dialect::Mysql, &two, &keys, &[]).unwrap(),
            [
                "((`d` = '1970-01-01' AND `s` = 'it\\'s \\\\ \\0 \"é') OR (`d` = '2024-02-29' AND `s` IS NULL))"
            ]
        );
    }

    #[test]
    fn clickhouse_takes_tuples_and_moments_as_numbers() {
        let two = structure("t DateTime('Europe/Moscow'), d Nullable(Decimal(9, 2))", "t, d");
        let decimals = arrow::array::Decimal128Array::from(vec![Some(150), None]);
        let keys: [ArrayRef; 2] = [
            Arc::new(arrow::array::TimestampSecondArray::from(vec![5, 6]).with_timezone("Europe/Moscow")),
            Arc::new(decimals.with_precision_and_scale(9, 2).unwrap()),
        ];
        assert_eq!(
            conditions(Dialect::Clickhouse, &two, &keys, &[]).unwrap(),
            ["((`t`, `d`) IN ((5, '1.5')) OR (`t` = 6 AND `d` IS NULL))"]
        );
        let three = structure("t DateTime64(4, 'Europe/Moscow'), i IPv4, n UInt128", "t, i, n");
        let wide = arrow::array::Decimal256Array::from(vec![arrow::datatypes::i256::from_i128(7)]);
        let moment = arrow::array::TimestampMicrosecondArray::from(vec![1_500_000]);
        let keys: [ArrayRef; 3] = [
            Arc::new(moment.with_timezone("Europe/Moscow")),
            Arc::new(arrow::array::UInt32Array::from(vec![0x0102_0304])),
            Arc::new(wide.with_precision_and_scale(39, 0).unwrap()),
        ];
        assert_eq!(
            conditions(Dialect::Clickhouse, &three, &keys, &[]).unwrap(),
            [
                "(`t`, `i`, `n`) IN ((toDateTime64('1970-01-01 00:00:01.5000', 4, 'UTC'), toIPv4('1.2.3.4'), toUInt128('7')))"
            ]
        );
        let arrays = structure("p Array(String)", "p");
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["['a']", r"['it\'s']"]));
        let keys_of_arrays = DataType::parse("Array(String)").unwrap().adopt(&texts).unwrap();
        assert_eq!(
            conditions(Dialect::Clickhouse, &arrays, &[keys_of_arrays], &[]).unwrap(),
            [r"((`p` = CAST(['a'] AS Array(String))) OR (`p` = CAST(['it\'s'] AS Array(String))))"]
        );
        let times = structure("t Array(DateTime('Europe/Berlin'))", "t");
        let utc = DataType::parse("Array(DateTime('UTC'))").unwrap();
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["['2023-10-29 01:30:00']"]));
        let zoned = DataType::parse("Array(DateTime('Europe/Berlin'))").unwrap();
        let keys_of_times = zoned.adopt(&utc.adopt(&texts).unwrap()).unwrap();
        assert_eq!(
            conditions(Dialect::Clickhouse, &times, &[keys_of_times], &[]).unwrap(),
            [
                "((`t` = CAST(CAST([1698543000] AS Array(DateTime('UTC'))) AS Array(DateTime('Europe/Berlin')))))"
            ]
        );
        let maps = structure("m Map(String, UInt128), n Nested(a Date)", "m, n");
        let of = |data_type: &str, text: &str| {
            let texts: ArrayRef = Arc::new(StringArray::from(vec![text]));
            DataType::parse(data_type).unwrap().adopt(&texts).unwrap()
        };
        assert_eq!(
            conditions(
                Dialect::Clickhouse,
                &maps,
                &[of("Map(String, UInt128)", "{'a':7,'b':8}"), of("Nested(a Date)", "[('2024-02-29')]")],
                &[]
            )
            .unwrap(),
            [
                "(`m`, `n`) IN ((CAST(map('a','7','b','8') AS Map(String, UInt128)), CAST([tuple('2024-02-29')] AS Nested(a Date))))"
            ]
        );
        assert_eq!(
            conditions(Dialect::Mysql, &three, &keys, &[]).unwrap(),
            ["((`t` = '1970-01-01 00:00:01.5000' AND `i` = '1.2.3.4' AND `n` = 7))"]
        );
        assert_eq!(
            conditions(
                Dialect::Mysql,
                &three,
                &keys,
                &[ServerColumn { is_local: true, ..ServerColumn::default() }]
            )
            .unwrap(),
            ["((`t` = '1970-01-01 03:00:01.5000' AND `i` = '1.2.3.4' AND `n` = 7))"]
        );
    }

    #[test]
    fn keys_of_a_text_column_are_texts_that_it_can_have() {
        let charset = Charset { name: "latin1".into(), collation: "latin1_bin".into() };
        let server_column = ServerColumn { is_text: true, charset: Some(charset), ..ServerColumn::default() };
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![0, -7]));
        let floats: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 2.0]));
        let truths: ArrayRef = Arc::new(arrow::array::BooleanArray::from(vec![true, false]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["it's", "€"]));
        for (data_type, keys, written) in [
            ("Int64", numbers, "'0', '-7'"),
            ("Float32", floats, "'0.1', '2'"),
            ("Bool", truths, "'1', '0'"),
            ("String", texts, r"'it\'s', CONVERT('€' USING latin1) COLLATE latin1_bin"),
        ] {
            let one = structure(&format!("a {data_type}"), "a");
            let conditions = conditions(Dialect::Mysql, &one, &[keys], std::slice::from_ref(&server_column));
            assert_eq!(conditions.unwrap(), [format!("`a` IN ({written})")], "{data_type}");
        }
    }

    #[test]
    fn floats_are_written_with_few_digits_and_with_all() {
        let floats = |values: &[Option<f32>]| Arc::new(Float32Array::from(values.to_vec())) as ArrayRef;
        let one = structure("f Nullable(Float32)", "f");
        for dialect in [Dialect::Mysql, Dialect::Clickhouse] {
            let keys = floats(&[Some(0.1), Some(-1.5), Some(2.5e-7), None]);
            assert_eq!(
                conditions(dialect, &one, &[keys], &[]).unwrap(),
                [
                    "(`f` IN (0.1, 0.10000000149011612, -1.5, 0.00000025, 0.0000002499999993688107) OR (`f` IS NULL))"
                ]
            );
        }
        let two = structure("f Float32, id Int64", "f, id");
        let keys = [floats(&[Some(0.1), Some(2.0)]), Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef];
        assert_eq!(
            conditions(Dialect::Clickhouse, &two, &keys, &[]).unwrap(),
            ["((`f`, `id`) IN ((2, 2)) OR (`f` IN (0.1, 0.10000000149011612) AND `id` = 1))"]
        );
    }

    #[test]
    fn cuts_many_keys_into_statements() {
        let one = structure("a UInt64", "a");
        let keys: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..60_000).map(|i| u64::MAX - i)));
        let conditions = conditions(Dialect::Mysql, &one, &[keys], &[]).unwrap();
        assert!(conditions.iter().all(|text| text.len() < limits::STATEMENT_KEYS_BYTES + 100));
        let keys: usize = conditions.iter().map(|text| text.matches("1844674407370").count()).sum();
        assert_eq!(keys, 60_000);
    }

    #[test]
    fn a_long_key_makes_no_statement_too_long() {
        let one = structure("a String", "a");
        let most = limits::STATEMENT_KEYS_BYTES;
        let texts = ["a", "b", "c", "d", "e"];
        let texts = texts.iter().zip([most / 2, most / 2 - 10, 1, most * 2, 1]).map(|(c, n)| c.repeat(n));
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let conditions = conditions(Dialect::Clickhouse, &one, &[keys], &[]).unwrap();
        let lengths: Vec<usize> = conditions.iter().map(|text| text.len() - "`a` IN ()".len()).collect();
        assert_eq!(lengths, [most - 10 + "'', '', ''".len() + 1, most * 2 + 2, 3]);
    }
}
