//! A web server (hyper) on a loopback port, which answers rows and remembers what it was asked.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, Uri};
use axum::response::IntoResponse;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Clone)]
pub struct Seen {
    pub method: String,
    pub uri: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

#[derive(Default)]
struct State {
    seen: Mutex<Vec<Seen>>,
    /// While this is not 0, every answer is that status.
    failing: AtomicU64,
}

pub struct Server {
    pub port: u16,
    state: Arc<State>,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub fn start() -> Server {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        let answer = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| async move {
            let seen =
                Seen { method: method.to_string(), uri: uri.to_string(), headers, body: body.to_vec() };
            shared.seen.lock().unwrap().push(seen);
            match shared.failing.load(Ordering::SeqCst) as u16 {
                0 => answer(uri.path(), body).await,
                status => status_of(status, "out of order"),
            }
        };
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, axum::Router::new().fallback(answer)).await.unwrap();
        });
        Server { port, state, _runtime: runtime }
    }

    /// The requests since this was last asked.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state.seen.lock().unwrap())
    }

    pub fn fail_with(&self, status: u16) {
        self.state.failing.store(status.into(), Ordering::SeqCst);
    }
}

/// Keys that are no multiples of 10, each with its tenfold.
async fn answer(path: &str, body: Bytes) -> Response<Body> {
    let text = String::from_utf8_lossy(&body).into_owned();
    let numbers = |separators: &[char]| -> Vec<u64> {
        text.split(separators).filter_map(|word| word.parse().ok()).filter(|key| key % 10 != 0).collect()
    };
    let rows = |keys: &[u64], row: &dyn Fn(&u64) -> String| keys.iter().map(row).collect::<String>();
    let tsv = |keys: &[u64]| rows(keys, &|key| format!("{key}\t{}\n", key * 10));
    match path {
        "/all" => tsv(&[1, 2, 3]).into_response(),
        "/TabSeparated" => tsv(&numbers(&['\n'])).into_response(),
        "/CSV" => rows(&numbers(&['\n']), &|key| format!("{key},\"{}\"\n", key * 10)).into_response(),
        "/JSONEachRow" => rows(&numbers(&[':', '}']), &|key| {
            format!("{{\"v\":{},\"id\":\"{key}\",\"other\":[1]}}\n", key * 10)
        })
        .into_response(),
        "/RowBinary" => {
            let keys = body.as_chunks::<8>().0.iter().map(|key| u64::from_le_bytes(*key));
            let rows = keys.filter(|key| key % 10 != 0).flat_map(|key| [key, key * 10]);
            rows.flat_map(u64::to_le_bytes).collect::<Vec<u8>>().into_response()
        }
        "/pairs" => {
            let rows: String = text.lines().map(|line| format!("{line}\t{}\n", line.len())).collect();
            rows.into_response()
        }
        "/gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(tsv(&numbers(&['\n'])).as_bytes()).unwrap();
            ([("content-encoding", "gzip")], encoder.finish().unwrap()).into_response()
        }
        // Whole rows, and then the connection breaks.
        "/torn" => {
            let rows = Bytes::from(tsv(&numbers(&['\n'])));
            let parts = [Ok(rows), Err(std::io::Error::other("torn"))];
            Body::from_stream(futures::stream::iter(parts)).into_response()
        }
        // Until the test ends.
        "/silent" => std::future::pending().await,
        "/redirect" => (axum::http::StatusCode::FOUND, [("location", "/TabSeparated")]).into_response(),
        "/uninvited" => format!("{text}7\t70\n999\t9990\n").replace("5\n", "5\t50\n").into_response(),
        _ => status_of(404, "no such table"),
    }
}

fn status_of(status: u16, text: &'static str) -> Response<Body> {
    (axum::http::StatusCode::from_u16(status).unwrap(), text).into_response()
}
