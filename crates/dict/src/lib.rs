//! ClickHouse-compatible cache dictionaries: DDL and XML to one definition, rows in and out as Arrow, a
//! flash cache in front of a source.

mod answer;
mod config;
mod ddl;
mod definition;
mod dictionary;
mod environment;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod kept;
pub mod limits;
mod lookup;
mod mark;
mod resident;
mod row;
mod sought;
mod source;
mod status;
mod store;
mod structure;
mod tokens;
mod types;
mod whole;
mod xml;

pub use answer::{Answer, AnswerRows};
pub use config::{
    Collection, Collections, Expired, KeyAccess, KeyForm, Layout, NullBounds, Overlap, PolygonKey,
    PolygonName, RangeSettings, SsdSettings, Storage, UpdateSettings, WholeForm,
};
pub use ddl::{CreateDictionary, Existing, Form, identifier, parse_create, quote};
pub use definition::{
    Attribute, Definition, Hierarchy, Injectivity, Key, KeyColumn, Lifetime, Literal, ObjectId, Structure,
};
pub use dictionary::Dictionary;
pub use environment::{
    AnswerQuery, Clock, Environment, OwnTables, ParquetReader, ParquetWanted, ReadParquet, Waiting,
};
pub use error::{Code, DictError};
pub use granary_cache::Team;
pub use lookup::{LATENCY_BUCKETS, Latency, Sums, Totals};
pub use resident::{Resident, Times};
pub use sought::Sought;
pub use source::{
    Changes, Field, FieldSink, Format, RowReader, Source, SourceConfig, SourceFactory, Tail, Take, TextFormat,
};
pub use status::{LoadState, Status};
pub use tokens::tokenize;
pub use types::{CLICKHOUSE_TYPE, DataType, Element, digits_of, ipv6_text};
pub use whole::{Children, murmur3_finalizer, regexp_of_re2};
pub use xml::{XmlDictionary, parse_xml, parse_xml_each};
