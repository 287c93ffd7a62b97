//! `granary study`: measurements that anybody can repeat, written as pages.

mod cache;
mod compression;
mod dictionary;
mod figure;
mod flashield;
mod machine;
mod memcached;
mod outage;
mod postgres;
mod process;
mod proxy;
mod replay;
mod served;
mod volume;

use clap::{Args, Subcommand};

use crate::failure::Result;

/// Arguments of `granary study`.
#[derive(Args)]
pub struct StudyArguments {
    #[command(subcommand)]
    study: Study,
}

#[derive(Subcommand)]
enum Study {
    /// What a cache in front of an on-disk store is worth: Granary, LevelDB and RocksDB
    Cache(cache::CacheStudyArguments),
    /// Compression of values: codecs on real values, what it saves, and page compression in RocksDB
    Compression(compression::CompressionStudyArguments),
    /// Cache dictionaries against a real ClickHouse and the device itself
    Dictionary(dictionary::DictionaryStudyArguments),
    /// Admission to flash: what policies write and find, on traces and drawn streams
    Flashield(flashield::FlashieldStudyArguments),
    /// The memcached server against memcached, its extstore and the device itself
    Memcached(memcached::MemcachedStudyArguments),
    /// Many connections to the dictionary server, whose PostgreSQL fails and comes back
    Outage(outage::OutageStudyArguments),
    /// Granary between a real ClickHouse and a real PostgreSQL: what is asked, and how long it takes
    Proxy(proxy::ProxyStudyArguments),
    /// The models of the study of admission beside the real server on a real disk
    Replay(replay::ReplayStudyArguments),
    /// Volumes: what maps cost, servers beside each other, cleaning, opening
    Volume(volume::VolumeStudyArguments),
    /// Loads or reads a store (a part of `cache`)
    #[command(hide = true)]
    StoreProcess(cache::StoreProcess),
    /// Writes to a cache until it is killed (a part of `dictionary`)
    #[command(hide = true)]
    WriteUntilKilled(dictionary::WriteUntilKilled),
}

/// Runs a study.
pub fn run(arguments: &StudyArguments) -> Result<()> {
    match &arguments.study {
        Study::Cache(arguments) => cache::run(arguments),
        Study::Compression(arguments) => compression::run(arguments),
        Study::Dictionary(arguments) => dictionary::run(arguments),
        Study::Flashield(arguments) => flashield::run(arguments),
        Study::Memcached(arguments) => memcached::run(arguments),
        Study::Outage(arguments) => outage::run(arguments),
        Study::Proxy(arguments) => proxy::run(arguments),
        Study::Replay(arguments) => replay::run(arguments),
        Study::Volume(arguments) => volume::run(arguments),
        Study::StoreProcess(arguments) => arguments.run(),
        Study::WriteUntilKilled(arguments) => arguments.run(),
    }
}
