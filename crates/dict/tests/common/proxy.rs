//! A proxy before a server, which can fall silent.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub struct Proxy {
    pub port: u16,
    /// Connections made before this one get nothing more, in either direction.
    silenced: Arc<AtomicU64>,
    accepted: Arc<AtomicU64>,
}

impl Proxy {
    /// Before the server on a port.
    pub fn before(port: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy {
            port: listener.local_addr().unwrap().port(),
            silenced: Arc::default(),
            accepted: Arc::default(),
        };
        let (silenced, accepted) = (Arc::clone(&proxy.silenced), Arc::clone(&proxy.accepted));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                let number = accepted.fetch_add(1, Ordering::SeqCst);
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let silenced = Arc::clone(&silenced);
                    thread::spawn(move || forward(from, to, || number < silenced.load(Ordering::SeqCst)));
                }
            }
        });
        proxy
    }

    /// All existing connections stay, and get nothing more.
    pub fn fall_silent(&self) {
        self.silenced.store(self.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_silent: impl Fn() -> bool) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if !is_silent() && to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    if !is_silent() {
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}
