//! The map as it was at one moment, in a file.

use crate::map::{Map, Place};
use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub instance: u64,
    pub block_size: u32,
    pub blocks: u64,
    /// Everything in segments before this one is contained.
    pub sequence: u64,
}

pub(crate) enum Read {
    Absent,
    Damaged,
    Whole(Whole),
}

pub(crate) struct Whole {
    header: Header,
    bytes: Vec<u8>,
}

const MAGIC: &[u8; 8] = b"GRVMAP01";

pub(crate) fn write(
    path: &Path,
    header: Header,
    map: &dyn Map,
    before_rename: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = MAGIC.to_vec();
    for number in [header.instance, header.block_size.into(), header.blocks, header.sequence] {
        bytes.extend(number.to_le_bytes());
    }
    let mut next = map.next_mapped(0);
    while let Some((lba, place)) = next {
        bytes.extend(lba.to_le_bytes());
        bytes.extend(place.raw().to_le_bytes());
        next = map.next_mapped(lba + 1);
    }
    let sum = xxh3_64(&bytes);
    bytes.extend(sum.to_le_bytes());
    let new = path.with_extension("map.new");
    let mut file = File::create(&new)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    before_rename()?;
    std::fs::rename(&new, path)?;
    File::open(path.parent().expect("a file lies in a folder"))?.sync_all()
}

pub(crate) fn read(path: &Path) -> io::Result<Read> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Absent),
        opened => opened?.read_to_end(&mut bytes)?,
    };
    if bytes.len() < 48 || &bytes[..8] != MAGIC {
        return Ok(Read::Damaged);
    }
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let end = bytes.len() - 8;
    if u64_at(end) != xxh3_64(&bytes[..end]) {
        return Ok(Read::Damaged);
    }
    let header =
        Header { instance: u64_at(8), block_size: u64_at(16) as u32, blocks: u64_at(24), sequence: u64_at(32) };
    bytes.truncate(end);
    Ok(Read::Whole(Whole { header, bytes }))
}

impl Whole {
    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn apply(self, map: &mut dyn Map) -> io::Result<()> {
        for entry in self.bytes[40..].as_chunks::<12>().0 {
            let (lba, place) = entry.split_at(8);
            let lba = u64::from_le_bytes(lba.try_into().expect("8 bytes"));
            let place = u32::from_le_bytes(place.try_into().expect("4 bytes"));
            if let Some(place) = Place::from_raw(place).filter(|_| lba < map.blocks()) {
                map.set(lba, place);
            }
        }
        Ok(())
    }
}
