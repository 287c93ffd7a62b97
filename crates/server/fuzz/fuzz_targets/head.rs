//! The head of a request made of any bytes: a line of method and URL, and lines of headers.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};

/// `None`: hyper would not hand over such a request.
pub fn head(bytes: &[u8]) -> Option<(Method, HeaderMap, Uri)> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let mut first = lines.next()?.splitn(2, |byte| *byte == b' ');
    let method = Method::from_bytes(first.next()?).ok()?;
    let uri = Uri::try_from(first.next()?).ok()?;
    let mut headers = HeaderMap::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].trim_ascii_start();
        headers.append(HeaderName::from_bytes(&line[..colon]).ok()?, HeaderValue::from_bytes(value).ok()?);
    }
    Some((method, headers, uri))
}
