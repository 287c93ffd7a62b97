//! A client's messages and the replies, byte by byte; written from the specification, independent of the server's
//! encoder.

pub const FIXED_NEWSTYLE: u32 = 1;
pub const NO_ZEROES: u32 = 2;

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const STARTTLS: u32 = 5;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const STRUCTURED_REPLY: u32 = 8;
pub const LIST_META_CONTEXT: u32 = 9;
pub const SET_META_CONTEXT: u32 = 10;

pub const ACK: u32 = 1;
pub const ERR_UNSUP: u32 = 0x8000_0001;
pub const ERR_POLICY: u32 = 0x8000_0002;
pub const ERR_INVALID: u32 = 0x8000_0003;
pub const ERR_TLS_REQD: u32 = 0x8000_0005;
pub const ERR_UNKNOWN: u32 = 0x8000_0006;
pub const ERR_SHUTDOWN: u32 = 0x8000_0007;
pub const ERR_TOO_BIG: u32 = 0x8000_0009;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const DF: u16 = 4;
pub const REQ_ONE: u16 = 8;
pub const FAST_ZERO: u16 = 16;

pub const EPERM: u32 = 1;
pub const EIO: u32 = 5;
pub const ENOMEM: u32 = 12;
pub const EINVAL: u32 = 22;
pub const ENOSPC: u32 = 28;
pub const EOVERFLOW: u32 = 75;
pub const ENOTSUP: u32 = 95;
pub const ESHUTDOWN: u32 = 108;

/// The server's greeting.
pub const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\x00\x03";

pub fn flags(flags: u32) -> Vec<u8> {
    flags.to_be_bytes().to_vec()
}

pub fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"IHAVEOPT".to_vec();
    bytes.extend(option.to_be_bytes());
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// A text with its length in front.
pub fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
}

/// The data of INFO and GO.
pub fn info(name: &str, wanted: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((wanted.len() as u16).to_be_bytes());
    wanted.iter().for_each(|info| data.extend(info.to_be_bytes()));
    data
}

/// The data of LIST_META_CONTEXT and SET_META_CONTEXT.
pub fn meta(name: &str, queries: &[&str]) -> Vec<u8> {
    let mut data = string(name);
    data.extend((queries.len() as u32).to_be_bytes());
    queries.iter().for_each(|query| data.extend(string(query)));
    data
}

/// A handshake that ends in transmission.
pub fn handshake(name: &str, structured: bool) -> Vec<u8> {
    let mut bytes = flags(FIXED_NEWSTYLE | NO_ZEROES);
    if structured {
        bytes.extend(option(STRUCTURED_REPLY, &[]));
        bytes.extend(option(SET_META_CONTEXT, &meta(name, &["base:allocation"])));
    }
    bytes.extend(option(GO, &info(name, &[])));
    bytes
}

pub fn request(flags: u16, kind: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

pub fn write(flags: u16, cookie: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    [&request(flags, WRITE, cookie, offset, data.len() as u32)[..], data].concat()
}

/// Bytes that are taken from their front.
pub struct Heard<'a>(pub &'a [u8]);

impl<'a> Heard<'a> {
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at_checked(len).expect("as many bytes were heard");
        self.0 = rest;
        bytes
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.bytes(2).try_into().unwrap())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.bytes(8).try_into().unwrap())
    }

    /// A reply to an option: its type and data.
    pub fn option_reply(&mut self, option: u32) -> (u32, &'a [u8]) {
        assert_eq!(self.u64(), 0x0003_e889_0455_65a9);
        assert_eq!(self.u32(), option);
        let kind = self.u32();
        let len = self.u32() as usize;
        (kind, self.bytes(len))
    }

    /// A simple reply: its error and cookie.
    pub fn simple(&mut self) -> (u32, u64) {
        assert_eq!(self.u32(), 0x6744_6698);
        (self.u32(), self.u64())
    }

    /// A chunk: its flags, type, cookie and payload.
    pub fn chunk(&mut self) -> (u16, u16, u64, &'a [u8]) {
        assert_eq!(self.u32(), 0x668e_33ef);
        let (flags, kind, cookie, len) = (self.u16(), self.u16(), self.u64(), self.u32() as usize);
        (flags, kind, cookie, self.bytes(len))
    }

    /// A reply to a command without data, simple or structured: its error and cookie.
    pub fn outcome(&mut self) -> (u32, u64) {
        if self.0.starts_with(&0x6744_6698_u32.to_be_bytes()) {
            return self.simple();
        }
        let (flags, kind, cookie, payload) = self.chunk();
        assert_eq!(flags, 1, "the only chunk is the last");
        if kind == 0 {
            return (0, cookie);
        }
        assert_eq!(kind, 0x8001);
        let mut payload = Heard(payload);
        let (error, len) = (payload.u32(), payload.u16() as usize);
        std::str::from_utf8(payload.bytes(len)).expect("messages are text");
        assert!(payload.0.is_empty());
        (error, cookie)
    }
}
