//! HTTP: the routes.

mod answer;
mod answer_writer;
mod blocks;
mod body;
mod body_timeout;
mod caller;
mod credentials;
mod dashboard;
mod dictionary;
mod encoding;
mod exception;
mod identity;
mod lz4;
mod metrics;
mod pieces;
mod query;
mod sessions;
mod unread;
mod url;
mod url_parameters;
mod waiting;

use std::sync::Arc;

use axum::Router;
use axum::http::header::X_CONTENT_TYPE_OPTIONS;
use axum::http::{HeaderValue, StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state, map_request, map_response};
use axum::response::Response;
use axum::routing::{get, post};
use granary_sockets::LogThrottle;
use granary_sql::Session;
use tokio::runtime::Handle;
use tower_http::compression::CompressionLayer;

use crate::access::Users;
use crate::figures::SideServers;
use dashboard::History;
use metrics::Metrics;
use sessions::Sessions;

pub use waiting::run_without_permit;

/// State that all requests share.
pub struct App {
    /// A session with full rights; a caller's session is another one over the same dictionaries.
    pub session: Arc<Session>,
    /// Where queries run.
    pub queries: Handle,
    pub users: Users,
    sessions: Arc<Sessions>,
    metrics: Metrics,
    history: Arc<History>,
    refused_logins: LogThrottle,
}

impl App {
    pub fn new(session: Arc<Session>, queries: Handle, users: Users, side_servers: SideServers) -> Self {
        let metrics = Metrics::new(Arc::clone(&session), side_servers.clone());
        let history = Arc::new(History::new(side_servers));
        let (sessions, refused_logins) = (Arc::default(), LogThrottle::default());
        Self { session, queries, users, sessions, metrics, history, refused_logins }
    }

    /// The tasks beside requests, which run for ever.
    pub fn background(&self) -> impl Future<Output = ()> + Send + 'static {
        let history = Arc::clone(&self.history).watch(Arc::clone(&self.session));
        let sessions = Arc::clone(&self.sessions).watch();
        async move {
            tokio::join!(history, sessions);
        }
    }
}

/// The scheme of a listener's URLs.
#[derive(Clone, Copy)]
pub struct Scheme(pub &'static str);

/// All routes of the server.
pub fn router(app: App) -> Router {
    let app = Arc::new(app);
    Router::new()
        .route("/", get(query::run_get).post(query::run_post))
        .route("/ping", get(|| async { "Ok.\n" }))
        .route("/replicas_status", get(|| async { "Ok.\n" }))
        .route("/dashboard", get(dashboard::page))
        .route("/dashboard/style.css", get(dashboard::style))
        .route("/dashboard/script.js", get(dashboard::script))
        .route("/dashboard/history", get(dashboard::history))
        .route("/metrics", get(metrics::text))
        .route("/dictionary/{name}", get(dictionary::all_rows).post(dictionary::look_up))
        .route("/dictionary/{name}/refresh", post(dictionary::refresh))
        .route("/dictionary/{name}/invalidate", post(dictionary::invalidate))
        .route("/dictionary/{name}/ddl", get(dictionary::statement))
        .fallback(unknown_path)
        .layer(CompressionLayer::new())
        .layer(map_request(encoding::settle))
        .layer(from_fn_with_state(Arc::clone(&app), encoding::unpack))
        .layer(from_fn(identity::identify))
        .layer(from_fn_with_state(Arc::clone(&app), metrics::measure))
        .layer(from_fn(unread::read_unwanted))
        .layer(map_request(body_timeout::limited))
        .layer(map_response(for_no_other_page))
        .with_state(app)
}

/// Keeps pages of other servers from running an answer as a script, whatever it contains.
async fn for_no_other_page(mut response: Response) -> Response {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Answers unknown paths in ClickHouse's words.
async fn unknown_path(uri: Uri) -> (StatusCode, String) {
    let paths = "/ for queries, /dictionary/NAME for a dictionary, /dashboard, /metrics or /ping";
    (StatusCode::NOT_FOUND, format!("There is no handle {}\nUse {paths}\n", uri.path()))
}
