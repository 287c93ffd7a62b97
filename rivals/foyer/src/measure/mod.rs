//! The measurements.

pub mod memory;
pub mod restart;
pub mod speed;
pub mod stale;

use crate::engine::Kind;
use serde_json::{Map, Value, json};

/// Prints a measurement as a line of JSON.
pub fn print(kind: Kind, value_bytes: usize, measure: &str, values: Value) {
    let round = std::env::var("RIVAL_ROUND").unwrap_or_default();
    let mut line: Map<String, Value> = Map::new();
    line.insert("engine".into(), json!(kind.name()));
    line.insert("round".into(), json!(round));
    line.insert("value_bytes".into(), json!(value_bytes));
    line.insert("measure".into(), json!(measure));
    line.extend(values.as_object().expect("an object").clone());
    println!("{}", Value::Object(line));
}

/// Bytes of RAM of this process.
pub fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number");
    pages * 4096
}

/// Seconds that all threads of this process have had a processor.
pub fn processor_seconds() -> f64 {
    cpu_time::ProcessTime::now().as_duration().as_secs_f64()
}
