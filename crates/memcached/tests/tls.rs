//! TLS, with a current client: pymemcache over Python's ssl.

mod common;

use common::options;
use granary_memcached::{Server, ServerConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const PYTHON: &str = r#"
import socket, ssl, sys
from pymemcache.client.base import Client
host, port = sys.argv[1].split(":")
trusting = ssl.create_default_context(cafile=sys.argv[2])
client = Client((host, int(port)), tls_context=trusting, timeout=20)
long = b"long value " * 80_000
assert client.set("a", b"1", noreply=False) and client.get("a") == b"1"
assert client.set("long", long, noreply=False) and client.get("long") == long
assert client.set_many({f"k{i}": b"v" * i for i in range(2000)}, noreply=False) == []
assert client.get_many([f"k{i}" for i in range(2000)]) == {f"k{i}": b"v" * i for i in range(2000)}
# More replies than the socket holds, taken late.
raw = trusting.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host)
raw.sendall(b"get long\r\n" * 20)
taken = 0
while taken < 20 * len(long):
    taken += len(raw.recv(1 << 16))
raw.close()
# An end is told from a connection that was cut off, by those who ask for that: by default Python ignores it
# (SSL_OP_IGNORE_UNEXPECTED_EOF, which has no name in Python 3.11).
careful = ssl.create_default_context(cafile=sys.argv[2])
careful.options &= ~0x80
raw = careful.wrap_socket(
    socket.create_connection((host, int(port)), timeout=20), server_hostname=host, suppress_ragged_eofs=False
)
raw.sendall(b"quit\r\n")
assert raw.recv(1) == b""
# Whoever does not speak TLS gets nothing.
plain = socket.create_connection((host, int(port)), timeout=20)
plain.sendall(b"get a\r\n")
assert b"VALUE" not in plain.recv(4096)
try:
    ssl.create_default_context().wrap_socket(socket.create_connection((host, int(port))), server_hostname=host)
    raise SystemExit("nobody vouches for that certificate")
except ssl.SSLCertVerificationError:
    pass
assert client.get("a") == b"1"
print("fine")
"#;

fn certificate(folder: &Path) -> Arc<ServerConfig> {
    let made = Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(' '))
        .args(["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder)
        .output()
        .expect("openssl is installed: scripts/install-test-servers.sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let chain = vec![CertificateDer::from_pem_file(folder.join("certificate.pem")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap())
}

#[test]
fn clients_speak_tls_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.tls = Some(certificate(folder.path()));
    let server = Server::start(&options).unwrap();
    let output = Command::new("/usr/bin/python3")
        .args(["-c", PYTHON, &server.address().to_string()])
        .arg(folder.path().join("certificate.pem"))
        .output()
        .expect("python3 is installed: scripts/install-test-servers.sh");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}{}", String::from_utf8_lossy(&output.stdout));
    server.stop().unwrap();
}
