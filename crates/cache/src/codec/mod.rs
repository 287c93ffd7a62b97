//! Values compressed one by one, with dictionaries trained on the values before them.
//!
//! A value is compressed when it is put and decompressed when it is handed out: in between, in RAM, write buffers, on
//! flash and when segments are reclaimed, all code moves the stored bytes. Their head is in `stored.rs`, the
//! dictionaries in `dictionaries.rs`, their file in `dictionary_file.rs`, when one is trained in `training.rs`. Each
//! application has dictionaries of its own.

mod decode;
mod dictionaries;
mod dictionary;
mod dictionary_file;
mod encode;
mod entries;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
mod measuring;
mod stored;
#[cfg(all(test, not(any(feature = "shuttle", miri))))]
mod tests;
mod training;

pub(crate) use decode::Decoder;
pub(crate) use dictionaries::{DictionaryUser, DictionaryUses};
pub(crate) use dictionary_file::{is_foreign, path_of};
pub use measuring::ValueCodec;
pub(crate) use stored::{CODEC_MASK, Codec, StoredValue};
pub use stored::{Compression, OwnedValue};

use crate::applications::Applications;
use crate::limits::{
    COMPRESSED_VALUE_BYTES_MAX, COMPRESSED_VALUE_BYTES_MIN, DICTIONARY_BYTES_MAX, LZ4_DICTIONARY_BYTES,
    SPARE_DECODERS_MAX,
};
use crate::stats::Stats;
use dictionaries::Dictionaries;
use dictionary_file::DictionaryFile;
use encode::{Encoded, Encoders};
use granary_log::sync::atomic::{AtomicU64, Ordering};
use granary_log::sync::thread::{self, JoinHandle};
use granary_log::sync::{Arc, Mutex, Weak};
use std::io;
use std::ops::Deref;
use std::path::Path;
use training::{Training, TrainingSamples};

/// The compression of a cache, shared by all its partitions.
pub(crate) struct Codecs {
    compression: Compression,
    applications: Applications,
    dictionaries: Dictionaries,
    encoders: Encoders,
    decoders: Mutex<Vec<Decoder>>,
    trainings: Mutex<Trainings>,
    users: Mutex<Vec<Weak<dyn DictionaryUser>>>,
    /// The thread that trains, or has trained.
    trainer: Mutex<Option<JoinHandle<()>>>,
    counters: CodecCounters,
}

/// The trainings of all applications, of which one runs at a time.
struct Trainings {
    of: Vec<Training>,
    /// Whether the thread that trains is running one of them.
    is_one_underway: bool,
}

/// The codecs of one cache, which owns them: dropping this waits for the thread that trains a dictionary.
pub(crate) struct OwnCodecs(Arc<Codecs>);

impl OwnCodecs {
    /// Codecs without dictionaries yet; later ones live in RAM only.
    pub fn in_memory(compression: Compression, applications: &Applications) -> Self {
        Self(Arc::new(Codecs::new(compression, applications, Dictionaries::in_memory())))
    }

    /// Codecs with the dictionaries of the file at `path`, which has number `number` ([`file_number`]).
    ///
    /// # Errors
    /// The file cannot be read, or was replaced by another one.
    pub fn open(
        compression: Compression,
        applications: &Applications,
        path: &Path,
        number: u64,
    ) -> io::Result<Self> {
        let dictionaries = Dictionaries::open(path, number)?;
        Ok(Self(Arc::new(Codecs::new(compression, applications, dictionaries))))
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
    /// Bytes of the values put, raw and as they are stored.
    raw_bytes: AtomicU64,
    kept_bytes: AtomicU64,
    /// Dictionaries trained.
    trainings: AtomicU64,
    /// Values that could not be decompressed.
    undecodable: AtomicU64,
}

impl Codecs {
    fn new(compression: Compression, applications: &Applications, dictionaries: Dictionaries) -> Self {
        let count = applications.count();
        let training = |i| Training::new(dictionaries.current(applications.number(i)).is_some(), count);
        let of = (0..count).map(training).collect();
        Self {
            compression,
            applications: applications.clone(),
            dictionaries,
            encoders: Encoders::default(),
            decoders: Mutex::default(),
            trainings: Mutex::new(Trainings { of, is_one_underway: false }),
            users: Mutex::default(),
            trainer: Mutex::default(),
            counters: CodecCounters::default(),
        }
    }

    /// Whether new values are compressed. Older compressed ones may be there in any case.
    pub fn compresses(&self) -> bool {
        self.compression != Compression::None
    }

    /// Compresses a value of this key into `encoded`, if that saves enough.
    pub fn encode<'a>(&self, key: &[u8], value: &'a [u8], encoded: &'a mut Encoded) -> StoredValue<'a> {
        let (raw, range) = (value.len(), COMPRESSED_VALUE_BYTES_MIN..=COMPRESSED_VALUE_BYTES_MAX);
        let stored = if range.contains(&raw) {
            let application = self.applications.number(self.applications.index_of(key));
            self.encoders.encode(self.compression, self.dictionaries.current(application), value, encoded)
        } else {
            StoredValue::raw(value)
        };
        self.counters.raw_bytes.fetch_add(raw as u64, Ordering::Relaxed);
        self.counters.kept_bytes.fetch_add(stored.bytes.len() as u64, Ordering::Relaxed);
        stored
    }

