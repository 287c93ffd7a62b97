//! The user that a request claims to be from: read or refused, whatever the request's head is.
#![no_main]

#[path = "../../src/http/credentials.rs"]
mod credentials;
mod head;
#[path = "../../src/http/url.rs"]
mod url;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((method, headers, uri)) = head::head(bytes) {
        let _ = credentials::read_credentials(&method, &headers, &uri);
    }
});
