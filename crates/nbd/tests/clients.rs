//! Common clients: libnbd's, QEMU's and fio's.

mod common;

use common::late::LateExport;
use common::programs::{attempt, run};
use common::random::Random;
use common::serving::{Serving, serve};
use granary_nbd::{Export, MemoryExport, UnixSocket};
use serde_json::Value;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

fn memory(size: u64) -> Arc<dyn Export> {
    Arc::new(MemoryExport::new("disk", size))
}

/// A disk that answers at once, and two that do not.
fn disks(size: u64) -> [Arc<dyn Export>; 3] {
    let late = |has_event| Arc::new(LateExport::new(memory(size), has_event)) as Arc<dyn Export>;
    [memory(size), late(true), late(false)]
}

/// An image with data and holes.
fn image(path: &Path, size: usize) -> Vec<u8> {
    let mut random = Random(3);
    let mut bytes = vec![0; size];
    for part in bytes.chunks_mut(192 << 10).step_by(2) {
        part.fill_with(|| random.next() as u8);
    }
    std::fs::write(path, &bytes).unwrap();
    bytes
}

/// Whatever a socket is called, clients find it by the URI that the server has for them.
#[test]
fn the_uris_of_a_server_lead_to_it() {
    let serving = Serving::with(memory(MIB), |options, folder| {
        options.sockets.push(UnixSocket::new(folder.join("a b&c=d%20#?+ü.sock")));
    });
    let uris = serving.server.uris();
    assert_eq!((uris.len(), &uris[..2]), (3, &[serving.tcp(), serving.unix()][..]));
    assert!(uris[2].ends_with("/a%20b%26c%3Dd%2520%23%3F%2B%C3%BC.sock"), "{uris:?}");
    for uri in uris {
        assert_eq!(run(serving.folder.path(), "nbdinfo", &["--size", uri]), "1048576\n", "{uri}");
    }
}

#[test]
fn nbdinfo_is_told_everything() {
    let serving = Serving::new(memory(64 * MIB));
    let (folder, uri) = (serving.folder.path(), serving.tcp());
    let json: Value = serde_json::from_str(&run(folder, "nbdinfo", &["--json", &uri])).unwrap();
    assert_eq!((&json["protocol"], &json["structured"]), (&"newstyle-fixed".into(), &true.into()));
    let export = &json["exports"][0];
    assert_eq!(export["export-size"], 64 * MIB);
    assert_eq!(export["description"], "67108864 bytes of memory");
    assert_eq!(export["contexts"], serde_json::json!(["base:allocation"]));
    for can in ["cache", "df", "fast_zero", "flush", "fua", "multi_conn", "trim", "zero"] {
        assert_eq!(export[format!("can_{can}")], true, "{can}");
    }
    assert_eq!((&export["is_read_only"], &export["is_rotational"]), (&false.into(), &false.into()));
    let sizes = ["minimum", "preferred", "maximum"].map(|size| &export[format!("block_size_{size}")]);
    assert_eq!(sizes, [1, 4096, 32 << 20]);
    let list: Value =
        serde_json::from_str(&run(folder, "nbdinfo", &["--list", "--json", &serving.unix()])).unwrap();
    assert_eq!(list["exports"][0]["export-name"], "disk");
    assert_eq!(list["exports"].as_array().unwrap().len(), 1);
    let (is_fine, _, errors) = attempt(folder, "nbdinfo", &[&format!("{uri}/none")]);
    assert!(!is_fine && errors.contains("No such file or directory for export: none"), "{errors}");
}

#[test]
fn nbdinfo_maps_what_is_allocated() {
    let serving = Serving::new(memory(64 * MIB));
    let (folder, uri) = (serving.folder.path(), serving.tcp());
    let write =
        ["-f", "raw", "-c", "write -P 7 1M 128k", "-c", "write -z 40M 1M", "-c", "discard 0 1M", &uri];
    run(folder, "qemu-io", &write);
    let map: Value = serde_json::from_str(&run(folder, "nbdinfo", &["--map", "--json", &uri])).unwrap();
    let extents: Vec<_> = map
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["length"].as_u64().unwrap(), it["type"].as_u64().unwrap()))
        .collect();
    // By default QEMU writes zeroes that keep their space.
    assert_eq!(extents, [(MIB, 3), (MIB / 8, 0), (38 * MIB + 7 * MIB / 8, 3), (MIB, 0), (23 * MIB, 3)]);
}