    /// Learns from values put, each with its key and its stored length, and trains a dictionary on a thread of its own
    /// when it is time for one.
    pub fn learn<'a>(self: &Arc<Self>, values: impl Iterator<Item = (&'a [u8], &'a [u8], usize)>) {
        // If another thread is learning, these values are skipped.
        let Ok(mut trainings) = self.trainings.try_lock() else { return };
        for (key, value, kept) in values {
            trainings.of[self.applications.index_of(key)].note(value, kept);
        }
        if trainings.is_one_underway {
            return;
        }
        let due = trainings.of.iter_mut().enumerate();
        let due =
            { due }.find_map(|(application, training)| Some((application, training.samples_to_train_on()?)));
        let Some((application, samples)) = due else { return };
        trainings.is_one_underway = true;
        drop(trainings);
        let codecs = Arc::clone(self);
        let train = move || {
            let has_dictionary = codecs.train(codecs.applications.number(application), &samples);
            codecs.has_trained(application, has_dictionary);
        };
        let mut trainer = self.trainer.lock().expect("no panic under the lock");
        if let Some(before) = trainer.take() {
            // The earlier thread has finished its training.
            let _ = before.join();
        }
        match thread::Builder::new().name("granary-train".into()).spawn(train) {
            Ok(handle) => *trainer = Some(handle),
            Err(error) => {
                tracing::warn!(%error, "no thread to train a dictionary for compression");
                self.has_trained(application, false);
            }
        }
    }

    fn has_trained(&self, application: usize, has_dictionary: bool) {
        let mut trainings = self.trainings.lock().expect("no panic under the lock");
        trainings.of[application].has_trained(has_dictionary);
        trainings.is_one_underway = false;
    }

    /// Trains a dictionary; returns whether one was added.
    fn train(&self, application: u64, samples: &TrainingSamples) -> bool {
        let bytes_max = match self.compression {
            Compression::Lz4 => LZ4_DICTIONARY_BYTES,
            Compression::Zstd | Compression::None => DICTIONARY_BYTES_MAX,
        };
        let Some(dictionary) = samples.train(bytes_max) else {
            tracing::debug!("too few values, or too different ones, for a dictionary");
            return false;
        };
        // Unused dictionaries make room for it.
        self.drop_unused();
        if let Err(error) = self.dictionaries.add(application, dictionary) {
            tracing::warn!(%error, "a dictionary for compression cannot be written: the one before stays");
            return false;
        }
        self.counters.trainings.fetch_add(1, Ordering::Relaxed);
        self.drop_unused();
        true
    }

    /// A decoder, to be given back.
    pub fn decoder(&self) -> Decoder {
        let spare = self.decoders.lock().expect("no panic under the lock").pop();
        spare.unwrap_or_default()
    }

    pub fn take_back(&self, mut decoder: Decoder) {
        decoder.shrink();
        let mut spare = self.decoders.lock().expect("no panic under the lock");
        if spare.len() < SPARE_DECODERS_MAX {
            spare.push(decoder);
        }
    }

    /// The value of stored bytes; `None`: they cannot be decompressed, which is counted.
    pub fn decode<'a>(&self, stored: StoredValue<'a>, decoder: &'a mut Decoder) -> Option<&'a [u8]> {
        let value = decoder.decode(stored, &self.dictionaries);
        if value.is_none() {
            self.counters.undecodable.fetch_add(1, Ordering::Relaxed);
        }
        value
    }

    /// Forgets the dictionaries that no user needs any more.
    fn drop_unused(&self) {
        let users = self.users.lock().expect("no panic under the lock").clone();
        // A user that is gone has closed its part of the cache, whose values remain.
        let is_used =
            |dictionary| users.iter().any(|user| user.upgrade().is_none_or(|user| user.uses(dictionary)));
        let applications: Vec<u64> =
            (0..self.applications.count()).map(|application| self.applications.number(application)).collect();
        if let Err(error) = self.dictionaries.drop_unused(&applications, is_used) {
            tracing::warn!(%error, "the file of dictionaries for compression cannot be written");
        }
    }

    /// The numbers of the dictionaries, oldest first.
    pub fn ids(&self) -> Vec<u32> {
        self.dictionaries.ids()
    }

    /// Adds a user that keeps values compressed here.
    pub fn add_user(&self, user: Weak<dyn DictionaryUser>) {
        self.users.lock().expect("no panic under the lock").push(user);
    }

    /// Adds the counters and sizes.
    pub fn add_to(&self, stats: &mut Stats) {
        let CodecCounters { raw_bytes, kept_bytes, trainings, undecodable } = &self.counters;
        stats.value_bytes_raw += raw_bytes.load(Ordering::Relaxed);
        stats.value_bytes_kept += kept_bytes.load(Ordering::Relaxed);
        stats.codec_trainings += trainings.load(Ordering::Relaxed);
        stats.values_undecodable += undecodable.load(Ordering::Relaxed);
        stats.codec_versions += self.dictionaries.len() as u64;
        stats.codec_bytes += self.bytes_allocated() as u64;
    }

    /// Bytes of RAM that dictionaries, contexts and samples take.
    fn bytes_allocated(&self) -> usize {
        let decoders = self.decoders.lock().expect("no panic under the lock");
        let trainings = self.trainings.lock().expect("no panic under the lock");
        let contexts = decoders.iter().map(Decoder::bytes_allocated).sum::<usize>();
        self.dictionaries.bytes_allocated()
            + self.encoders.bytes_allocated()
            + contexts
            + trainings.of.iter().map(Training::bytes_allocated).sum::<usize>()
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

/// The number of the file of dictionaries at a path, which the log depends on; 0: there is none. With a compression a
/// missing file is created.
///
/// # Errors
/// It cannot be read, or not be made.
pub(crate) fn file_number(path: &Path, compression: Compression) -> io::Result<(u64, bool)> {
    DictionaryFile::number_at(path, compression != Compression::None)
}
