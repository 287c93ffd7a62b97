//! Detects the format of a file, and opens its requests.

use super::generate::{Scale, cachelib, clusters, twitter as clusters_of_twitter};
use super::lines::Lines;
use super::packed::{self, Bytes};
use super::read::{cache2k, cloud_physics, key_value, oracle_general, twitter, web};
use super::records::Records;
use super::{Label, Trace, TraceError};
use std::fmt;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `version,time,op,size,lbn`: block I/O.
    CloudPhysics,
    /// `time id size`: web objects.
    Web,
    /// Big-endian u32 keys.
    Cache2k,
    /// libCacheSim's records.
    OracleGeneral,
    /// Twitter's CSV.
    Twitter,
    /// Meta's key-value CSV.
    KeyValue,
    /// A folder with CacheLib's `config.json`, `pop.json` and `sizes.json`: a stream is drawn.
    CacheLib,
    /// Twitter's table of clusters, in Markdown: a stream is drawn.
    TwitterClusters,
}

impl Format {
    /// All formats, with their names on the command line.
    pub const ALL: [(Self, &str); 8] = [
        (Self::CloudPhysics, "cloudphysics"),
        (Self::Web, "web"),
        (Self::Cache2k, "cache2k"),
        (Self::OracleGeneral, "oracle-general"),
        (Self::Twitter, "twitter"),
        (Self::KeyValue, "key-value"),
        (Self::CacheLib, "cachelib"),
        (Self::TwitterClusters, "twitter-clusters"),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name) = Self::ALL.iter().find(|(format, _)| format == self).expect("all are there");
        f.pad(name)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found
            .map(|(format, _)| *format)
            .ok_or_else(|| format!("one of {} is wanted", Self::ALL.map(|(_, name)| name).join(", ")))
    }
}

/// A file or folder, and options for it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The file or folder.
    pub path: PathBuf,
    /// Its format; `None`: detected by name and contents.
    pub format: Option<Format>,
    /// The size of a drawn stream.
    pub scale: Scale,
    /// The cluster in Twitter's table.
    pub cluster: Option<u32>,
}

impl Trace {
    /// Opens a trace.
    pub fn open(source: &Source) -> Result<Self, TraceError> {
        let path = &source.path;
        let format = match source.format {
            Some(format) => format,
            None => guess(path)?,
        };
        match format {
            Format::CacheLib => cachelib::open(path, source.scale),
            Format::TwitterClusters => {
                let number = source.cluster.ok_or_else(|| {
                    TraceError::file(path, "a table of clusters: say which one (--cluster)")
                })?;
                Ok(clusters_of_twitter::open(clusters::read(path, number)?, source.scale))
            }
            recorded => Ok(Self::recorded(recorded, path, packed::open(path)?)),
        }
    }

    /// Requests of a recorded format, from unpacked bytes. `path` is for names and errors.
    pub(super) fn recorded(format: Format, path: &Path, bytes: Bytes) -> Self {
        let text =
            |bytes, parse| Self::new(name(path), Label::RealSized, Lines::new(path.into(), bytes, parse));
        match format {
            Format::CloudPhysics => text(bytes, boxed(cloud_physics::parse)),
            Format::Web => text(bytes, boxed(web::parse)),
            Format::Twitter => text(bytes, boxed(twitter::parse)),
            Format::KeyValue => text(bytes, boxed(key_value::parser())),
            Format::Cache2k => {
                let records = Records::new(path.into(), bytes, cache2k::parser());
                Self::new(name(path), Label::RealKeys, records)
            }
            Format::OracleGeneral => {
                let records = Records::new(path.into(), bytes, oracle_general::parse);
                Self::new(name(path), Label::RealSized, records)
            }
            Format::CacheLib | Format::TwitterClusters => unreachable!("these are drawn"),
        }
    }
}

type Parse = Box<dyn FnMut(&str) -> Result<super::lines::Line, String> + Send>;

fn boxed(parse: impl FnMut(&str) -> Result<super::lines::Line, String> + Send + 'static) -> Parse {
    Box::new(parse)
}

/// The name of a file up to its first dot.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Detects the format by name and contents.
fn guess(path: &Path) -> Result<Format, TraceError> {
    if path.is_dir() {
        return match path.join("config.json").exists() {
            true => Ok(Format::CacheLib),
            false => Err(TraceError::file(path, "a folder without config.json: not CacheLib's statistics")),
        };
    }
    guess_contents(path, &mut packed::open(path)?)
}

/// Detects a file's format by its name and its unpacked bytes.
pub(super) fn guess_contents(path: &Path, bytes: &mut Bytes) -> Result<Format, TraceError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if name.contains("oraclegeneral") {
        return Ok(Format::OracleGeneral);
    }
    let head = bytes.fill_buf().map_err(TraceError::read(path))?;
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let text = std::str::from_utf8(line).ok().map(str::trim).filter(|text| !text.contains('\0'));
    match text {
        Some(text) if text == cloud_physics::HEADING => Ok(Format::CloudPhysics),
        Some(text) if key_value::is_heading(text) => Ok(Format::KeyValue),
        Some(text) if web::parse(text).is_ok() => Ok(Format::Web),
        Some(text) if twitter::fits(text) => Ok(Format::Twitter),
        Some(text) if text.starts_with('|') && text.contains("cluster") => Ok(Format::TwitterClusters),
        None if name.contains(".trace") => Ok(Format::Cache2k),
        _ => {
            let names = Format::ALL.map(|(_, name)| name).join(", ");
            Err(TraceError::file(path, format!("not a format that is known at sight; give one of {names}")))
        }
    }
}