#[test]
fn nbdcopy_goes_both_ways() {
    for disk in disks(48 * MIB) {
        let serving = Serving::new(disk);
        let folder = serving.folder.path();
        let bytes = image(&folder.join("image"), 48 << 20);
        run(folder, "nbdcopy", &["image", &serving.unix()]);
        run(folder, "nbdcopy", &[&serving.tcp(), "copy"]);
        assert!(std::fs::read(folder.join("copy")).unwrap() == bytes);
        // Many connections, long requests, and a flush at the end.
        let there = ["--connections=4", "--request-size=33554432", "--flush", "--allocated", "image"];
        run(folder, "nbdcopy", &[&there[..], &[&serving.tcp()]].concat());
        let back = ["--connections=4", "--requests=64", "--request-size=4096", &serving.unix(), "again"];
        run(folder, "nbdcopy", &back);
        assert!(std::fs::read(folder.join("again")).unwrap() == bytes);
    }
}

const LIBNBD: &str = r#"
import nbd, sys
h = nbd.NBD()
h.add_meta_context(nbd.CONTEXT_BASE_ALLOCATION)
h.set_strict_mode(0)
h.connect_uri(sys.argv[1])
size = h.get_size()
h.trim(size, 0)
assert h.get_structured_replies_negotiated() and h.can_multi_conn() and h.can_fast_zero()
def fails(errno, call, *arguments, **named):
    try:
        call(*arguments, **named)
    except nbd.Error as error:
        assert error.errno == errno, (error.errno, errno)
    else:
        raise SystemExit(f"{call} does not fail with {errno}")
h.pwrite(b"data" * 1000, 12345, flags=nbd.CMD_FLAG_FUA)
assert h.pread(4000, 12345) == b"data" * 1000
assert h.pread(4000, 12345, flags=nbd.CMD_FLAG_DF) == b"data" * 1000
chunks = []
h.pread_structured(262144, 0, lambda data, offset, status, error: chunks.append((offset, len(data), status)))
assert [c[2] for c in chunks].count(nbd.READ_HOLE) == 1 and sum(c[1] for c in chunks) == 262144, chunks
h.zero(1 << 20, 0, flags=nbd.CMD_FLAG_FAST_ZERO | nbd.CMD_FLAG_NO_HOLE)
h.trim(65536, 0)
h.cache(size, 0)
h.flush()
extents = []
h.block_status(size, 0, lambda context, offset, entries, error: extents.append((context, offset, entries)))
assert extents == [("base:allocation", 0, [65536, 3, (1 << 20) - 65536, 0, size - (1 << 20), 3])], extents
fails("EINVAL", h.pread, 10, size - 9)
fails("ENOSPC", h.pwrite, b"0123456789", size - 9)
fails("ENOSPC", h.zero, 10, size - 9)
fails("EINVAL", h.trim, 10, size - 9)
fails("EINVAL", h.cache, 10, size - 9)
fails("EINVAL", h.block_status, 10, size - 9, lambda *_: 0)
fails("EINVAL", h.flush, flags=1 << 15)
assert h.pread(4, 12345) == b"\0\0\0\0"
h.shutdown()
# Simple replies.
h = nbd.NBD()
h.set_request_structured_replies(False)
h.connect_uri(sys.argv[1])
assert not h.get_structured_replies_negotiated()
h.pwrite(b"simple", 1)
assert h.pread(8, 0) == b"\0simple\0"
h.shutdown()
# Commands in flight, and a disconnect among them.
h = nbd.NBD()
h.connect_uri(sys.argv[1])
buffers = [nbd.Buffer.from_bytearray(bytearray([i]) * 5000) for i in range(200)]
cookies = [h.aio_pwrite(buffer, i * 5000) for i, buffer in enumerate(buffers)]
while h.aio_in_flight() > 0:
    h.poll(-1)
    for cookie in list(cookies):
        if h.aio_command_completed(cookie):
            cookies.remove(cookie)
assert cookies == []
assert h.pread(1000000, 0) == b"".join(bytes([i]) * 5000 for i in range(200))
for i in range(100):
    h.aio_pread(nbd.Buffer(100000), i)
