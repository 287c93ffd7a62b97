//! UPDATE_FIELD: a date, a number or an ObjectId that says which documents were changed last.

use super::client::{Mongodb, ReadLimit, Rest, fill, left};
use super::fields::{DocumentFields, find};
use super::server::error;
use crate::error::{Code, DictError};
use crate::limits::{CHANGES_MAX, RESIDENT_BATCH_ROWS};
use crate::source::rows::Rows;
use crate::source::select::Updates;
use crate::source::update_stamp::{self, UpdateStamp};
use crate::source::{Changes, NewestChange};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, RawBsonRef, RawDocumentBuf, doc};

/// The end of the changes.
pub(super) fn newest_change(
    source: &Mongodb,
    updates: &Updates,
    watermark: Option<&str>,
) -> Result<NewestChange, DictError> {
    let (deadline, field) = (source.deadline(), updates.field.as_str());
    let since = watermark.map(|watermark| since(field, watermark)).transpose()?;
    let collection = source.connected.collection::<RawDocumentBuf>(&source.server.collection);
    source.ask(deadline, async {
        let last =
            collection.find_one(Document::new()).sort(doc! { field: -1 }).projection(doc! { field: 1 });
        let last = last.max_time(left(deadline)).await.map_err(|e| error(&e))?;
        let latest = last.as_ref().map(|last| find(last, field)).transpose()?.flatten();
        let latest = match latest {
            None | Some(RawBsonRef::Null) => return Ok(NewestChange::behind()),
            Some(latest) => Watermark::of(latest, field)?,
        };
        // Without a watermark all documents would have to be counted, for a number that is not used.
        let count = match since {
            None => 0,
            Some(since) => {
                collection.count_documents(since).max_time(left(deadline)).await.map_err(|e| error(&e))?
            }
        };
        let next = latest.earlier(updates.lag_after(watermark)).ok_or_else(|| {
            let (latest, problem) = (latest.value(), update_stamp::no_lag(updates.lag_seconds));
            DictError::new(Code::TypeMismatch, format!("UPDATE_FIELD {field} is {latest}: {problem}"))
        })?;
        let UpdateStamp { at, unit_seconds } = latest.moment(count > 1);
        let text = |watermark: Watermark| Some(watermark.text());
        let count = Some(count.to_string());
        Ok(NewestChange { latest: text(latest), count, next: text(next), at, unit_seconds })
    })
}

/// The keys of the documents that are as late as a watermark.
pub(super) fn changes(source: &Mongodb, updates: &Updates, watermark: &str) -> Result<Changes, DictError> {
    let fields = DocumentFields::of_key(&source.structure);
    let mut rows = Rows::of_key(&source.structure);
    let (deadline, filter) = (source.deadline(), since(&updates.field, watermark)?);
    let rest = source.ask(deadline, async {
        let mut cursor = source.find(filter, &fields, RESIDENT_BATCH_ROWS, Some(deadline)).await?;
        fill(&mut cursor, &fields, ReadLimit::Documents(CHANGES_MAX + 1), &mut rows).await
    })?;
    match rest {
        Rest::Unknown => Ok(Changes::TooMany),
        Rest::None => Ok(Changes::Keys(rows.take()?)),
    }
}

fn since(field: &str, watermark: &str) -> Result<Document, DictError> {
    let watermark = Watermark::read(watermark).ok_or_else(|| {
        DictError::new(
            Code::IncorrectData,
            format!("MongoDB: '{watermark}' is not how far changes are known"),
        )
    })?;
    Ok(doc! { field: { "$gte": watermark.value() } })
}

/// How far changes have come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Watermark {
    /// In milliseconds.
    Date(i64),
    Whole(i64),
    Double(f64),
    Id(ObjectId),
}

impl Watermark {
    fn of(value: RawBsonRef<'_>, field: &str) -> Result<Watermark, DictError> {
        match value {
            RawBsonRef::DateTime(at) => Ok(Watermark::Date(at.timestamp_millis())),
            RawBsonRef::Int32(number) => Ok(Watermark::Whole(number.into())),
            RawBsonRef::Int64(number) => Ok(Watermark::Whole(number)),
            RawBsonRef::Double(number) => Ok(Watermark::Double(number)),
            RawBsonRef::ObjectId(id) => Ok(Watermark::Id(id)),
            other => {
                let text = format!(
                    "MongoDB: UPDATE_FIELD {field} must be a date, a number or an ObjectId, not {:?}",
                    other.element_type()
                );
                Err(DictError::new(Code::TypeMismatch, text))
            }
        }
    }

