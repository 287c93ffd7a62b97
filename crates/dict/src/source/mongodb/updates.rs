//! UPDATE_FIELD: a date, a number or an ObjectId that says which documents were changed last.

use super::fields::Fields;
use super::server::error;
use super::{Mongodb, Most, fill};
use crate::config::Updates;
use crate::error::{Code, DictError};
use crate::limits::{CHANGES_MAX, RESIDENT_BATCH_ROWS};
use crate::source::rows::Rows;
use crate::source::{Changes, Tail};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};

/// The letters before a mark's number.
const DATE: &str = "date ";
const NUMBER: &str = "number ";
const ID: &str = "id ";

/// The end of what was changed.
pub(super) fn tail(source: &Mongodb, updates: &Updates, mark: Option<&str>) -> Result<Tail, DictError> {
    let (deadline, field) = (source.deadline(), updates.field.as_str());
    let collection = source.connected.collection::<Document>(&source.server.config.collection);
    source.ask(deadline, async {
        let last = collection
            .find_one(Document::new())
            .sort(doc! { field: -1 })
            .projection(doc! { field: 1, "_id": 1 });
        let last = last.max_time(source.server.patience).await.map_err(|e| error(&e))?;
        let Some(latest) = last.as_ref().and_then(|last| value(last, field)) else {
            return Ok(Tail::default());
        };
        // Without a mark all documents would have to be counted, and nobody compares the number with another.
        let count = match mark {
            None => 0,
            Some(mark) => collection.count_documents(since(field, mark)?).await.map_err(|e| error(&e))?,
        };
        let next = written(&earlier(latest, updates.lag_seconds), field)?;
        Ok(Tail { latest: Some(written(latest, field)?), count: Some(count.to_string()), next: Some(next) })
    })
}

/// The keys of what is as late as a mark.
pub(super) fn changes(source: &Mongodb, updates: &Updates, mark: &str) -> Result<Changes, DictError> {
    let fields = Fields::of_key(&source.structure);
    let mut rows = Rows::of_key(&source.structure);
    let (deadline, filter) = (source.deadline(), since(&updates.field, mark)?);
    source.ask(deadline, async {
        let found = source.find(filter, &fields, RESIDENT_BATCH_ROWS, Some(deadline), |find| {
            find.limit(CHANGES_MAX as i64 + 1)
        });
        fill(&mut found.await?, &fields, Most::All, &mut rows).await
    })?;
    match rows.len() > CHANGES_MAX {
        true => Ok(Changes::TooMany),
        false => Ok(Changes::Keys(rows.take()?)),
    }
}

/// The value of a field, or of one that documents in each other lead to.
fn value<'d>(document: &'d Document, name: &str) -> Option<&'d Bson> {
    let found = match name.split_once('.') {
        None => document.get(name),
        Some((outer, inner)) => document.get_document(outer).ok().and_then(|within| value(within, inner)),
    };
    found.filter(|found| **found != Bson::Null)
}

fn since(field: &str, mark: &str) -> Result<Document, DictError> {
    let read = || {
        if let Some(text) = mark.strip_prefix(DATE) {
            return text.parse().ok().map(|at| Bson::DateTime(DateTime::from_millis(at)));
        }
        if let Some(text) = mark.strip_prefix(NUMBER) {
            return text.parse::<i64>().map(Bson::Int64).or_else(|_| text.parse().map(Bson::Double)).ok();
        }
        mark.strip_prefix(ID).and_then(|text| ObjectId::parse_str(text).ok()).map(Bson::ObjectId)
    };
    let mark = read().ok_or_else(|| {
        DictError::new(Code::IncorrectData, format!("MongoDB: '{mark}' is not how far changes are known"))
    })?;
    Ok(doc! { field: { "$gte": mark } })
}

/// A value as a mark.
fn written(value: &Bson, field: &str) -> Result<String, DictError> {
    match value {
        Bson::DateTime(at) => Ok(format!("{DATE}{}", at.timestamp_millis())),
        Bson::Int32(number) => Ok(format!("{NUMBER}{number}")),
        Bson::Int64(number) => Ok(format!("{NUMBER}{number}")),
        Bson::Double(number) => Ok(format!("{NUMBER}{number}")),
        Bson::ObjectId(id) => Ok(format!("{ID}{id}")),
        other => {
            let text = format!(
                "MongoDB: UPDATE_FIELD {field} must be a date, a number or an ObjectId, not {:?}",
                other.element_type()
            );
            Err(DictError::new(Code::TypeMismatch, text))
        }
    }
}

fn earlier(value: &Bson, seconds: u64) -> Bson {
    let lag = i64::try_from(seconds).unwrap_or(i64::MAX);
    match value {
        Bson::DateTime(at) => {
            let milliseconds = at.timestamp_millis().saturating_sub(lag.saturating_mul(1000));
            Bson::DateTime(DateTime::from_millis(milliseconds))
        }
        Bson::Int32(number) => Bson::Int64(i64::from(*number).saturating_sub(lag)),
        Bson::Int64(number) => Bson::Int64(number.saturating_sub(lag)),
        Bson::Double(number) => Bson::Double(number - lag as f64),
        // It begins with the second in which it was made.
        Bson::ObjectId(id) if lag > 0 => {
            let made = id.timestamp().timestamp_millis() / 1000;
            let made = u32::try_from(made.saturating_sub(lag)).unwrap_or(0);
            Bson::ObjectId(ObjectId::from_parts(made, [0; 5], [0; 3]))
        }
        other => other.clone(),
    }
}
