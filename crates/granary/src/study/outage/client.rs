//! One connection: one request after another until the end, with every answer checked.

use std::time::Instant;

use fastrand::Rng;

use super::kind::{DictionaryKind, KINDS};
use super::tally::OutageRequest;
use crate::study::served::{agent, post};

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Speech {
    /// Keys and rows, as ClickHouse asks.
    Rows,
    Sql,
}

/// Maximum number of keys in a statement.
const SQL_KEYS_MAX: u64 = 8;

/// Keys of each kind, and the number of rows in the table.
pub struct Keys {
    pub of: [Vec<u64>; KINDS.len()],
    pub rows: u64,
}

/// Sends requests until `end`.
pub fn ask(url: &str, speech: Speech, keys: &Keys, seed: u64, end: Instant) -> Vec<OutageRequest> {
    let (agent, mut random) = (agent(), Rng::with_seed(seed));
    let mut requests = Vec::new();
    while Instant::now() < end {
        let kind = drawn(&mut random);
        let all = &keys.of[KINDS.iter().position(|other| *other == kind).expect("listed")];
        let most = if speech == Speech::Sql { SQL_KEYS_MAX } else { kind.batch_max() };
        // Most requests are small.
        let count = match random.u64(..10) {
            0 => 1 + random.u64(..most),
            1..5 => 1 + random.u64(..most.min(100)),
            _ => 1,
        };
        let batch: Vec<u64> = (0..count).map(|_| all[random.u64(..all.len() as u64) as usize]).collect();
        let (url, body, right) = match speech {
            Speech::Rows => {
                (format!("{url}/dictionary/{}", kind.name()), bytes(&batch), rows(&batch, keys.rows))
            }
            Speech::Sql => (url.to_owned(), statement(kind, &batch), sum(&batch, keys.rows)),
        };
        let started = Instant::now();
        let answer = post(&agent, &url, &body);
        let ended = Instant::now();
        let error = match answer {
            Ok((200, answer)) if answer == right => None,
            Ok((200, answer)) => {
                Some(format!("{} bytes that are not the {} wanted", answer.len(), right.len()))
            }
            Ok((status, text)) => Some(format!("{status}: {}", String::from_utf8_lossy(&text).trim())),
            Err(error) => Some(error.to_string()),
        };
        requests.push(OutageRequest { kind, started, ended, error: error.map(String::into_boxed_str) });
    }
    requests
}

fn drawn(random: &mut Rng) -> DictionaryKind {
    let mut left = random.u64(..100);
    for kind in KINDS {
        if left < kind.share() {
            return kind;
        }
        left -= kind.share();
    }
    unreachable!("the shares are a hundred")
}

fn bytes(keys: &[u64]) -> Vec<u8> {
    keys.iter().flat_map(|key| key.to_le_bytes()).collect()
}

/// The expected answer in RowBinary.
fn rows(keys: &[u64], rows: u64) -> Vec<u8> {
    let mut answer = Vec::new();
    for key in keys.iter().filter(|key| **key < rows) {
        let name = format!("user {key}");
        answer.extend_from_slice(&key.to_le_bytes());
        answer.push(name.len() as u8);
        answer.extend_from_slice(name.as_bytes());
        answer.extend_from_slice(&(key * 7).to_le_bytes());
    }
    answer
}

fn statement(kind: DictionaryKind, keys: &[u64]) -> Vec<u8> {
    let name = kind.name();
    let one = |key: &u64| format!("dictGet('{name}', 'balance', toUInt64({key}))");
    format!("SELECT {}", keys.iter().map(one).collect::<Vec<_>>().join(" + ")).into_bytes()
}

/// The expected answer in TabSeparated.
fn sum(keys: &[u64], rows: u64) -> Vec<u8> {
    let sum: u64 = keys.iter().filter(|key| **key < rows).map(|key| key * 7).sum();
    format!("{sum}\n").into_bytes()
}
