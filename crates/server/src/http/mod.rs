//! HTTP: which path is whose.

mod answer;
mod dictionary;
mod exception;
mod query;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::get;
use granary_sql::Session;
use tower_http::compression::CompressionLayer;
use tower_http::decompression::RequestDecompressionLayer;

use crate::limits::BODY_BYTES_MAX;

/// Every path of the server.
pub fn router(session: Arc<Session>) -> Router {
    Router::new()
        .route("/", get(query::run_get).post(query::run_post))
        .route("/ping", get(|| async { "Ok.\n" }))
        .route("/replicas_status", get(|| async { "Ok.\n" }))
        .route("/dictionary/{name}", get(dictionary::all_rows).post(dictionary::look_up))
        .route("/dictionary/{name}/ddl", get(dictionary::statement))
        .layer(CompressionLayer::new())
        .layer(RequestDecompressionLayer::new())
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(session)
}
