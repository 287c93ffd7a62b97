//! Figures over time.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value};

use crate::limits::HISTORY_SAMPLES;

/// Samples by column, oldest first. All columns are as long as `times`.
#[derive(Default)]
pub struct Series {
    times: VecDeque<u64>,
    columns: BTreeMap<Cow<'static, str>, VecDeque<u64>>,
}

impl Series {
    /// Adds a sample, which has the same figures each time; the oldest one is dropped.
    pub fn push<N: Into<Cow<'static, str>>>(
        &mut self,
        unix_seconds: u64,
        figures: impl IntoIterator<Item = (N, u64)>,
    ) {
        append(&mut self.times, unix_seconds);
        for (name, value) in figures {
            append(self.columns.entry(name.into()).or_default(), value);
        }
    }

    /// Time of the newest sample.
    pub fn newest(&self) -> Option<u64> {
        self.times.back().copied()
    }

    /// `{"time": [...], "keys_hit": [...], ...}`, of the samples taken after `unix_seconds`.
    pub fn since(&self, unix_seconds: u64) -> Value {
        let known = self.times.partition_point(|time| *time <= unix_seconds);
        let rest = |column: &VecDeque<u64>| Value::from(column.range(known..).copied().collect::<Vec<u64>>());
        let columns = self.columns.iter().map(|(name, column)| (name.clone().into_owned(), rest(column)));
        let time = std::iter::once(("time".to_owned(), rest(&self.times)));
        Value::Object(columns.chain(time).collect::<Map<_, _>>())
    }
}

fn append(column: &mut VecDeque<u64>, value: u64) {
    if column.len() == HISTORY_SAMPLES {
        column.pop_front();
    }
    column.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_oldest_samples_make_room() {
        let mut series = Series::default();
        assert_eq!((series.newest(), series.since(0)), (None, json!({"time": []})));
        for second in 1..=HISTORY_SAMPLES as u64 + 2 {
            series.push(second, [("a", 2 * second), ("b", 7)]);
        }
        let all = series.since(0);
        for column in ["time", "a", "b"] {
            assert_eq!(all[column].as_array().unwrap().len(), HISTORY_SAMPLES, "{column}");
        }
        assert_eq!((&all["time"][0], &all["a"][0]), (&json!(3), &json!(6)));
        let last = HISTORY_SAMPLES as u64 + 2;
        assert_eq!(series.since(last - 1), json!({"time": [last], "a": [2 * last], "b": [7]}));
        assert_eq!(series.since(last), json!({"time": [], "a": [], "b": []}));
    }
}
