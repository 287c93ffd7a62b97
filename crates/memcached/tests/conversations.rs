//! The files of `conversations/` held with a real memcached and with Granary: the replies are the same, byte
//! for byte, but for the version.
//!
//! A file has requests and nothing else. A line ends with CRLF on its way, unless it ends with a backslash;
//! `\r`, `\n`, `\0`, `\\` and `\xNN` stand for bytes; `{1000x}` for `x` a thousand times. Requests up to an
//! empty line are sent at once. A line with `#` is a remark.

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

/// The requests of a file that are sent at once, as they are written.
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

/// The first difference.
fn compare(text: &str) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    // An item that its maintenance has in hand is replaced by decr, not shortened in place.
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
        // Between two requests a second may pass on one side only: one attempt of five counts.
        for attempt in 1..=5 {
            let Err(difference) = compare(&text) else { break };
            if attempt == 5 {
                wrong += &format!("\n=== {}:\n{difference}", path.file_name().unwrap().display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
