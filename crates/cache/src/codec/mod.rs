//! Values compressed one by one, with dictionaries trained on the values before them.
//!
//! A value is compressed when it is put and decompressed when it is handed out: in between, in RAM, write buffers, on
//! flash and when segments are reclaimed, everybody moves the stored bytes. What those begin with is in `stored.rs`,
//! the dictionaries and their file in `versions.rs`, when one is trained in `training.rs`.

mod decode;
mod encode;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod measuring;
mod stored;
mod training;
mod versions;

pub(crate) use decode::Decoder;
pub(crate) use encode::Encoded;
pub use measuring::ValueCodec;
pub(crate) use stored::{CODEC_MASK, Codec, StoredValue};
pub use stored::{Compression, OwnedValue};
pub(crate) use versions::{VersionUser, VersionUses, path_of};

use crate::limits::{
    COMPRESSED_VALUE_BYTES_MAX, COMPRESSED_VALUE_BYTES_MIN, DICTIONARY_BYTES_MAX, LZ4_DICTIONARY_BYTES,
    SPARE_DECODERS_MAX,
};
use crate::stats::Stats;
use encode::Encoders;
use granary_log::sync::sync::atomic::{AtomicU64, Ordering};
use granary_log::sync::sync::{Arc, Mutex, Weak};
use granary_log::sync::thread::{self, JoinHandle};
use std::ops::Deref;
use std::path::PathBuf;
use training::Training;
use versions::Versions;

/// What a cache compresses with. All its partitions share it.
pub(crate) struct Codecs {
    compression: Compression,
    versions: Arc<Versions>,
    encoders: Encoders,
    decoders: Mutex<Vec<Decoder>>,
    training: Mutex<Training>,
    users: Mutex<Vec<Weak<dyn VersionUser>>>,
    /// The thread that trains, or has trained.
    trainer: Mutex<Option<JoinHandle<()>>>,
    counters: CodecCounters,
}

/// The codecs of one cache, which owns them: dropping this waits for the thread that trains a dictionary.
pub(crate) struct OwnCodecs(Arc<Codecs>);

impl OwnCodecs {
    /// See [`Codecs::open`].
    pub fn open(compression: Compression, path: Option<PathBuf>) -> Self {
        Self(Arc::new(Codecs::open(compression, path)))
    }
}

impl Deref for OwnCodecs {
    type Target = Arc<Codecs>;

    fn deref(&self) -> &Arc<Codecs> {
        &self.0
    }
}

impl Drop for OwnCodecs {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Counters of compressed values and trained dictionaries.
#[derive(Default)]
struct CodecCounters {
    /// Bytes of values that were put, as they came and as they are kept.
    raw_bytes: AtomicU64,
    kept_bytes: AtomicU64,
    /// Dictionaries trained.
    trainings: AtomicU64,
    /// Values that could not be decompressed.
    undecodable: AtomicU64,
}

impl Codecs {
    /// With the dictionaries that a file has; `None`: they live in RAM only.
    fn open(compression: Compression, path: Option<PathBuf>) -> Self {
        let versions = Arc::new(Versions::open(path));
        let training = if versions.len() == 0 { Training::default() } else { Training::watching() };
        Self {
            compression,
            versions,
            encoders: Encoders::default(),
            decoders: Mutex::default(),
            training: Mutex::new(training),
            users: Mutex::default(),
            trainer: Mutex::default(),
            counters: CodecCounters::default(),
        }
    }

    /// Whether values are compressed. Those that are may be there in any case.
    pub fn compresses(&self) -> bool {
        self.compression != Compression::None
    }

    /// Compresses a value into `encoded`, if that saves enough.
    pub fn encode<'a>(&self, value: &'a [u8], encoded: &'a mut Encoded) -> StoredValue<'a> {
        let (raw, range) = (value.len(), COMPRESSED_VALUE_BYTES_MIN..=COMPRESSED_VALUE_BYTES_MAX);
        let stored = match range.contains(&raw) {
            true => self.encoders.encode(self.compression, self.versions.current(), value, encoded),
            false => StoredValue::raw(value),
        };
        self.counters.raw_bytes.fetch_add(raw as u64, Ordering::Relaxed);
        self.counters.kept_bytes.fetch_add(stored.bytes.len() as u64, Ordering::Relaxed);
        stored
    }