h.aio_disconnect()
print("fine")
"#;

fn python(folder: &Path, script: &str, arguments: &[&str]) {
    let printed = run(folder, "/usr/bin/python3", &[&["-c", script], arguments].concat());
    assert_eq!(printed, "fine\n");
}

#[test]
fn libnbd_gets_data_and_errors() {
    for disk in disks(16 * MIB) {
        let serving = Serving::new(disk);
        python(serving.folder.path(), LIBNBD, &[&serving.tcp()]);
        python(serving.folder.path(), LIBNBD, &[&serving.unix()]);
    }
}

const ONE_CLIENT: &str = r#"
import nbd, sys
for socket_activation in False, True:
    for _ in range(3):
        h = nbd.NBD()
        if socket_activation:
            h.connect_systemd_socket_activation([sys.argv[1], "systemd", "16"])
        else:
            h.connect_command([sys.argv[1], "-s", "16"])
        assert h.get_size() == 16 << 20
        h.pwrite(b"x" * 100000, 77)
        assert h.pread(100002, 76) == b"\0" + b"x" * 100000 + b"\0"
        h.shutdown()
# Over two pipes.
import os, struct, subprocess
server = subprocess.Popen([sys.argv[1], "-s", "16"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert server.stdout.read(18)[:8] == b"NBDMAGIC"
server.stdin.write(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0))
request = lambda kind, cookie, length: struct.pack(">IHHQQI", 0x25609513, 0, kind, cookie, 0, length)
server.stdin.write(request(1, 7, 100000) + b"y" * 100000 + request(0, 8, 100000) + request(2, 9, 0))
server.stdin.flush()
assert struct.unpack(">QH", server.stdout.read(10))[0] == 16 << 20
assert server.stdout.read(16 + 16 + 100000)[32:] == b"y" * 100000
assert server.stdout.read() == b"" and server.wait() == 0
print("fine")
"#;

#[test]
fn what_systemd_passes_must_listen_and_be_for_this_process() {
    let folder = tempfile::tempdir().unwrap();
    // Standard input becomes descriptor 3 of the server, which keeps its process id.
    let refused = |environment: &str, socket: OwnedFd| {
        let script = format!("{environment} exec \"$0\" systemd 16 3<&0");
        let mut command = Command::new("sh");
        let command = command.args(["-c", &script, &serve()]).stdin(socket).stderr(Stdio::piped());
        let mut server = command.spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while server.try_wait().unwrap().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let has_ended = server.try_wait().unwrap().is_some();
        server.kill().ok();
        let errors = server.wait_with_output().unwrap().stderr;
        assert!(has_ended, "it serves");
        String::from_utf8(errors).unwrap()
    };
    let connected = || UnixStream::pair().unwrap();
    let (socket, _peer) = connected();
    let error = refused("LISTEN_PID=$$ LISTEN_FDS=1", socket.into());
    assert!(error.contains("Activation"), "{error}");
    for (number, environment) in ["LISTEN_FDS=1", "LISTEN_PID= LISTEN_FDS=1"].into_iter().enumerate() {
        let listener = UnixListener::bind(folder.path().join(number.to_string())).unwrap();
        let error = refused(environment, listener.into());
        assert!(error.contains("Nowhere"), "{error}");
    }
}

#[test]
fn one_client_on_standard_input_and_sockets_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    python(folder.path(), ONE_CLIENT, &[&serve()]);
    // Socket activation as nbdinfo does it.
    let size = run(folder.path(), "nbdinfo", &["--size", "--", "[", &serve(), "systemd", "16", "]"]);
    assert_eq!(size, "16777216\n");
}

