//! A client of the server's volumes: one request at a time.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const FUA: u16 = 1;

pub struct Client {
    stream: TcpStream,
    size: u64,
}

impl Client {
    /// A client of `HOST:PORT`'s volume of that name.
    pub fn new(address: &str, volume: &str) -> Self {
        let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed newstyle, no zeroes; then NBD_OPT_EXPORT_NAME.
        let mut hello = 3_u32.to_be_bytes().to_vec();
        hello.extend(b"IHAVEOPT");
        hello.extend(1_u32.to_be_bytes());
        hello.extend((volume.len() as u32).to_be_bytes());
        hello.extend(volume.as_bytes());
        stream.write_all(&hello).unwrap();
        let mut export = [0; 10];
        stream.read_exact(&mut export).unwrap_or_else(|why| panic!("no volume {volume}: {why}"));
        Self { stream, size: u64::from_be_bytes(export[..8].try_into().unwrap()) }
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn read(&mut self, offset: u64, bytes: &mut [u8]) {
        self.ask(0, READ, offset, bytes.len(), &[]);
        self.stream.read_exact(bytes).unwrap();
    }

    pub fn write(&mut self, offset: u64, bytes: &[u8], is_durable: bool) {
        self.ask(if is_durable { FUA } else { 0 }, WRITE, offset, bytes.len(), bytes);
    }

    pub fn trim(&mut self, offset: u64, len: usize) {
        self.ask(0, TRIM, offset, len, &[]);
    }

    pub fn flush(&mut self) {
        self.ask(0, FLUSH, 0, 0, &[]);
    }

    fn ask(&mut self, flags: u16, kind: u16, offset: u64, len: usize, data: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend(7_u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend((len as u32).to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request).unwrap();
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).unwrap();
        let number = |at: usize| u32::from_be_bytes(reply[at..at + 4].try_into().unwrap());
        assert_eq!((number(0), number(4)), (0x6744_6698, 0), "request {kind} at {offset}, {len} bytes");
    }
}
