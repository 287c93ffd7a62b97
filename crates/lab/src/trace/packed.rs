//! Files packed with gzip or xz, detected by their first bytes.

use super::TraceError;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const XZ: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// KiB of RAM that unpacking may take: `xz -9` takes 64 MiB, but a file may demand 4 GiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;
const BUFFER: usize = 64 << 10;

/// The bytes of a file, unpacked.
pub(super) type Bytes = BufReader<Box<dyn Read + Send>>;

/// Opens a file, to be unpacked while it is read if it is packed.
pub(super) fn open(path: &Path) -> Result<Bytes, TraceError> {
    let file = File::open(path).map_err(TraceError::read(path))?;
    unpack(path, BufReader::with_capacity(BUFFER, file))
}

/// Unpacks bytes if they are packed. `path` is for errors.
pub(super) fn unpack(path: &Path, mut file: impl BufRead + Send + 'static) -> Result<Bytes, TraceError> {
    let head = file.fill_buf().map_err(TraceError::read(path))?;
    let bytes: Box<dyn Read + Send> = if head.starts_with(&GZIP) {
        Box::new(MultiGzDecoder::new(file))
    } else if head.starts_with(&XZ) {
        Box::new(XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB))
    } else if head.starts_with(&ZSTD) {
        return Err(TraceError::file(path, "packed with zstd, which is not read here: unpack it (zstd -d)"));
    } else {
        Box::new(file)
    };
    Ok(BufReader::with_capacity(BUFFER, bytes))
}
