//! A row of JSON whose values keep their texts: a number its digits, an object the order of its members, and duplicate
//! ones.

use crate::limits::JSON_MEMBERS_MAX;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The row.
pub(super) enum Row<'a> {
    Array(Vec<&'a RawValue>),
    Object(Vec<(String, &'a RawValue)>),
}

impl<'de> Deserialize<'de> for Row<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Row<'de>, D::Error> {
        deserializer.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Row<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Row<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            check_count::<A::Error>(all.len())?;
            all.push(item);
        }
        Ok(Row::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Row<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(member) = members.next_entry()? {
            check_count::<A::Error>(all.len())?;
            all.push(member);
        }
        Ok(Row::Object(all))
    }
}

/// Refuses one more of so many members or items: a list of them takes many times what they take in the text.
fn check_count<E: Error>(count: usize) -> Result<(), E> {
    match count < JSON_MEMBERS_MAX {
        true => Ok(()),
        false => Err(E::custom(format_args!("a row of more than {JSON_MEMBERS_MAX} values"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of a row, as they came.
    fn values(text: &str) -> Result<Vec<String>, serde_json::Error> {
        Ok(match serde_json::from_str::<Row<'_>>(text)? {
            Row::Array(items) => items.into_iter().map(|item| item.get().to_string()).collect(),
            Row::Object(members) => {
                members.into_iter().map(|(name, value)| format!("{name}={}", value.get())).collect()
            }
        })
    }

    #[test]
    fn values_are_the_texts_that_came() {
        let object = r#"{ "b" : 1.10,"a":[ 1.50 ,null], "b":{"":-0, "":1e5}, "\u0063":"x\"\n" }"#;
        assert_eq!(
            values(object).unwrap(),
            ["b=1.10", "a=[ 1.50 ,null]", r#"b={"":-0, "":1e5}"#, r#"c="x\"\n""#]
        );
        let array = "[123456789012345678901234567890 , true,\"é\"]";
        assert_eq!(values(array).unwrap(), ["123456789012345678901234567890", "true", "\"é\""]);
        let long = |count: usize| format!("[{}0]", "0,".repeat(count - 1));
        assert_eq!(values(&long(JSON_MEMBERS_MAX)).unwrap().len(), JSON_MEMBERS_MAX);
        assert!(values(&long(JSON_MEMBERS_MAX + 1)).is_err());
        assert!(values("[]").unwrap().is_empty() && values("{}").unwrap().is_empty());
        for bad in ["{1:2}", "1", "[1.]", "[{1:2}]", "[01]", "[tru]", "[".repeat(100_000).as_str()] {
            assert!(values(bad).is_err(), "{}", &bad[..bad.len().min(8)]);
        }
    }
}