#[test]
fn qemu_converts_compares_and_maps() {
    for disk in disks(48 * MIB) {
        let serving = Serving::new(disk);
        let (folder, uri) = (serving.folder.path(), serving.tcp());
        let bytes = image(&folder.join("image"), 48 << 20);
        run(folder, "qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "image", &uri]);
        run(folder, "qemu-img", &["compare", "-f", "raw", "-F", "raw", "image", &uri]);
        run(
            folder,
            "qemu-img",
            &["convert", "-m", "16", "-W", "-f", "raw", "-O", "qcow2", &uri, "copy.qcow2"],
        );
        run(folder, "qemu-img", &["compare", "-f", "qcow2", "-F", "raw", "copy.qcow2", &uri]);
        let map = run(folder, "qemu-img", &["map", "--output=json", "-f", "raw", &serving.unix()]);
        let map: Value = serde_json::from_str(&map).unwrap();
        let extents = map.as_array().unwrap();
        assert!(extents.len() > 100, "{} extents", extents.len());
        for extent in extents {
            let of = |what: &str| extent[what].as_u64().unwrap() as usize;
            let range = of("start")..of("start") + of("length");
            let is_zero = bytes[range].iter().all(|byte| *byte == 0);
            assert!(is_zero || extent["data"] == true, "{extent}");
        }
    }
}

#[test]
fn qemu_io_writes_trims_and_zeroes() {
    for disk in disks(16 * MIB) {
        let serving = Serving::new(disk);
        let commands = [
            "write -P 1 0 4M",
            "write -f -P 2 1M 64k",
            "flush",
            "read -P 2 1M 64k",
            "write -z 2M 64k",
            "read -P 0 2M 64k",
            "write -z -u 3M 100k",
            "read -P 0 3M 100k",
            "discard 512k 512k",
            "aio_write -P 3 5M 1M",
            "aio_write -P 4 6M 1M",
            "aio_flush",
            "read -P 3 5M 1M",
            "read -P 4 6M 1M",
            "read -P 1 1088k 900k",
            "writev -P 5 7M 512 1024 2048",
            "read -P 5 7M 3584",
        ];
        let mut arguments = vec!["-f", "raw"];
        commands.iter().for_each(|command| arguments.extend(["-c", command]));
        let uri = serving.tcp();
        arguments.push(&uri);
        let printed = run(serving.folder.path(), "qemu-io", &arguments);
        assert!(!printed.contains("failed"), "{printed}");
    }
}

#[test]
fn fio_verifies_what_it_wrote() {
    for disk in disks(64 * MIB) {
        for (jobs, uri) in [("1", "tcp"), ("4", "unix"), ("4", "tcp")] {
            let serving = Serving::new(Arc::clone(&disk));
            let uri = if uri == "tcp" { serving.tcp() } else { serving.unix() };
            let arguments = [
                "--name=verify",
                "--ioengine=nbd",
                "--thread",
                "--rw=randwrite",
                "--bsrange=512-128k",
                "--bs_unaligned",
                "--iodepth=16",
                "--verify=crc32c",
                "--verify_fatal=1",
                "--size=12m",
                "--offset_increment=16m",
                "--fsync=64",
                "--output-format=terse",
            ];
            let (jobs, uri) = (format!("--numjobs={jobs}"), format!("--uri={uri}"));
            run(serving.folder.path(), "fio", &[&arguments[..], &[&jobs, &uri]].concat());
        }
    }
}

#[test]
fn a_read_only_export_stays_as_it_is() {
    let serving = Serving::new(Arc::new(MemoryExport::new("disk", MIB).read_only().with_minimum_block(512)));
    let (folder, uri) = (serving.folder.path(), serving.tcp());
    assert_eq!(run(folder, "nbdinfo", &["--size", &uri]), "1048576\n");
    run(folder, "nbdinfo", &["--is", "read-only", &uri]);
    let (is_fine, _, errors) = attempt(folder, "qemu-io", &["-f", "raw", "-c", "write 0 512", &uri]);
    assert!(!is_fine && errors.contains("Permission denied"), "{errors}");
    run(folder, "qemu-io", &["-r", "-f", "raw", "-c", "read -P 0 0 1M", &uri]);
    let script = r#"
import nbd, sys
h = nbd.NBD()
h.set_strict_mode(0)
h.connect_uri(sys.argv[1])
for errno, call in ("EPERM", lambda: h.pwrite(b"x" * 512, 0)), ("EPERM", lambda: h.trim(512, 0)), \
        ("EPERM", lambda: h.zero(512, 0)), ("EINVAL", lambda: h.pread(511, 0)), ("EINVAL", lambda: h.pread(512, 1)):
    try:
        call()
    except nbd.Error as error:
        assert error.errno == errno, error
    else:
        raise SystemExit("it was allowed")
print("fine")
"#;
    python(folder, script, &[&uri]);
}
