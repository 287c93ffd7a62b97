//! memcached's items: each is as it was stored last, or gone; a number that `gets` shows never comes again.

use crate::history::History;
use crate::process::Process;
use fastrand::Rng;
use std::fmt::Write;

const KEYS: usize = 2000;

/// What an operation made of a key: a value, or nothing.
type Version = (usize, Option<String>);

pub struct Items {
    versions: Vec<Vec<Version>>,
    /// The greatest number that was given, by how many operations were done.
    numbers: Vec<(usize, u64)>,
    /// Operations after which a start has all that was there: stops.
    stops: Vec<usize>,
}

/// A few KiB, which hardly compress: each life fills segments of flash.
fn value(key: usize, operation: usize, random: &mut Rng) -> String {
    let rest = (0..random.usize(1000..3500)).map(|_| random.alphanumeric());
    format!("{key}:{operation}:").chars().chain(rest).collect()
}

impl Items {
    pub fn new() -> Self {
        Self { versions: vec![vec![(0, None)]; KEYS], numbers: vec![(0, 0)], stops: Vec::new() }
    }

    /// The server is to be stopped by the next operation, after [`looked_at`](Self::looked_at).
    pub fn stopped(&mut self, operation: usize) {
        self.stops.push(operation);
    }

    /// The operations that were stops.
    pub fn stops(&self) -> &[usize] {
        &self.stops
    }

    /// Notes what is gone: a kill lost it, or it had to leave for others.
    pub fn looked_at(&mut self, process: &Process, operation: usize) {
        for (key, found) in find(process, 0..KEYS).into_iter().enumerate() {
            let newest = &self.versions[key].last().expect("the first one").1;
            match found {
                None if newest.is_some() => self.versions[key].push((operation, None)),
                _ => assert!(found == *newest, "k{key}: {:?}, not {:?}", short(&found), short(newest)),
            }
        }
    }

    pub fn change(&mut self, process: &Process, history: &mut History, random: &mut Rng) {
        let operation = history.len();
        let mut requests = String::new();
        match random.u8(..24) {
            0 => {
                let heard = history.note("flush_all", || process.say(b"flush_all\r\n"));
                assert_eq!(heard, b"OK\r\n");
                self.versions.iter_mut().for_each(|versions| versions.push((operation, None)));
            }
            1..6 => {
                let keys: Vec<usize> = (0..random.usize(1..10)).map(|_| random.usize(..KEYS)).collect();
                keys.iter().for_each(|key| _ = write!(requests, "delete k{key}\r\n"));
                history.note("delete", || process.say(requests.as_bytes()));
                keys.into_iter().for_each(|key| self.versions[key].push((operation, None)));
            }
            6..9 => {
                let key = random.usize(..KEYS);
                let heard = history
                    .note("append", || process.say(format!("append k{key} 0 0 1\r\n+\r\n").as_bytes()));
                if heard == b"STORED\r\n" {
                    let stored = self.versions[key].last().expect("the first one").1.clone();
                    let stored = stored.unwrap_or_else(|| panic!("k{key} was deleted"));
                    self.versions[key].push((operation, Some(stored + "+")));
                }
            }
            9..12 => self.get(process, random),
            _ => {
                let first = random.usize(..KEYS - 200);
                let stored: Vec<(usize, String)> = (first..first + random.usize(1..200))
                    .map(|key| (key, value(key, operation, random)))
                    .collect();
                for (key, value) in &stored {
                    let _ = write!(requests, "ms k{key} {} c\r\n{value}\r\n", value.len());
                }
                let heard = history.note("set", || process.say(requests.as_bytes()));
                let heard = String::from_utf8(heard).unwrap();
                let numbers = heard.lines().filter_map(|line| line.strip_prefix("HD c")?.parse().ok());
                let numbers: Vec<u64> = numbers.collect();
                assert_eq!(numbers.len(), stored.len(), "{heard}");
                self.numbers.push((operation, numbers.into_iter().max().expect("one at least")));
                for (key, value) in stored {
                    self.versions[key].push((operation, Some(value)));
                }
            }
        }
    }

    /// What is read again is worth a place on the SSD.
    fn get(&self, process: &Process, random: &mut Rng) {
        let keys: Vec<usize> = (0..200).map(|_| random.usize(..KEYS)).collect();
        for (key, found) in keys.iter().zip(find(process, keys.iter().copied())) {
            let newest = &self.versions[*key].last().expect("the first one").1;
            assert!(found.is_none() || found == *newest, "k{key}: {found:?}, not {newest:?}");
        }
    }

    /// Compares all items with what `done` operations, and maybe the next one, have made of them; gives how many are
    /// there.
    pub fn check(&self, process: &Process, done: usize) -> usize {
        let mut there = 0;
        let is_stopped = self.stops.iter().any(|stop| stop + 1 == done);
        for (key, found) in find(process, 0..KEYS).into_iter().enumerate() {
            let versions = &self.versions[key];
            let newest = versions.iter().rfind(|version| version.0 < done || version.0 == 0);
            let newest = &newest.expect("the first one").1;
            let next = versions.iter().find(|version| version.0 == done).map(|version| &version.1);
            match found {
                Some(_) => there += 1,
                None => {
                    assert!(!is_stopped || newest.is_none() || next.is_some(), "k{key} is gone after a stop");
                    continue;
                }
            }
            let is_known = found == *newest || Some(&found) == next;
            assert!(
                is_known,
                "k{key}: {:?}, not {:?} or {:?}",
                short(&found),
                short(newest),
                next.map(short)
            );
        }
        let given = self.numbers.iter().rfind(|(operation, _)| *operation < done || *operation == 0);
        let given = given.expect("the first one").1;
        let heard = String::from_utf8(process.say(b"ms other 1 c\r\nx\r\n")).unwrap();
        let number: u64 =
            heard.trim().strip_prefix("HD c").unwrap_or_else(|| panic!("{heard}")).parse().unwrap();
        assert!(number > given, "the number {number} is given again: {given} was before");
        there
    }
}

/// Which key and operation a value is of.
fn short(value: &Option<String>) -> Option<String> {
    value.as_ref().map(|value| value.split_inclusive(':').take(2).collect())
}

/// The values of keys.
fn find(process: &Process, keys: impl Iterator<Item = usize>) -> Vec<Option<String>> {
    let requests: String = keys.map(|key| format!("mg k{key} v\r\n")).collect();
    let heard = String::from_utf8(process.say(requests.as_bytes())).unwrap();
    let mut lines = heard.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        found.push(line.starts_with("VA ").then(|| lines.next().expect("a value").to_owned()));
        assert!(line == "EN" || found.last().is_some_and(Option::is_some), "{line}");
    }
    found
}
