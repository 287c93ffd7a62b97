//! UPDATE_FIELD: a date, a number or an ObjectId that says which documents were changed last.

use super::client::{Mongodb, Most, Rest, fill, left};
use super::fields::{Fields, find};
use super::server::error;
use crate::error::{Code, DictError};
use crate::limits::{CHANGES_MAX, RESIDENT_BATCH_ROWS};
use crate::source::rows::Rows;
use crate::source::select::Updates;
use crate::source::{Changes, Tail};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, RawBsonRef, RawDocumentBuf, doc};

/// The end of what was changed.
pub(super) fn tail(source: &Mongodb, updates: &Updates, mark: Option<&str>) -> Result<Tail, DictError> {
    let (deadline, field) = (source.deadline(), updates.field.as_str());
    let since = mark.map(|mark| since(field, mark)).transpose()?;
    let collection = source.connected.collection::<RawDocumentBuf>(&source.server.collection);
    source.ask(deadline, async {
        let last =
            collection.find_one(Document::new()).sort(doc! { field: -1 }).projection(doc! { field: 1 });
        let last = last.max_time(left(deadline)).await.map_err(|e| error(&e))?;
        let latest = last.as_ref().map(|last| find(last, field)).transpose()?.flatten();
        let latest = match latest {
            None | Some(RawBsonRef::Null) => return Ok(Tail::default()),
            Some(latest) => Mark::of(latest, field)?,
        };
        // Without a mark all documents would have to be counted, and nobody compares the number with another.
        let count = match since {
            None => 0,
            Some(since) => {
                collection.count_documents(since).max_time(left(deadline)).await.map_err(|e| error(&e))?
            }
        };
        let next = latest.earlier(updates.lag_seconds);
        Ok(Tail { latest: Some(latest.text()), count: Some(count.to_string()), next: Some(next.text()) })
    })
}

/// The keys of what is as late as a mark.
pub(super) fn changes(source: &Mongodb, updates: &Updates, mark: &str) -> Result<Changes, DictError> {
    let fields = Fields::of_key(&source.structure);
    let mut rows = Rows::of_key(&source.structure);
    let (deadline, filter) = (source.deadline(), since(&updates.field, mark)?);
    let rest = source.ask(deadline, async {
        let mut cursor = source.find(filter, &fields, RESIDENT_BATCH_ROWS, Some(deadline)).await?;
        fill(&mut cursor, &fields, Most::Documents(CHANGES_MAX + 1), &mut rows).await
    })?;
    match rest {
        Rest::Unknown => Ok(Changes::TooMany),
        Rest::None => Ok(Changes::Keys(rows.take()?)),
    }
}

fn since(field: &str, mark: &str) -> Result<Document, DictError> {
    let mark = Mark::read(mark).ok_or_else(|| {
        DictError::new(Code::IncorrectData, format!("MongoDB: '{mark}' is not how far changes are known"))
    })?;
    Ok(doc! { field: { "$gte": mark.value() } })
}

/// How far changes have come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mark {
    /// In milliseconds.
    Date(i64),
    Whole(i64),
    Double(f64),
    Id(ObjectId),
}

impl Mark {
    fn of(value: RawBsonRef<'_>, field: &str) -> Result<Mark, DictError> {
        match value {
            RawBsonRef::DateTime(at) => Ok(Mark::Date(at.timestamp_millis())),
            RawBsonRef::Int32(number) => Ok(Mark::Whole(number.into())),
            RawBsonRef::Int64(number) => Ok(Mark::Whole(number)),
            RawBsonRef::Double(number) => Ok(Mark::Double(number)),
            RawBsonRef::ObjectId(id) => Ok(Mark::Id(id)),
            other => {
                let text = format!(
                    "MongoDB: UPDATE_FIELD {field} must be a date, a number or an ObjectId, not {:?}",
                    other.element_type()
                );
                Err(DictError::new(Code::TypeMismatch, text))
            }
        }
    }

    fn read(text: &str) -> Option<Mark> {
        let (kind, text) = text.split_once(' ')?;
        match kind {
            "date" => text.parse().ok().map(Mark::Date),
            "whole" => text.parse().ok().map(Mark::Whole),
            "double" => text.parse().ok().map(Mark::Double),
            "id" => ObjectId::parse_str(text).ok().map(Mark::Id),
            _ => None,
        }
    }

    fn text(self) -> String {
        match self {
            Mark::Date(milliseconds) => format!("date {milliseconds}"),
            Mark::Whole(number) => format!("whole {number}"),
            Mark::Double(number) => format!("double {number}"),
            Mark::Id(id) => format!("id {id}"),
        }
    }

    fn value(self) -> Bson {
        match self {
            Mark::Date(milliseconds) => DateTime::from_millis(milliseconds).into(),
            Mark::Whole(number) => number.into(),
            Mark::Double(number) => number.into(),
            Mark::Id(id) => id.into(),
        }
    }

    fn earlier(self, seconds: u64) -> Mark {
        let lag = i64::try_from(seconds).unwrap_or(i64::MAX);
        match self {
            Mark::Date(milliseconds) => Mark::Date(milliseconds.saturating_sub(lag.saturating_mul(1000))),
            Mark::Whole(number) => Mark::Whole(number.saturating_sub(lag)),
            Mark::Double(number) => Mark::Double(number - lag as f64),
            Mark::Id(id) if lag == 0 => Mark::Id(id),
            // It begins with the second in which it was made.
            Mark::Id(id) => {
                let made = (id.timestamp().timestamp_millis() / 1000).saturating_sub(lag);
                Mark::Id(ObjectId::from_parts(u32::try_from(made).unwrap_or(0), [0; 5], [0; 3]))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_written_and_read_back() {
        let id = |second, rest| Mark::Id(ObjectId::from_parts(second, [rest; 5], [rest; 3]));
        for (mark, earlier) in [
            (Mark::Date(-1), Mark::Date(-2001)),
            (Mark::Date(i64::MIN), Mark::Date(i64::MIN)),
            (Mark::Whole(7), Mark::Whole(5)),
            (Mark::Double(0.1), Mark::Double(-1.9)),
            (id(10, 9), id(8, 0)),
            (id(1, 9), id(0, 0)),
        ] {
            assert_eq!(Mark::read(&mark.text()), Some(mark));
            assert_eq!((mark.earlier(0), mark.earlier(2)), (mark, earlier));
        }
        for text in ["", "5", "date", "date x", "whole 1.5", "id 12", "2026-01-01 00:00:00"] {
            assert_eq!(Mark::read(text), None, "{text}");
            assert_eq!(since("at", text).unwrap_err().code(), 117);
        }
    }
}