    /// Learns from values that were put, each with the number of bytes that are kept of it, and trains a dictionary on a
    /// thread of its own when it is time for one.
    pub fn learn<'a>(self: &Arc<Self>, values: impl Iterator<Item = (&'a [u8], usize)>) {
        // Whoever finds another at it leaves it to that.
        let Ok(mut training) = self.training.try_lock() else { return };
        for (value, kept) in values {
            training.note(value, kept);
        }
        if let Some(samples) = training.samples_to_train_on() {
            drop(training);
            let codecs = Arc::clone(self);
            let train = move || {
                codecs.train(&samples);
                codecs.training.lock().expect("no panic under the lock").has_trained();
            };
            let mut trainer = self.trainer.lock().expect("no panic under the lock");
            if let Some(before) = trainer.take() {
                // It has told that it is done.
                let _ = before.join();
            }
            *trainer = thread::Builder::new().name("granary-train".into()).spawn(train).ok();
        }
    }

    fn train(&self, samples: &training::Samples) {
        let bytes_max = match self.compression {
            Compression::Lz4 => LZ4_DICTIONARY_BYTES,
            Compression::Zstd | Compression::None => DICTIONARY_BYTES_MAX,
        };
        let Some(dictionary) = samples.train(bytes_max) else {
            tracing::debug!("too few values, or too different ones, for a dictionary");
            return;
        };
        match self.versions.add(dictionary) {
            Ok(()) => {
                self.counters.trainings.fetch_add(1, Ordering::Relaxed);
                self.retire();
            }
            Err(error) => {
                tracing::warn!(%error, "a dictionary for compression cannot be written: the one before stays")
            }
        }
    }

    /// A decoder, to be given back.
    pub fn decoder(&self) -> Decoder {
        let spare = self.decoders.lock().expect("no panic under the lock").pop();
        spare.unwrap_or_default()
    }

    pub fn take_back(&self, decoder: Decoder) {
        let mut spare = self.decoders.lock().expect("no panic under the lock");
        if spare.len() < SPARE_DECODERS_MAX {
            spare.push(decoder);
        }
    }

    /// The value of stored bytes; `None`: they cannot be decompressed, which is counted.
    pub fn decode<'a>(&self, stored: StoredValue<'a>, decoder: &'a mut Decoder) -> Option<&'a [u8]> {
        let value = decoder.decode(stored, &self.versions);
        if value.is_none() {
            self.counters.undecodable.fetch_add(1, Ordering::Relaxed);
        }
        value
    }

    /// Forgets the dictionaries that no user needs any more.
    fn retire(&self) {
        let users = self.users.lock().expect("no panic under the lock").clone();
        let is_used = |version| users.iter().filter_map(Weak::upgrade).any(|user| user.uses(version));
        if let Err(error) = self.versions.retire(is_used) {
            tracing::warn!(%error, "the file of dictionaries for compression cannot be written");
        }
    }

    /// The numbers of the dictionaries, oldest first.
    pub fn ids(&self) -> Vec<u32> {
        self.versions.ids()
    }

    /// From now on somebody keeps values that were compressed here.
    pub fn add_user(&self, user: Weak<dyn VersionUser>) {
        self.users.lock().expect("no panic under the lock").push(user);
    }

    /// Adds what it did and takes.
    pub fn add_to(&self, stats: &mut Stats) {
        let CodecCounters { raw_bytes, kept_bytes, trainings, undecodable } = &self.counters;
        stats.value_bytes_raw += raw_bytes.load(Ordering::Relaxed);
        stats.value_bytes_kept += kept_bytes.load(Ordering::Relaxed);
        stats.codec_trainings += trainings.load(Ordering::Relaxed);
        stats.values_undecodable += undecodable.load(Ordering::Relaxed);
        stats.codec_versions += self.versions.len() as u64;
        stats.codec_bytes += self.bytes_allocated() as u64;
    }

    /// Bytes of RAM that dictionaries, contexts and samples take.
    fn bytes_allocated(&self) -> usize {
        let decoders = self.decoders.lock().expect("no panic under the lock");
        let training = self.training.lock().expect("no panic under the lock");
        let contexts = decoders.iter().map(Decoder::bytes_allocated).sum::<usize>();
        self.versions.bytes_allocated()
            + self.encoders.bytes_allocated()
            + contexts
            + training.bytes_allocated()
    }

    /// Waits for the thread that trains.
    fn end(&self) {
        let trainer = self.trainer.lock().expect("no panic under the lock").take();
        if let Some(trainer) = trainer {
            // A panic was printed by its thread.
            let _ = trainer.join();
        }
    }
}