    fn read(text: &str) -> Option<Watermark> {
        let (kind, text) = text.split_once(' ')?;
        match kind {
            "date" => text.parse().ok().map(Watermark::Date),
            "whole" => text.parse().ok().map(Watermark::Whole),
            "double" => text.parse().ok().map(Watermark::Double),
            "id" => ObjectId::parse_str(text).ok().map(Watermark::Id),
            _ => None,
        }
    }

    fn text(self) -> String {
        match self {
            Watermark::Date(milliseconds) => format!("date {milliseconds}"),
            Watermark::Whole(number) => format!("whole {number}"),
            Watermark::Double(number) => format!("double {number}"),
            Watermark::Id(id) => format!("id {id}"),
        }
    }

    fn value(self) -> Bson {
        match self {
            Watermark::Date(milliseconds) => DateTime::from_millis(milliseconds).into(),
            Watermark::Whole(number) => number.into(),
            Watermark::Double(number) => number.into(),
            Watermark::Id(id) => id.into(),
        }
    }

    fn moment(self, is_shared: bool) -> UpdateStamp {
        match self {
            Watermark::Date(milliseconds) => UpdateStamp::of_milliseconds(milliseconds),
            Watermark::Whole(number) => UpdateStamp::of_other(Some(number as f64), is_shared),
            Watermark::Double(number) => UpdateStamp::of_other(Some(number), is_shared),
            Watermark::Id(id) => {
                UpdateStamp { at: Some(id.timestamp().timestamp_millis() / 1000), ..UpdateStamp::default() }
            }
        }
    }

    /// The watermark `seconds` earlier; `None`: a number of unknown unit.
    fn earlier(self, seconds: u64) -> Option<Watermark> {
        let lag = i64::try_from(seconds).unwrap_or(i64::MAX);
        Some(match self {
            any if lag == 0 => any,
            Watermark::Date(milliseconds) => {
                Watermark::Date(milliseconds.saturating_sub(lag.saturating_mul(1000)))
            }
            Watermark::Whole(number) => {
                let units = update_stamp::unix_units(number as f64)?;
                Watermark::Whole(number.saturating_sub(lag.saturating_mul(units)))
            }
            Watermark::Double(number) => {
                let units = update_stamp::unix_units(number)?;
                Watermark::Double(number - lag as f64 * units as f64)
            }
            // An ObjectId begins with the second in which it was made.
            Watermark::Id(id) => {
                let made = (id.timestamp().timestamp_millis() / 1000).saturating_sub(lag);
                Watermark::Id(ObjectId::from_parts(u32::try_from(made).unwrap_or(0), [0; 5], [0; 3]))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_written_and_read_back() {
        let id = |second, rest| Watermark::Id(ObjectId::from_parts(second, [rest; 5], [rest; 3]));
        for (watermark, earlier) in [
            (Watermark::Date(-1), Watermark::Date(-2001)),
            (Watermark::Date(i64::MIN), Watermark::Date(i64::MIN)),
            (Watermark::Whole(1_700_000_000), Watermark::Whole(1_699_999_998)),
            (Watermark::Whole(1_700_000_000_000), Watermark::Whole(1_699_999_998_000)),
            (Watermark::Double(1_700_000_000_000.5), Watermark::Double(1_699_999_998_000.5)),
            (id(10, 9), id(8, 0)),
            (id(1, 9), id(0, 0)),
        ] {
            assert_eq!(Watermark::read(&watermark.text()), Some(watermark));
            assert_eq!((watermark.earlier(0), watermark.earlier(2)), (Some(watermark), Some(earlier)));
        }
        for number in [Watermark::Whole(7), Watermark::Double(0.1), Watermark::Double(20_260_131.0)] {
            assert_eq!(Watermark::read(&number.text()), Some(number));
            assert_eq!((number.earlier(0), number.earlier(2)), (Some(number), None));
        }
        for text in ["", "5", "date", "date x", "whole 1.5", "id 12", "2026-01-01 00:00:00"] {
            assert_eq!(Watermark::read(text), None, "{text}");
            assert_eq!(since("at", text).unwrap_err().code(), 117);
        }
    }
}
