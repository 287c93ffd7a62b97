//! Binary keys of the meta commands. As lenient as memcached: bytes outside the alphabet are skipped, which no library
//! does.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn value(byte: u8) -> Option<u32> {
    if byte == b'=' {
        return Some(0);
    }
    ALPHABET.iter().position(|letter| *letter == byte).map(|at| at as u32)
}

/// The bytes that `text` encodes; `None`: it is not valid.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.iter().copied().filter(|byte| value(*byte).is_some()).collect();
    if letters.is_empty() || !letters.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3);
    for four in letters.chunks_exact(4) {
        let bits = four.iter().fold(0, |bits, letter| bits << 6 | value(*letter).unwrap_or(0));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
        match four.iter().filter(|letter| **letter == b'=').count() {
            0 => {}
            padding @ (1 | 2) => {
                bytes.truncate(bytes.len() - padding);
                break;
            }
            _ => return None,
        }
    }
    Some(bytes)
}

/// Appends `bytes` in base64.
pub fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for three in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes(padded);
        for i in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i > three.len() { b'=' } else { letter });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for text in ["", "f", "fo", "foo", "foob", "\0\x7f~\n"] {
            let mut encoded = Vec::new();
            encode(text.as_bytes(), &mut encoded);
            let expected = (!text.is_empty()).then(|| text.as_bytes().to_vec());
            assert_eq!(decode(&encoded), expected, "{text:?}");
        }
        for (text, expected) in [
            ("eHh4", Some("xxx")),
            ("e-H-h-4", Some("xxx")),
            ("YQ==", Some("a")),
            ("YQ==eHh4", Some("a")),
            ("YWI=", Some("ab")),
            ("xxx", None),
            ("A===", None),
            ("====", None),
        ] {
            assert_eq!(decode(text.as_bytes()).as_deref(), expected.map(str::as_bytes), "{text}");
        }
    }
}
