//! ClickHouse-compatible cache dictionaries: DDL and XML to one definition, rows in and out as Arrow, a
//! flash cache in front of a source.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(feature = "full-load"),
    expect(dead_code, unused_imports, reason = "what rows, types and sources do for these layouts alone")
)]

mod answer;
mod cache_store;
mod config;
mod ddl;
mod definition;
mod dictionary;
mod environment;
mod error;
#[cfg(feature = "full-load")]
mod full_load;
#[cfg(not(feature = "full-load"))]
#[path = "without_full_load.rs"]
mod full_load;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod lookup;
mod lookup_key;
mod quiet_panics;
mod resident;
mod row;
mod source;
mod status;
mod storage;
mod structure;
mod tokens;
mod types;
mod watermark;
mod xml;

pub use answer::{Answer, AnswerRows};
pub use config::{
    Collection, Collections, Expired, FullLoadLayout, KeyAccess, KeyForm, Layout, LayoutKind, NullBounds,
    Overlap, PolygonKey, PolygonName, RangeSettings, SsdSettings, UpdateSettings,
};
pub use ddl::{CreateDictionary, CreateMode, Form, identifier, parse_create, quote};
pub use definition::{
    Attribute, Definition, Hierarchy, Injectivity, Key, KeyColumn, Lifetime, Literal, ObjectId, Structure,
};
pub use dictionary::Dictionary;
pub use environment::{
    AnswerQuery, Clock, Environment, OwnTables, ParquetReader, ParquetRequest, ReadParquet, WaitLimit,
};
pub use error::{Code, DictError};
#[cfg(feature = "full-load")]
pub use full_load::{Children, ShownLoad, murmur3_finalizer, regexp_of_re2};
pub use granary_cache::{Compression, Helpers, Team};
#[doc(hidden)]
pub use granary_cache::{UnpublishedFile, create_folders, open_or_create};
pub use granary_metrics::Latency;
pub use lookup::{Sums, Totals};
pub use lookup_key::LookupKey;
pub use quiet_panics::caught_quietly;
pub use resident::{Resident, Times};
pub use source::{
    BatchSink, Changes, Field, FieldSink, Format, NewestChange, RowReader, Source, SourceConfig,
    SourceFactory, TextFormat,
};
pub use status::{LoadState, Status};
pub use tokens::tokenize;
pub use types::{
    CLICKHOUSE_TYPE, DataType, Element, days_written, digits_of, float_literal, ipv6_text, offset_at,
    seconds_written, ticks_written, unescape, unix_seconds,
};
pub use xml::{XmlDictionary, parse_xml, parse_xml_each};
