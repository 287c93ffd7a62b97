//! Sends the requests of the files of `conversations/` to a real memcached and to Granary: the replies are the same,
//! byte for byte, except for the version.
//!
//! A file contains requests only. A line ends with CRLF on its way, unless it ends with a backslash; `\r`, `\n`, `\0`,
//! `\\` and `\xNN` stand for bytes; `{1000x}` for `x` a thousand times. Requests up to an empty line are sent at once.
//! A line that begins with `#` is a comment.

mod common;

use common::{Client, memcached, start};
use std::path::Path;

fn bytes(line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chars = line.chars();
    while let Some(char) = chars.next() {
        match char {
            '{' => {
                let text: String = chars.by_ref().take_while(|c| *c != '}').collect();
                let digits = text.chars().take_while(char::is_ascii_digit).count();
                bytes.extend(text[digits..].repeat(text[..digits].parse().unwrap()).bytes());
            }
            '\\' => match chars.next() {
                None => return bytes,
                Some('r') => bytes.push(b'\r'),
                Some('n') => bytes.push(b'\n'),
                Some('0') => bytes.push(0),
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).collect();
                    bytes.push(u8::from_str_radix(&digits, 16).unwrap());
                }
                Some(other) => bytes.push(other as u8),
            },
            other => bytes.extend(other.to_string().bytes()),
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// The groups of requests in a file that are sent at once, as they are written.
fn groups(text: &str) -> impl Iterator<Item = String> {
    text.split("\n\n")
        .map(|group| group.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"))
        .filter(|group| !group.is_empty())
}

fn readable(reply: &[u8]) -> String {
    let text = reply.escape_ascii().to_string().replace("\\r\\n", "\n");
    let line =
        |line: &str| if line.starts_with("VERSION ") { "VERSION\n".into() } else { format!("{line}\n") };
    text.lines().map(line).collect()
}

/// Compares the replies to a file's requests; returns the first difference.
fn compare(text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    // memcached runs without maintenance threads: an item that one of them holds is replaced by decr, not shortened in
    // place.
    let (theirs, ours) =
        (memcached(&["-o", "no_lru_crawler,no_lru_maintainer", "-W", "-X"]), start(folder.path()));
    let mut clients = [Client::new(theirs.address), Client::new(ours.address())];
    for group in groups(text) {
        let request: Vec<u8> = group.lines().flat_map(bytes).collect();
        let [theirs, ours] = clients.each_mut().map(|client| readable(&client.say(&request)));
        if theirs != ours {
            return Err(format!("{group}\n--- memcached:\n{theirs}--- Granary:\n{ours}"));
        }
    }
    Ok(())
}

#[test]
fn granary_answers_as_memcached() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = String::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        // Between two requests the second may change on one side only: one equal attempt of five is enough.
        for attempt in 1..=5 {
            let Err(difference) = compare(&text) else { break };
            if attempt == 5 {
                wrong += &format!("\n=== {}:\n{difference}", path.file_name().unwrap().display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
