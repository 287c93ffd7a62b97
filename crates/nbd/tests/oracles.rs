//! Volumes compared with files by QEMU, which writes to both and compares every read.

mod common;

use common::programs::{attempt, run};
use common::random::Random;
use common::serving::Serving;
use granary_nbd::{Export, Exports, VolumeExports};
use granary_volume::{Config, Volume};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// The number of operations, GRANARY_ORACLE_OPERATIONS for more: a million takes some minutes.
fn operations() -> u64 {
    std::env::var("GRANARY_ORACLE_OPERATIONS").map_or(20_000, |n| n.parse().unwrap())
}

fn export(volume: &Arc<Volume>) -> Arc<dyn Export> {
    VolumeExports::new([Arc::clone(volume)]).open("").unwrap()
}

fn create(folder: &Path, size: u64) {
    Volume::create(folder, "disk", &Config::new(size)).unwrap();
}

fn open(folder: &Path) -> Arc<Volume> {
    Arc::new(Volume::open(folder, "disk", &mut |_, _| {}).unwrap())
}

/// The volume, once the last connection has dropped it.
fn alone(serving: Serving, volume: Arc<Volume>) -> Volume {
    serving.server.stop();
    let mut volume = volume;
    // Less than the 30 s after which the server ends connections by itself.
    let deadline = Instant::now() + Duration::from_secs(25);
    loop {
        match Arc::try_unwrap(volume) {
            Ok(volume) => return volume,
            Err(shared) => volume = shared,
        }
        assert!(Instant::now() < deadline, "connections end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `count` commands of `qemu-io` for a disk of `size` bytes: writes, flushes and reads of all sizes.
fn commands(random: &mut Random, size: u64, count: u64) -> String {
    let mut below = |end: u64| random.next() % end;
    let mut lines = String::new();
    for _ in 0..count {
        let unit = [512, 512, 4096, 4096, 4096, 4096][below(6) as usize];
        let units = [4, 4, 64][below(3) as usize];
        let len = unit * (1 + below(units));
        let offset = below((size - len) / unit + 1) * unit;
        let line = match below(100) {
            0..45 => format!("write -q -P {} {offset} {len}", below(256)),
            45..50 => format!("write -q -f -P {} {offset} {len}", below(256)),
            50..53 => "flush".to_owned(),
            _ => format!("read -q {offset} {len}"),
        };
        lines.push_str(&line);
        lines.push('\n');
    }
    lines
}

/// Zeroes and discards, which QEMU's twin disk does not support.
fn zeroes(random: &mut Random, size: u64) -> Vec<String> {
    let mut below = |end: u64| random.next() % end;
    (0..40)
        .map(|_| {
            let len = 512 * (1 + below(2000));
            let offset = below((size - len) / 512 + 1) * 512;
            format!("write -q -z {} {offset} {len}", ["", "-u"][below(2) as usize])
        })
        .collect()
}

/// QEMU's disk that is a file and the volume at once.
fn twin(raw: &Path, serving: &Serving) -> String {
    let file = serde_json::json!({"driver": "file", "filename": raw});
    let nbd = serde_json::json!({"driver": "nbd", "server": {"type": "unix", "path": serving.socket()}});
    let nbd = serde_json::json!({"driver": "raw", "file": nbd});
    format!("json:{}", serde_json::json!({"driver": "blkverify", "raw": file, "test": nbd}))
}

/// QEMU writes to a file and to the volume, and reads both: it ends at the first difference.
#[test]
fn qemu_finds_what_a_file_has_while_segments_are_cleaned() {
    let size = 64 * MIB;
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), size);
    let mut volume = open(folder.path());
    let raw = folder.path().join("raw");
    std::fs::File::create(&raw).unwrap().set_len(size).unwrap();
    let mut random = Random(1);
    let mut left = operations();
    let (mut cleaned, mut closed, mut killed) = (0, 0, 0);
    while left > 0 {
        let part = left.min(operations().div_ceil(4));
        left -= part;
        let serving = Serving::new(export(&volume));
        let twin = twin(&raw, &serving);
        let mut qemu = Command::new("qemu-io")
            .arg(&twin)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("qemu-utils: scripts/install-test-servers.sh");
        let mut lines = commands(&mut random, size, part);
        lines.push_str("quit\n");
        let mut input = qemu.stdin.take().unwrap();
        let feeding = std::thread::spawn(move || input.write_all(lines.as_bytes()));
        let output = qemu.wait_with_output().unwrap();
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        let said = String::from_utf8_lossy(&said);
        let fine = output.status.success() && !said.contains("failed") && !said.contains("mismatch");
        assert!(fine, "{}: {}", output.status, &said[said.len().saturating_sub(2000)..]);
        feeding.join().unwrap().unwrap();
        let uri = serving.tcp();
        let zeroes = zeroes(&mut random, size);
        for disk in ["raw", &uri] {
            let commands = zeroes.iter().flat_map(|command| ["-c", command]);
            let arguments: Vec<&str> = ["-f", "raw"].into_iter().chain(commands).chain([disk]).collect();
            run(folder.path(), "qemu-io", &arguments);
        }
        run(folder.path(), "qemu-img", &["compare", "-f", "raw", "-F", "raw", "raw", &uri]);
        cleaned += volume.stats().segments_cleaned;
        let alone = alone(serving, volume);
        if killed > closed {
            alone.close().unwrap();
            closed += 1;
        } else {
            alone.commit().unwrap();
            alone.abandon();
            killed += 1;
        }
        volume = open(folder.path());
        assert_eq!(volume.check_map(&mut |_| {}), 0);
    }
    assert!(closed > 0 && killed > 0, "{closed} ends of one kind, {killed} of the other");
    assert!(cleaned > 0 || operations() < 20_000, "segments were cleaned");
    let serving = Serving::new(export(&volume));
    run(folder.path(), "qemu-img", &["compare", "-f", "raw", "-F", "raw", "raw", &serving.tcp()]);
    alone(serving, volume).close().unwrap();
}

/// Tests the oracle itself with a difference.
#[test]
fn qemu_sees_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), 16 * MIB);
    let volume = open(folder.path());
    std::fs::write(folder.path().join("raw"), vec![1; 16 << 20]).unwrap();
    let serving = Serving::new(export(&volume));
    let twin = twin(&folder.path().join("raw"), &serving);
    let (is_fine, printed, errors) = attempt(folder.path(), "qemu-io", &["-c", "read 1M 4k", &twin]);
    assert!(!is_fine && errors.contains("contents mismatch"), "{printed}{errors}");
    alone(serving, volume).close().unwrap();
}
