//! Maps the columns of a stream to ours.

use super::Rows;
use crate::error::{Code, DictError, shown};
use crate::types::DataType;

/// What each value of a stream's row is.
pub(super) struct ColumnOrder {
    /// The column it goes to; `None`: one we do not have.
    pub places: Vec<Option<usize>>,
    /// Its type in the stream.
    pub types: Vec<DataType>,
    /// Our columns that the stream lacks; they are NULL, so their defaults.
    absent: Vec<usize>,
}

impl ColumnOrder {
    /// All of our columns, as declared.
    pub fn declared(rows: &Rows) -> ColumnOrder {
        ColumnOrder {
            places: (0..rows.width()).map(Some).collect(),
            types: (0..rows.width()).map(|column| rows.data_type(column).clone()).collect(),
            absent: Vec::new(),
        }
    }

    /// The columns of a head. `types` is empty if it names none: ours are meant.
    ///
    /// # Errors
    /// A missing column of the key, a duplicate name, a type other than ours, and, without types, an unknown name, as
    /// the length of its values is unknown.
    pub fn of_head(names: &[String], types: &[String], rows: &Rows) -> Result<ColumnOrder, DictError> {
        let mut order = ColumnOrder::of_names(names, rows)?;
        for (i, name) in names.iter().enumerate() {
            let ours = order.places[i].map(|column| rows.data_type(column));
            let sent = match types.get(i) {
                Some(text) => sent_type(name, text, ours)?,
                None => ours.cloned().ok_or_else(|| unknown(name, rows))?,
            };
            if let Some(ours) = ours {
                check_type(name, ours, &sent)?;
            }
            order.types.push(sent);
        }
        Ok(order)
    }

    /// The columns of a head of a text, whose values are texts whatever their types; unknown names are skipped.
    pub fn of_names(names: &[String], rows: &Rows) -> Result<ColumnOrder, DictError> {
        let ours: Vec<&str> = (0..rows.width()).map(|column| rows.name(column)).collect();
        let places = names.iter().map(|name| rows.column_called(name));
        let places: Vec<Option<usize>> = places.collect::<Result<_, DictError>>()?;
        let mut there = vec![0; ours.len()];
        places.iter().flatten().for_each(|&column| there[column] += 1);
        if let Some(twice) = there.iter().position(|&count| count > 1) {
            return Err(DictError::parse_text(format!("Column {} comes twice", ours[twice])));
        }
        let absent: Vec<usize> = (0..ours.len()).filter(|&column| there[column] == 0).collect();
        if let Some(&key) = absent.iter().find(|&&column| column < rows.key_width()) {
            return Err(rows.missing_key(key, names.iter()));
        }
        Ok(ColumnOrder { places, types: Vec::new(), absent })
    }

    /// Whether the fields of a text's first line are names, as ClickHouse guesses: each is a column's, or all columns'
    /// are among them.
    pub fn are_names(fields: &[String], rows: &Rows) -> bool {
        let mut ours = (0..rows.width()).map(|column| rows.name(column));
        let is_ours = |field: &String| (0..rows.width()).any(|column| rows.name(column) == field);
        fields.iter().all(is_ours) || ours.all(|name| fields.iter().any(|field| field == name))
    }

    /// Whether the fields of a text's line are types.
    pub fn are_types(fields: &[String]) -> bool {
        fields.iter().all(|field| DataType::is_known(field))
    }

    /// Compares the types that a text says its columns have with ours.
    ///
    /// # Errors
    /// One is another, or there is not one for each name.
    pub fn check_types(&self, names: &[String], types: &[String], rows: &Rows) -> Result<(), DictError> {
        if names.len() != types.len() {
            let text = format!("{} names of columns, and {} types", names.len(), types.len());
            return Err(DictError::new(Code::IncorrectData, text));
        }
        for ((place, name), text) in self.places.iter().zip(names).zip(types) {
            let Some(column) = *place else { continue };
            let ours = rows.data_type(column);
            let sent = DataType::parse_column(text).map_err(|_| other_type(name, ours, text))?;
            check_type(name, ours, &sent)?;
        }
        Ok(())
    }

    /// Ends a row whose values have come.
    #[inline]
    pub fn end_row(&self, rows: &mut Rows) -> Result<(), DictError> {
        for &column in &self.absent {
            rows.push_parsed(column, None)?;
        }
        rows.end_row()
    }
}

fn unknown(name: &str, rows: &Rows) -> DictError {
    let known: Vec<&str> = (0..rows.width()).map(|column| rows.name(column)).collect();
    DictError::parse_text(format!("Unknown column {}; known are {}", shown(name), known.join(", ")))
}

/// The type that a head of values in binary says a column has; `ours` is that of our column, if it is one of ours.
///
/// # Errors
/// UNKNOWN_TYPE; INCORRECT_DATA if it is a type of ClickHouse's that ours cannot be.
pub(super) fn sent_type(name: &str, text: &str, ours: Option<&DataType>) -> Result<DataType, DictError> {
    DataType::parse_column(text).map_err(|error| match ours {
        Some(ours) if DataType::is_known(text) => other_type(name, ours, text),
        _ => error.within(format_args!("Column {}", shown(name))),
    })
}

fn other_type(name: &str, ours: &DataType, sent: &str) -> DictError {
    let text = format!("Type of '{}' must be {ours}, not {}", shown(name), shown(sent));
    DictError::new(Code::IncorrectData, text)
}

fn check_type(name: &str, ours: &DataType, sent: &DataType) -> Result<(), DictError> {
    if same(ours, sent) {
        return Ok(());
    }
    Err(other_type(name, ours, &sent.to_string()))
}

/// Whether values of these types are written alike, except for NULL. Time zones matter only in texts.
fn same(ours: &DataType, sent: &DataType) -> bool {
    match (ours.inner(), sent.inner()) {
        (DataType::DateTime { .. }, DataType::DateTime { .. }) => true,
        (DataType::DateTime64 { precision: ours, .. }, DataType::DateTime64 { precision: sent, .. }) => {
            ours == sent
        }
        (DataType::Map(ours), DataType::Map(sent)) => same(ours, sent),
        (DataType::Array(ours) | DataType::Nested(ours), DataType::Array(sent) | DataType::Nested(sent)) => {
            same_parts(ours, sent)
        }
        // Their names matter only in texts, too.
        (DataType::Tuple(ours), DataType::Tuple(sent)) => {
            let mut pairs = ours.iter().zip(sent);
            ours.len() == sent.len() && pairs.all(|(ours, sent)| same_parts(&ours.data_type, &sent.data_type))
        }
        (ours, sent) => ours == sent,
    }
}

/// Whether items or elements are written alike, with or without NULL flags.
fn same_parts(ours: &DataType, sent: &DataType) -> bool {
    ours.is_nullable() == sent.is_nullable() && same(ours, sent)
}
