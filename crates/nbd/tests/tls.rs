//! TLS with common clients, and invalid certificates.

mod common;

use common::bytes::*;
use common::programs::{attempt, run};
use common::serving::Serving;
use granary_nbd::{MemoryExport, Options, TlsError, tls_configuration};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An authority, a server and a client signed by it, and an unsigned client.
fn certificates(folder: &Path) {
    let openssl = |line: &str| run(folder, "openssl", &line.split(' ').collect::<Vec<_>>());
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    for authority in ["ca", "other"] {
        openssl(&format!(
            "req -x509 {key} -keyout {authority}-key.pem -out {authority}-cert.pem -subj /CN={authority} \
             -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign"
        ));
    }
    for (name, authority, usage) in
        [("server", "ca", "serverAuth"), ("client", "ca", "clientAuth"), ("stranger", "other", "clientAuth")]
    {
        openssl(&format!("req {key} -keyout {name}-key.pem -out {name}.csr -subj /CN={name}"));
        let extensions = format!(
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage={usage}\nbasicConstraints=critical,CA:FALSE\n\
             keyUsage=critical,digitalSignature\n"
        );
        std::fs::write(folder.join("extensions"), extensions).unwrap();
        openssl(&format!(
            "x509 -req -in {name}.csr -CA {authority}-cert.pem -CAkey {authority}-key.pem -CAcreateserial -days 2 \
             -extfile extensions -out {name}-cert.pem"
        ));
    }
    // Folders in the layout that GnuTLS's clients need.
    for (name, client) in [("nobody", None), ("known", Some("client")), ("unknown", Some("stranger"))] {
        let trusted = folder.join(name);
        std::fs::create_dir(&trusted).unwrap();
        std::fs::copy(folder.join("ca-cert.pem"), trusted.join("ca-cert.pem")).unwrap();
        for part in client.iter().flat_map(|_| ["cert", "key"]) {
            let from = folder.join(format!("{}-{part}.pem", client.unwrap()));
            std::fs::copy(from, trusted.join(format!("client-{part}.pem"))).unwrap();
        }
    }
}

fn serving(requires_tls: bool, checks_clients: bool) -> Serving {
    serving_with(requires_tls, checks_clients, |_| {})
}

/// A server whose options `change` adapts.
fn serving_with(requires_tls: bool, checks_clients: bool, change: impl FnOnce(&mut Options)) -> Serving {
    Serving::with(Arc::new(MemoryExport::new("disk", 8 << 20)), |options, folder| {
        certificates(folder);
        let of = |name: &str| folder.join(name);
        let authority = of("ca-cert.pem");
        let authority = checks_clients.then_some(authority.as_path());
        options.tls =
            Some(tls_configuration(&of("server-cert.pem"), &of("server-key.pem"), authority).unwrap());
        options.requires_tls = requires_tls;
        change(options);
    })
}

fn uri(serving: &Serving, folder: &str) -> String {
    let folder = serving.folder.path().join(folder);
    format!("nbds://localhost:{}/?tls-certificates={}", serving.port(), folder.display())
}

#[test]
fn tls_where_it_is_required() {
    let serving = serving(true, false);
    let folder = serving.folder.path();
    let info = run(folder, "nbdinfo", &[&uri(&serving, "nobody")]);
    assert!(info.contains("with TLS, using structured packets"), "{info}");
    let list = run(folder, "nbdinfo", &["--list", &uri(&serving, "nobody")]);
    assert!(list.contains("export=\"disk\""), "{list}");
    let (is_fine, _, errors) = attempt(folder, "nbdinfo", &[&serving.tcp()]);
    assert!(!is_fine && errors.contains("server replied with error to opt_go"), "{errors}");
    let (is_fine, _, _) = attempt(folder, "nbdinfo", &["--list", &serving.tcp()]);
    assert!(!is_fine, "a list was given without TLS");
    // Data, both ways and a lot of it.
    let bytes: Vec<u8> = (0..8_u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.join("image"), &bytes).unwrap();
    run(folder, "nbdcopy", &["--request-size=4194304", "image", &uri(&serving, "nobody")]);
    run(folder, "nbdcopy", &["--connections=4", &uri(&serving, "nobody"), "copy"]);
    assert!(std::fs::read(folder.join("copy")).unwrap() == bytes);
    let credentials = format!("tls-creds-x509,id=tls,dir={}/nobody,endpoint=client", folder.display());
    let disk = format!("driver=nbd,host=localhost,port={},tls-creds=tls,export=disk", serving.port());
    let io =
        ["--object", &credentials, "--image-opts", "-c", "write -P 9 0 1M", "-c", "read -P 9 0 1M", &disk];
    let printed = run(folder, "qemu-io", &io);
    assert!(!printed.contains("failed"), "{printed}");
}

#[test]
fn tls_where_it_is_offered() {
    let serving = serving(false, false);
    let folder = serving.folder.path();
    assert!(run(folder, "nbdinfo", &[&serving.tcp()]).contains("without TLS"));
    assert!(run(folder, "nbdinfo", &[&uri(&serving, "nobody")]).contains("with TLS"));
    // A client that uses TLS if it is offered.
    let script = r#"
import nbd, sys
h = nbd.NBD()
h.set_tls(nbd.TLS_ALLOW)
h.set_tls_verify_peer(False)
h.connect_tcp("localhost", sys.argv[1])
assert h.get_tls_negotiated() and h.get_structured_replies_negotiated()
h.pwrite(b"secret", 5)
assert h.pread(6, 5) == b"secret"
h.shutdown()
"#;
    run(folder, "/usr/bin/python3", &["-c", script, &serving.port().to_string()]);
}

