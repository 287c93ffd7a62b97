//! The escapes of the text formats.

/// TabSeparated's escapes.
pub fn tab(bytes: &[u8], out: &mut Vec<u8>) {
    backslashed(bytes, out);
}

/// A string inside a tuple or an array: in single quotes, with backslashes.
pub fn single_quoted(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    backslashed(bytes, out);
    out.push(b'\'');
}

/// A CSV field, always in double quotes.
pub fn csv(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

/// A JSON string. Like ClickHouse, `/` is escaped, so that the text may stand inside HTML.
pub fn json(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in String::from_utf8_lossy(bytes).as_bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x00..0x20 => out.extend_from_slice(format!("\\u{byte:04X}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn backslashed(bytes: &[u8], out: &mut Vec<u8>) {
    let mut clean = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        let letter = match byte {
            b'\t' => b't',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\\' => b'\\',
            b'\'' => b'\'',
            0x00 => b'0',
            0x08 => b'b',
            0x0c => b'f',
            _ => continue,
        };
        out.extend_from_slice(&bytes[clean..i]);
        out.extend_from_slice(&[b'\\', letter]);
        clean = i + 1;
    }
    out.extend_from_slice(&bytes[clean..]);
}
