//! Options of the handshake: bytes to requests.

use super::wire;
use crate::limits::{META_QUERIES_MAX, STRING_BYTES_MAX};

/// A client's option in the handshake.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum OptionRequest<'a> {
    ExportName(&'a str),
    Abort,
    List,
    StartTls,
    Info(InfoRequest<'a>),
    Go(InfoRequest<'a>),
    StructuredReply,
    ListMetaContext(MetaRequest<'a>),
    SetMetaContext(MetaRequest<'a>),
}

/// An export, and the properties to report beside its size.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InfoRequest<'a> {
    pub name: &'a str,
    pub wants_name: bool,
    pub wants_description: bool,
    pub wants_block_size: bool,
}

/// An export, and whether its queries find `base:allocation`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MetaRequest<'a> {
    pub name: &'a str,
    pub queries: u32,
    /// A query is `base:allocation`.
    pub finds_allocation: bool,
    /// A query is `base:`, which lists all contexts of the namespace and selects none.
    pub finds_namespace: bool,
}

/// The reason why an option is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum OptionError {
    Unsupported = (1 << 31) + 1,
    Policy = (1 << 31) + 2,
    Invalid = (1 << 31) + 3,
    Platform = (1 << 31) + 4,
    TlsRequired = (1 << 31) + 5,
    Unknown = (1 << 31) + 6,
    Shutdown = (1 << 31) + 7,
    TooBig = (1 << 31) + 9,
}

impl<'a> OptionRequest<'a> {
    /// Decodes an option's data.
    pub fn decode(option: u32, data: &'a [u8]) -> Result<Self, OptionError> {
        let without_data = |request| if data.is_empty() { Ok(request) } else { Err(OptionError::Invalid) };
        match option {
            wire::OPT_EXPORT_NAME => string(data).map(Self::ExportName),
            // The data of ABORT is ignored.
            wire::OPT_ABORT => Ok(Self::Abort),
            wire::OPT_LIST => without_data(Self::List),
            wire::OPT_STARTTLS => without_data(Self::StartTls),
            wire::OPT_INFO => InfoRequest::decode(data).map(Self::Info),
            wire::OPT_GO => InfoRequest::decode(data).map(Self::Go),
            wire::OPT_STRUCTURED_REPLY => without_data(Self::StructuredReply),
            wire::OPT_LIST_META_CONTEXT => MetaRequest::decode(data).map(Self::ListMetaContext),
            wire::OPT_SET_META_CONTEXT => MetaRequest::decode(data).map(Self::SetMetaContext),
            _ => Err(OptionError::Unsupported),
        }
    }
}

impl<'a> InfoRequest<'a> {
    fn decode(data: &'a [u8]) -> Result<Self, OptionError> {
        let mut data = Fields(data);
        let name = data.string()?;
        let count = data.u16()?;
        if data.0.len() != 2 * usize::from(count) {
            return Err(OptionError::Invalid);
        }
        let mut request = Self { name, wants_name: false, wants_description: false, wants_block_size: false };
        for _ in 0..count {
            match data.u16()? {
                wire::INFO_NAME => request.wants_name = true,
                wire::INFO_DESCRIPTION => request.wants_description = true,
                wire::INFO_BLOCK_SIZE => request.wants_block_size = true,
                // Properties that every answer has, and unknown ones.
                _ => {}
            }
        }
        Ok(request)
    }
}

impl<'a> MetaRequest<'a> {
    fn decode(data: &'a [u8]) -> Result<Self, OptionError> {
        let mut data = Fields(data);
        let name = data.string()?;
        let queries = data.u32()?;
        // Each query has its length in front.
        if queries as usize > data.0.len() / 4 {
            return Err(OptionError::Invalid);
        }
        if queries > META_QUERIES_MAX {
            return Err(OptionError::TooBig);
        }
        let mut request = Self { name, queries, finds_allocation: false, finds_namespace: false };
        for _ in 0..queries {
            match data.string()? {
                "base:allocation" => request.finds_allocation = true,
                "base:" => request.finds_namespace = true,
                query if query.contains(':') => {}
                _ => return Err(OptionError::Invalid),
            }
        }
        if data.0.is_empty() { Ok(request) } else { Err(OptionError::Invalid) }
    }
}

/// A string of the protocol: UTF-8 without NUL, of bounded length.
fn string(bytes: &[u8]) -> Result<&str, OptionError> {
    if bytes.len() > STRING_BYTES_MAX {
        return Err(OptionError::TooBig);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| OptionError::Invalid)?;
    if text.contains('\0') { Err(OptionError::Invalid) } else { Ok(text) }
}

/// Data that is read from its front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], OptionError> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or(OptionError::Invalid)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn u16(&mut self) -> Result<u16, OptionError> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, OptionError> {
        self.bytes(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn string(&mut self) -> Result<&'a str, OptionError> {
        let len = usize::try_from(self.u32()?).map_err(|_| OptionError::Invalid)?;
        string(self.bytes(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A string with its length in front.
    fn with_length(text: &[u8]) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes()[..], text].concat()
    }

    fn meta(name: &str, queries: &[&str]) -> Vec<u8> {
        let mut data = with_length(name.as_bytes());
        data.extend((queries.len() as u32).to_be_bytes());
        queries.iter().for_each(|query| data.extend(with_length(query.as_bytes())));
        data
    }

    #[test]
    fn go_says_what_it_wants() {
        let data = [&with_length(b"disk")[..], &[0, 3, 0, 3, 0, 1, 0, 99]].concat();
        let Ok(OptionRequest::Go(request)) = OptionRequest::decode(wire::OPT_GO, &data) else { panic!() };
        let expected =
            InfoRequest { name: "disk", wants_name: true, wants_description: false, wants_block_size: true };
        assert_eq!(request, expected);
    }

    #[test]
    fn lengths_that_do_not_add_up_are_invalid() {
        let whole = [&with_length(b"disk")[..], &[0, 1, 0, 3]].concat();
        for len in 0..whole.len() {
            let decoded = OptionRequest::decode(wire::OPT_INFO, &whole[..len]);
            assert_eq!(decoded, Err(OptionError::Invalid), "{len} bytes");
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(OptionRequest::decode(wire::OPT_INFO, &longer), Err(OptionError::Invalid));
        let whole = meta("disk", &["base:allocation", "x-other:one"]);
        for len in 0..whole.len() {
            let decoded = OptionRequest::decode(wire::OPT_SET_META_CONTEXT, &whole[..len]);
            assert_eq!(decoded, Err(OptionError::Invalid), "{len} bytes");
        }
        assert!(OptionRequest::decode(wire::OPT_SET_META_CONTEXT, &whole).is_ok());
    }

    #[test]
    fn queries_find_contexts() {
        let found = |queries: &[&str]| {
            let data = meta("", queries);
            match OptionRequest::decode(wire::OPT_LIST_META_CONTEXT, &data) {
                Ok(OptionRequest::ListMetaContext(request)) => {
                    Ok((request.finds_allocation, request.finds_namespace))
                }
                other => Err(format!("{other:?}")),
            }
        };
        assert_eq!(found(&[]), Ok((false, false)));
        assert_eq!(found(&["base:allocation"]), Ok((true, false)));
        assert_eq!(found(&["qemu:dirty-bitmap:x", "base:"]), Ok((false, true)));
        assert_eq!(found(&["base:other", "x-a:b"]), Ok((false, false)));
        assert_eq!(found(&["nocolon"]), Err("Err(Invalid)".to_owned()));
    }

    #[test]
    fn names_are_bounded_text() {
        let name = |bytes: &[u8]| OptionRequest::decode(wire::OPT_EXPORT_NAME, bytes).map(|_| ());
        assert_eq!(name(&[b'n'; STRING_BYTES_MAX]), Ok(()));
        assert_eq!(name(&[b'n'; STRING_BYTES_MAX + 1]), Err(OptionError::TooBig));
        assert_eq!(name(b"\xFF"), Err(OptionError::Invalid));
        assert_eq!(name(b"a\0b"), Err(OptionError::Invalid));
    }

    #[test]
    fn options_without_data_refuse_data() {
        for option in [wire::OPT_LIST, wire::OPT_STARTTLS, wire::OPT_STRUCTURED_REPLY] {
            assert!(OptionRequest::decode(option, &[]).is_ok());
            assert_eq!(OptionRequest::decode(option, &[0]), Err(OptionError::Invalid));
        }
        assert_eq!(OptionRequest::decode(wire::OPT_ABORT, &[1, 2]), Ok(OptionRequest::Abort));
        for unknown in [0, 4, 11, 12, u32::MAX] {
            assert_eq!(OptionRequest::decode(unknown, &[1]), Err(OptionError::Unsupported));
        }
    }
}
