//! The backslashes of TabSeparated, and of strings inside an array.

/// Appends a text so that nothing in it ends a field, a row or a string in single quotes.
pub(crate) fn escape(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        let letter = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\0' => b'0',
            8 => b'b',
            12 => b'f',
            b'\\' | b'\'' => byte,
            _ => {
                out.push(byte);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

/// Replaces `out` by the field without its escapes; `\N` within it is dropped.
pub fn unescape(field: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        let (b'\\', Some((&letter, tail))) = (byte, tail.split_first()) else {
            out.push(byte);
            continue;
        };
        rest = tail;
        match letter {
            b't' => out.push(b'\t'),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b'0' => out.push(0),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'N' => {}
            b'v' => out.push(11),
            b'f' => out.push(12),
            b'e' => out.push(27),
            b'x' if tail.len() >= 2 && tail[..2].iter().all(u8::is_ascii_hexdigit) => {
                let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
                out.push(digit(tail[0]) << 4 | digit(tail[1]));
                rest = &tail[2..];
            }
            b'\\' | b'\'' | b'"' | b'`' | b'/' | b'=' => out.push(letter),
            _ if letter < 0x20 => out.push(letter),
            // Not an escape: the backslash is a byte like others.
            _ => out.extend_from_slice(&[b'\\', letter]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_lose_their_backslashes() {
        for (field, plain) in [
            (&br"\a\b\t\n\v\f\r\e\0"[..], &b"\x07\x08\t\n\x0b\x0c\r\x1b\0"[..]),
            (br"\x41\xe9\x4", b"A\xe9\\x4"),
            (br#"\\\'\"\`\/\="#, br#"\'"`/="#),
            (br"\d+\%\_", br"\d+\%\_"),
            (br"a\Nb", b"ab"),
            (br"a\", br"a\"),
        ] {
            let mut out = b"before".to_vec();
            unescape(field, &mut out);
            assert_eq!(out, plain, "{}", String::from_utf8_lossy(field));
        }
    }
}
