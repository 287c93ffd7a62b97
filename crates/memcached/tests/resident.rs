//! `stats granary` accounts for the RAM of the real server: what the kernel says is resident is what its parts say.

mod common;

use common::Client;
use common::process::{self, Process};
use std::collections::HashMap;

/// Does nothing when it runs as a test.
#[test]
fn child() {
    process::serve();
}

fn figures(client: &mut Client) -> HashMap<String, f64> {
    let lines = client.lines("stats granary");
    let figure = |line: &str| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    lines.lines().filter_map(figure).collect()
}

#[test]
fn what_is_resident_is_accounted_for() {
    const ITEMS: usize = 300_000;
    let folder = tempfile::tempdir().unwrap();
    let process = Process::start_with(folder.path(), "all", 0, Some(64 << 20));
    let mut client = Client::new(process.address);
    let value = "x".repeat(150);
    for first in (0..ITEMS).step_by(500) {
        let requests: Vec<String> =
            (first..first + 500).map(|key| format!("set k{key} 0 0 150 noreply\r\n{value}\r\n")).collect();
        client.say(requests.concat().as_bytes());
    }
    let figures = figures(&mut client);
    let of = |name: &str| figures[name];
    println!("{figures:?}");
    let rss = of("rss_bytes");
    let is_near = |what: &str, a: f64, b: f64| {
        assert!((a - b).abs() <= 0.02 * rss + f64::from(1 << 20), "{what}: {a} and {b} of {rss}");
    };
    is_near("parts", rss, of("rss_shared_bytes") + of("rss_program_bytes") + of("rss_own_bytes"));
    if of("memory_file_bytes") > 0.0 {
        is_near("files", of("rss_shared_bytes"), of("memory_file_bytes") + of("buffer_bytes"));
    }
    if of("allocated_bytes") > 0.0 {
        let own = of("allocated_bytes") + of("allocator_free_bytes");
        is_near("own", of("rss_own_bytes"), own);
        assert!(
            of("allocated_other_bytes") < 0.1 * rss,
            "what is not counted: {}",
            of("allocated_other_bytes")
        );
        assert!(of("index_bytes") > 0.0 && of("index_bytes") < of("allocated_bytes"));
    }
    drop(process);
    process::end(folder.path(), "all");
}
