//! The protocol's part of [`crate::fuzzing`].

use super::options::OptionRequest;
use super::request::Request;
use super::target::Target;
use super::wire;
use crate::export::Command;
use crate::limits::{PAYLOAD_BYTES_MAX, STRING_BYTES_MAX};

/// Options: the first byte is the number, the rest the data.
pub fn options(data: &[u8]) {
    let Some((option, data)) = data.split_first() else { return };
    let decoded = OptionRequest::decode(u32::from(*option), data);
    let name = match &decoded {
        Ok(OptionRequest::ExportName(name)) => name,
        Ok(OptionRequest::Info(request) | OptionRequest::Go(request)) => request.name,
        Ok(OptionRequest::ListMetaContext(request) | OptionRequest::SetMetaContext(request)) => request.name,
        _ => return,
    };
    assert!(name.len() <= STRING_BYTES_MAX && !name.contains('\0'));
    // Truncated data must not decode.
    if *option as u32 != wire::OPT_EXPORT_NAME {
        assert!(OptionRequest::decode(u32::from(*option), &data[..data.len() - 1]).is_err());
    }
}

/// Requests: a decoded command lies within the export and is allowed there.
pub fn request(data: &[u8]) {
    let Some((properties, data)) = data.split_first() else { return };
    let Some(header) = data.first_chunk() else { return };
    let Some(request) = Request::decode(header) else { return };
    let has = |bit: u8| properties & bit != 0;
    let size = u64::from(u32::from_be_bytes([header[16], header[17], 0, 0])) << (properties >> 4);
    let target = Target {
        size,
        read_only: has(1),
        minimum_block: if has(2) { 512 } else { 1 },
        preferred_block: 4096,
        structured: has(4),
        allocation: has(8),
    };
    let Ok(command) = request.command(&target) else { return };
    let within = |offset: u64, len: u32| {
        assert!(u128::from(offset) + u128::from(len) <= u128::from(size), "beyond the end");
        let mask = u64::from(target.minimum_block) - 1;
        assert!(offset & mask == 0 && u64::from(len) & mask == 0, "not aligned");
    };
    match command {
        Command::Read { offset, len } => {
            within(offset, len);
            assert!(len <= PAYLOAD_BYTES_MAX);
        }
        Command::Write { offset, .. } => {
            within(offset, request.len);
            assert!(!target.read_only && request.len <= PAYLOAD_BYTES_MAX);
        }
        Command::Trim { offset, len, .. } | Command::WriteZeroes { offset, len, .. } => {
            within(offset, len);
            assert!(!target.read_only);
        }
        Command::Cache { offset, len } => within(offset, len),
        Command::BlockStatus { offset, len, .. } => {
            within(offset, len);
            assert!(target.allocation && len > 0);
        }
        Command::Flush => assert_eq!((request.offset, request.len), (0, 0)),
    }
}