#[test]
fn clients_without_the_right_certificate_are_refused() {
    let serving = serving(true, true);
    let folder = serving.folder.path();
    assert!(run(folder, "nbdinfo", &[&uri(&serving, "known")]).contains("with TLS"));
    for stranger in ["nobody", "unknown"] {
        let (is_fine, printed, _) = attempt(folder, "nbdinfo", &[&uri(&serving, stranger)]);
        assert!(!is_fine && !printed.contains("export-size"), "{printed}");
    }
    // An unsigned client does not affect others.
    assert!(run(folder, "nbdinfo", &[&uri(&serving, "known")]).contains("with TLS"));
}

#[test]
fn files_that_are_no_certificates_are_told() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let of = |name: &str| folder.path().join(name);
    let configuration = |certificate, key| tls_configuration(&of(certificate), &of(key), None);
    assert!(configuration("server-cert.pem", "server-key.pem").is_ok());
    let error = configuration("none.pem", "server-key.pem").unwrap_err();
    assert!(matches!(error, TlsError::File(..)) && error.to_string().contains("none.pem"), "{error}");
    assert!(matches!(configuration("server-cert.pem", "client-key.pem"), Err(TlsError::Pair(_))));
    let authority = tls_configuration(&of("server-cert.pem"), &of("server-key.pem"), Some(&of("extensions")));
    assert!(matches!(authority, Err(TlsError::Authority(..))), "{authority:?}");
}

/// A client that speaks TLS over the server's Unix socket, after its handshake.
fn client(serving: &Serving) -> StreamOwned<ClientConnection, UnixStream> {
    let socket = UnixStream::connect(serving.socket()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client_over(serving, socket)
}

/// A client that speaks TLS, after its handshake.
fn client_over<S: Read + Write>(serving: &Serving, mut socket: S) -> StreamOwned<ClientConnection, S> {
    let mut roots = RootCertStore::empty();
    let authority = serving.folder.path().join("ca-cert.pem");
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    socket.write_all(&[flags(FIXED_NEWSTYLE | NO_ZEROES), option(STARTTLS, &[])].concat()).unwrap();
    socket.read_exact(&mut [0; GREETING.len() + 20]).unwrap();
    let tls = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(tls, socket);
    stream.write_all(&option(GO, &info("disk", &[]))).unwrap();
    stream.read_exact(&mut [0; (20 + 12) + 20]).unwrap();
    stream
}

/// Asks for `count` replies of 4 KiB, and returns their bytes.
fn ask(stream: &mut impl Write, count: u64) -> usize {
    (0..count).for_each(|i| stream.write_all(&request(0, READ, i, 0, 4096)).unwrap());
    count as usize * (16 + 4096)
}

/// The first bytes of replies are in the socket, the rest in TLS, and none of them in the conversation.
#[test]
fn clients_that_do_not_take_what_tls_holds_are_disconnected() {
    const STALL: Duration = Duration::from_secs(1);
    let serving = serving_with(true, false, |options| options.stall_timeout = STALL);
    let clients: Vec<_> = (16..128)
        .step_by(4)
        .map(|count| {
            let mut stream = client(&serving);
            (ask(&mut stream, count), stream)
        })
        .collect();
    std::thread::sleep(4 * STALL);
    let beyond_socket = |asked: usize, socket: &UnixStream| {
        asked.checked_sub(rustix::io::ioctl_fionread(socket).unwrap() as usize)
    };
    // A slow server takes longer to fill the sockets, and to disconnect those that have no room for the rest.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let stalled = clients.iter().filter(|(asked, stream)| beyond_socket(*asked, &stream.sock).is_some());
        if serving.server.figures().disconnected >= stalled.count() as u64 {
            break;
        }
        assert!(Instant::now() < until, "clients that stall are disconnected");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut held = 0;
    for (asked, mut stream) in clients {
        let Some(left) = beyond_socket(asked, &stream.sock) else { continue };
        held += usize::from(left < 48 << 10);
        let mut found = Vec::new();
        // Without TLS's goodbye.
        let _ = Read::take(&mut stream, asked as u64).read_to_end(&mut found);
        assert!(found.len() < asked, "{left} of {asked} bytes were kept for a client that took none");
    }
    assert!(held > 0, "TLS held nothing");
}

/// TLS's closing alert comes behind DISC. A TCP socket that is closed with unread bytes is reset, which discards what
/// the client has yet to take.
#[test]
fn replies_that_a_client_takes_after_its_goodbye_are_not_lost() {
    const READ_BYTES: u32 = 512 << 10;
    const READS: usize = 4;
    let serving = serving(true, false);
    let socket = TcpStream::connect(("127.0.0.1", serving.port())).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut stream = client_over(&serving, socket);
    (0..READS as u64).for_each(|i| stream.write_all(&request(0, READ, i, 0, READ_BYTES)).unwrap());
    stream.write_all(&request(0, DISC, 9, 0, 0)).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let mut taken = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => taken += len,
            Err(error) => panic!("{taken} bytes of the replies were taken: {error}"),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(taken, READS * (16 + READ_BYTES as usize));
}
