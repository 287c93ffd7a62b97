//! Volumes of the real program, for clients that start it themselves.

#[path = "common/pasted.rs"]
mod pasted;
#[path = "../../nbd/tests/common/programs.rs"]
mod programs;
#[path = "../../log/tests/common/skip.rs"]
mod skip;
#[path = "server/unlocked.rs"]
mod unlocked;

use pasted::{commands, paste};
use programs::{attempt, run};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use unlocked::await_unlocked;

const GRANARY: &str = env!("CARGO_BIN_EXE_granary");

/// A volume of 16 MiB, `data/volumes/scratch`.
fn with_volume() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), GRANARY, &["volume", "create", "scratch", "--path", "data", "--size", "16MiB"]);
    folder
}

/// Arguments of Python for a client, which is given the command that serves the volume.
fn client(script: &str) -> [&str; 8] {
    ["-c", script, GRANARY, "volume", "serve", "scratch", "--path", "data"]
}

/// Over a socket, as in libnbd, and over two pipes.
const ON_STANDARD_INPUT: &str = r#"
import nbd, struct, subprocess, sys
command = sys.argv[1:]
h = nbd.NBD()
h.connect_command(command)
assert h.get_size() == 16 << 20
h.pwrite(b"x" * 100000, 77)
h.shutdown()
del h
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert server.stdout.read(18)[:8] == b"NBDMAGIC"
request = lambda kind, cookie, offset, length: struct.pack(">IHHQQI", 0x25609513, 0, kind, cookie, offset, length)
server.stdin.write(struct.pack(">I8sII", 3, b"IHAVEOPT", 1, 0) + request(0, 8, 76, 100002) + request(2, 9, 0, 0))
server.stdin.flush()
assert struct.unpack(">QH", server.stdout.read(10))[0] == 16 << 20
assert server.stdout.read(16 + 100002)[16:] == b"\0" + b"x" * 100000 + b"\0"
assert server.stdout.read() == b"" and server.wait() == 0
print("fine")
"#;

#[test]
fn a_volume_is_served_on_standard_input() {
    let folder = with_volume();
    assert_eq!(run(folder.path(), "/usr/bin/python3", &client(ON_STANDARD_INPUT)), "fine\n");
}

/// What a client may not change is told before it tries, and refused if it tries.
const READ_ONLY: &str = r#"
import nbd, sys
h = nbd.NBD()
h.set_strict_mode(0)
h.connect_command(sys.argv[1:])
assert h.is_read_only()
for change in (lambda: h.pwrite(b"y" * 4096, 0), lambda: h.trim(4096, 0), lambda: h.zero(4096, 0)):
    try:
        change()
        sys.exit("it was changed")
    except nbd.Error as error:
        assert error.errno == "EPERM", error
assert h.pread(4096, 0) == b"x" * 4096
h.flush()
h.shutdown()
print("fine")
"#;

#[test]
fn a_volume_that_is_served_read_only_is_not_changed() {
    let folder = with_volume();
    let serve = ["[", GRANARY, "volume", "serve", "scratch", "--path", "data", "]"];
    std::fs::write(folder.path().join("image"), [b'x'; 4096]).unwrap();
    run(folder.path(), "nbdcopy", &[&["--flush", "--", "image"], &serve[..]].concat());
    let script = [&client(READ_ONLY)[..], &["--read-only"]].concat();
    assert_eq!(run(folder.path(), "/usr/bin/python3", &script), "fine\n");
}

/// A client that has its server listen on a socket, and is killed: the server is not told to end.
const KILLED: &str = r#"
import nbd, os, signal, sys
h = nbd.NBD()
h.connect_systemd_socket_activation(sys.argv[1:])
h.pwrite(b"x" * 4096, 0)
h.flush()
os.kill(os.getpid(), signal.SIGKILL)
"#;

#[test]
fn a_volume_is_closed_when_the_client_that_had_it_served_is_killed() {
    let folder = with_volume();
    let status =
        Command::new("/usr/bin/python3").args(client(KILLED)).current_dir(folder.path()).status().unwrap();
    assert_eq!(status.signal(), Some(9));
    let until = Instant::now() + Duration::from_secs(60);
    let check = ["volume", "check", "scratch", "--path", "data"];
    while !Command::new(GRANARY).args(check).current_dir(folder.path()).status().unwrap().success() {
        assert!(Instant::now() < until, "the volume is in use still");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The terminal goes away, or its user ends what runs in it, before the client flushes.
const HUNG_UP: &str = r#"
import nbd, signal, socket, subprocess, sys
for given in (signal.SIGHUP, signal.SIGQUIT):
    mine, its = socket.socketpair()
    server = subprocess.Popen(sys.argv[1:], stdin=its, stdout=its)
    its.close()
    h = nbd.NBD()
    h.connect_socket(mine.detach())
    h.pwrite(bytes([given]) * 4096, 0)
    server.send_signal(given)
    assert server.wait() == 0
    del h
    h = nbd.NBD()
    h.connect_command(sys.argv[1:])
    assert h.pread(4096, 0) == bytes([given]) * 4096, given
    h.shutdown()
    del h
print("fine")
"#;

#[test]
fn what_was_written_stays_when_the_terminal_goes_away() {
    let folder = with_volume();
    assert_eq!(run(folder.path(), "/usr/bin/python3", &client(HUNG_UP)), "fine\n");
}

/// A server of memcached on the socket `items` of a folder, with flash of this size; `None`: it ends at once.
fn with_items(folder: &Path, flash: &str, more: &[&str]) -> Option<(Child, UnixStream)> {
    let mut command = Command::new(GRANARY);
    command.args(["server", "--path", "data", "--http", "none", "--memcached-socket", "items"]);
    command.args(["--memcached-memory", "16MiB", "--memcached-flash", flash]).args(more);
    let mut process = command.current_dir(folder).stderr(Stdio::null()).spawn().unwrap();
    loop {
        if process.try_wait().unwrap().is_some() {
            return None;
        }
        if let Ok(stream) = UnixStream::connect(folder.join("items")) {
            return Some((process, stream));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ask(stream: &mut UnixStream, request: &str, answer: &str) {
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = vec![0; answer.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(String::from_utf8_lossy(&bytes), answer);
}

#[test]
fn a_start_that_fails_leaves_the_items_of_memcached_alone() {
    let folder = with_volume();
    let stop = |mut process: Child| {
        run(folder.path(), "kill", &["-TERM", &process.id().to_string()]);
        assert!(process.wait().unwrap().success());
    };
    let (process, mut items) = with_items(folder.path(), "64MiB", &[]).unwrap();
    ask(&mut items, "set kept 0 0 5\r\nvalue\r\n", "STORED\r\n");
    drop(items);
    stop(process);
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = busy.local_addr().unwrap().to_string();
    assert!(with_items(folder.path(), "128MiB", &["--nbd", &address]).is_none(), "it listens on {address}");
    let (process, mut items) = with_items(folder.path(), "64MiB", &[]).unwrap();
    ask(&mut items, "get kept\r\n", "VALUE kept 0 5\r\nvalue\r\nEND\r\n");
    drop(items);
    stop(process);
}

/// Users of the files below a folder, and what they are called.
fn owners(folder: &Path) -> Vec<(u32, PathBuf)> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
        found.push((path.symlink_metadata().unwrap().uid(), path.clone()));
        if path.is_dir() {
            found.extend(owners(&path));
        }
    }
    found
}

/// A service that runs as a user of its own still opens its files after root has looked at them.
#[test]
fn what_root_makes_in_the_folder_of_a_service_is_of_its_user() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    if chown(&data, Some(65_534), Some(65_534)).is_err() {
        return skip::skipped("not root: whose the files are that it makes");
    }
    let create = ["volume", "create", "scratch", "--path", "data", "--size", "16MiB"];
    run(folder.path(), GRANARY, &create);
    // Commands that only read make it, too.
    std::fs::remove_file(data.join("volumes/scratch.lock")).unwrap();
    for command in ["inspect", "check", "scrub"] {
        run(folder.path(), GRANARY, &["volume", command, "scratch", "--path", "data"]);
    }
    let (mut process, items) = with_items(folder.path(), "64MiB", &[]).unwrap();
    drop(items);
    run(folder.path(), "kill", &["-TERM", &process.id().to_string()]);
    assert!(process.wait().unwrap().success());
    let found = owners(&data);
    assert!(found.iter().any(|(_, path)| path.ends_with("volumes/scratch.lock")), "{found:?}");
    assert!(found.iter().any(|(_, path)| path.starts_with(data.join("memcached"))), "{found:?}");
    let others: Vec<_> = found.iter().filter(|(user, _)| *user != 65_534).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Commands, on another port than theirs.
fn on_a_free_port(commands: &str) -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    commands
        .replace("127.0.0.1:10809", &format!("127.0.0.1:{port}"))
        .replace("nbd://127.0.0.1/", &format!("nbd://127.0.0.1:{port}/"))
}

/// The examples of the README and of docs/volume.md, pasted into a shell where an image lies.
#[test]
fn the_examples_work_as_they_are_written() {
    let readme = commands(include_str!("../../../README.md"), "\n## Use it as a disk\n");
    assert_eq!(readme.lines().count(), 5, "{readme}");
    let page = commands(include_str!("../../../docs/volume.md"), "# Volumes: a disk in user space\n");
    for (commands, data) in [(readme, "disks"), (page, "data")] {
        let folder = tempfile::tempdir().unwrap();
        let image: Vec<u8> = (0..1 << 20).map(|i: u32| (i / 4096 * 7 + i % 251) as u8).collect();
        std::fs::write(folder.path().join("image.raw"), &image).unwrap();
        let told = paste(folder.path(), &on_a_free_port(commands));
        assert!(told.contains("export-size: 8589934592"), "{told}");
        let serve = ["[", GRANARY, "volume", "serve", "scratch", "--path", data, "]"];
        run(folder.path(), "nbdcopy", &[&["--"], &serve[..], &["copy"]].concat());
        let mut copy = File::open(folder.path().join("copy")).unwrap();
        assert_eq!(copy.metadata().unwrap().len(), 8 << 30);
        let mut found = vec![1; image.len() + 4096];
        copy.read_exact(&mut found).unwrap();
        assert!(found[..image.len()] == image && found[image.len()..].iter().all(|byte| *byte == 0));
    }
}

/// Content that the client wrote without a flush is durable once it has ended its server.
#[test]
fn clients_copy_to_and_from_a_volume_that_they_have_served() {
    let folder = with_volume();
    let image: Vec<u8> = (0..16 << 20).map(|i: u32| (i / 4096 * 7 + i % 251) as u8).collect();
    std::fs::write(folder.path().join("image"), &image).unwrap();
    let serve = ["[", GRANARY, "volume", "serve", "scratch", "--path", "data", "]"];
    run(folder.path(), "nbdcopy", &[&["--", "image"], &serve[..]].concat());
    run(folder.path(), "nbdcopy", &[&["--"], &serve[..], &["copy"]].concat());
    assert!(std::fs::read(folder.path().join("copy")).unwrap() == image);
}

#[test]
fn the_server_takes_the_sockets_that_systemd_opens() {
    let folder = with_volume();
    let server = ["[", GRANARY, "server", "--path", "data", "--http", "127.0.0.1:0", "]"];
    let size = run(folder.path(), "nbdinfo", &[&["--size", "--"], &server[..]].concat());
    assert_eq!(size, "16777216\n");
}

/// `granary server` on the socket `nbd` of a folder, until it is dropped.
struct Server {
    process: Child,
    errors: PathBuf,
}

impl Server {
    fn start(folder: &Path) -> Self {
        Self::start_by(folder, Command::new(GRANARY))
    }

    /// A server that `command` runs with the arguments it is given.
    fn start_by(folder: &Path, mut command: Command) -> Self {
        let errors = folder.join("errors");
        command.args(["server", "--path", "data", "--http", "127.0.0.1:0", "--nbd-socket", "nbd"]);
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(File::create(&errors).unwrap());
        let server = Self { process: command.spawn().unwrap(), errors };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.said().contains("Granary serves the volumes") {
            assert!(Instant::now() < deadline, "it does not start: {}", server.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.errors).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        await_unlocked(self.errors.parent().unwrap());
    }
}

/// One volume cannot be opened: the others are served, and clients that ask for it get an error.
#[test]
fn a_damaged_volume_keeps_no_other_from_being_served() {
    let folder = with_volume();
    run(folder.path(), GRANARY, &["volume", "create", "default", "--path", "data", "--size", "32MiB"]);
    let size = |name: &str| {
        attempt(folder.path(), "nbdinfo", &["--size", &format!("nbd+unix:///{name}?socket=nbd")])
    };
    let server = Server::start(folder.path());
    assert_eq!(
        ["", "default", "scratch"].map(|name| size(name).1),
        ["33554432\n", "33554432\n", "16777216\n"]
    );
    drop(server);
    std::fs::write(folder.path().join("data/volumes/default.volume"), "size = 1").unwrap();
    let (is_fine, listed, errors) = attempt(folder.path(), GRANARY, &["volume", "list", "--path", "data"]);
    assert!(!is_fine && errors.contains("1 volume cannot be read"), "{errors}");
    assert!(listed.contains("default.volume is damaged") && listed.contains("16.00 MiB"), "{listed}");
    let server = Server::start(folder.path());
    assert!(server.said().contains("the volume default is not served"), "{}", server.said());
    assert_eq!(size("scratch").1, "16777216\n");
    for name in ["", "default"] {
        let (is_fine, output, _) = size(name);
        assert!(!is_fine && output.is_empty(), "the other one is not the default: {output}");
    }
}

/// Who names no export gets the default one, where there is one. The others are called by their names.
#[test]
fn the_log_says_where_each_volume_is() {
    let folder = with_volume();
    let create = |name: &str| {
        run(folder.path(), GRANARY, &["volume", "create", name, "--path", "data", "--size", "16MiB"]);
    };
    let told = |places: &str| {
        let server = Server::start(folder.path());
        assert!(server.said().contains(places), "{}", server.said());
    };
    told("the volumes scratch at nbd+unix:///?socket=nbd\n");
    create("other");
    told("other, scratch at nbd+unix:///other?socket=nbd, nbd+unix:///scratch?socket=nbd\n");
    create("default");
    told("nbd+unix:///?socket=nbd, nbd+unix:///other?socket=nbd, nbd+unix:///scratch?socket=nbd\n");
}

#[test]
fn a_mistyped_variable_is_told_and_an_empty_one_is_not_set() {
    let folder = with_volume();
    let list = |name: &str, value: &str| {
        let mut command = Command::new(GRANARY);
        command.args(["volume", "list"]).env("GRANARY_PATH", "data").env(name, value);
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [listed, errors] = list("GRANARY_PAHT", "elsewhere");
    assert!(listed.contains("scratch "), "{listed}");
    assert!(errors.contains("GRANARY_PAHT is no variable of Granary's"), "{errors}");
    assert!(errors.contains("GRANARY_PATH is one"), "{errors}");
    let [listed, errors] = list("GRANARY_PATH", "");
    assert!(listed.starts_with("no volumes in granary-data"), "{listed}");
    assert_eq!(errors, "");
    let mut command = Command::new(GRANARY);
    command.env("GRANARY_NBD", "").env("GRANARY_NBD_CONNECTIONS", "").env("GRANARY_NDB", "127.0.0.1:0");
    let server = Server::start_by(folder.path(), command);
    assert!(server.said().contains("GRANARY_NDB is no variable of Granary's"), "{}", server.said());
}

/// Adjacent damaged blocks are one line.
#[test]
fn a_scrub_says_which_blocks_are_damaged() {
    let folder = with_volume();
    let block = |number: u32| number.to_le_bytes().repeat(1024);
    let image: Vec<u8> = (1..=4096).flat_map(block).collect();
    std::fs::write(folder.path().join("image"), &image).unwrap();
    let serve = ["[", GRANARY, "volume", "serve", "scratch", "--path", "data", "]"];
    run(folder.path(), "nbdcopy", &[&["--flush", "--", "image"], &serve[..]].concat());
    let scrub = ["volume", "scrub", "scratch", "--path", "data"];
    assert_eq!(run(folder.path(), GRANARY, &scrub), "scratch: 4096 blocks read, none is damaged\n");
    let path = folder.path().join("data/volumes/scratch.log");
    let mut log = std::fs::read(&path).unwrap();
    for number in (101..=110).chain([200]) {
        let found =
            log.chunks_exact(4096).position(|bytes| bytes == block(number)).expect("it is in the log");
        log[found * 4096] ^= 1;
    }
    std::fs::write(&path, &log).unwrap();
    let (is_fine, damaged, errors) = attempt(folder.path(), GRANARY, &scrub);
    assert!(!is_fine && errors.contains("11 of 4096 blocks are damaged"), "{errors}");
    let error = "Input/output error (os error 5)";
    let lines =
        format!("scratch: bytes 409600 to 450560: {error}\nscratch: bytes 815104 to 819200: {error}\n");
    assert_eq!(damaged, lines);
    // The log names the volume, and has a line a second.
    let told: Vec<&str> = errors.lines().filter(|line| line.contains("a block is damaged")).collect();
    assert!((1..11).contains(&told.len()) && told[0].contains("volume=\"scratch\""), "{errors}");
}

/// Names of any length, and volumes that cannot be read, leave the columns where they are.
#[test]
fn volumes_are_listed_in_columns() {
    let folder = with_volume();
    let long = "v".repeat(60);
    run(folder.path(), GRANARY, &["volume", "create", &long, "--path", "data", "--size", "32MiB"]);
    std::fs::write(folder.path().join("data/volumes/damaged.volume"), "size = 1").unwrap();
    let (_, listed, _) = attempt(folder.path(), GRANARY, &["volume", "list", "--path", "data"]);
    let lines: Vec<&str> = listed.lines().collect();
    let end = |line: &str, of: &str| line.find(of).unwrap_or_else(|| panic!("{listed}")) + of.len();
    let size = end(lines[0], "size");
    assert_eq!(end(lines[1], " -"), size, "{listed}");
    assert!(lines[1].starts_with("damaged ") && lines[1].contains("damaged.volume is damaged"), "{listed}");
    assert_eq!(end(lines[2], "16.00 MiB"), size, "{listed}");
    assert_eq!(end(lines[3], "32.00 MiB"), size, "{listed}");
}

/// A path that leads to no folder is an error, and a name that is none is told with its rule.
#[test]
fn what_is_wrong_with_a_path_or_a_name_is_told() {
    let folder = with_volume();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for command in ["list", "inspect v", "delete v", "serve v"] {
        let arguments: Vec<&str> = ["volume"].into_iter().chain(command.split(' ')).collect();
        let (is_fine, output, errors) =
            attempt(folder.path(), GRANARY, &[&arguments[..], &["--path", "file"]].concat());
        assert!(!is_fine && output.is_empty() && errors.contains("Not a directory"), "{command}: {errors}");
    }
    let (_, _, errors) = attempt(folder.path(), GRANARY, &["volume", "inspect", "none", "--path", "data"]);
    assert!(errors.contains("`granary volume list --path data` shows those that are"), "{errors}");
    let (_, _, errors) = attempt(folder.path(), GRANARY, &["volume", "inspect", "a b", "--path", "data"]);
    assert!(errors.contains("\"a b\""), "{errors}");
}

/// Writes until the volume takes no more, and reads what it took.
const WRITE_UNTIL_REFUSED: &str = r#"
import errno, nbd, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
flushed = 0
try:
    for offset in range(0, 12 << 20, 1 << 20):
        h.pwrite(b"x" * (1 << 20), offset)
        h.flush()
        flushed = offset + (1 << 20)
    print("all is written")
except nbd.Error as error:
    assert error.errnum == errno.ENOSPC, error
    assert flushed > 0 and h.pread(flushed, 0) == b"x" * flushed
    print("refused")
"#;

/// A limit of the length of files (`ulimit -f`) is as a full file system: writes and flushes fail, reads go on, and
/// what is made or made larger is refused, and nothing of it stays.
#[test]
fn a_file_that_may_not_grow_is_an_error_of_writes() {
    let folder = with_volume();
    let limited = |kib: u64| {
        let mut command = Command::new("bash");
        command.args(["-c", &format!("ulimit -f {kib}; exec \"$0\" \"$@\""), GRANARY]);
        command
    };
    let write = || {
        let arguments = ["-c", WRITE_UNTIL_REFUSED, "nbd+unix:///scratch?socket=nbd"];
        run(folder.path(), "/usr/bin/python3", &arguments)
    };
    let mut server = Server::start_by(folder.path(), limited(4096));
    assert_eq!(write(), "refused\n");
    assert!(server.process.try_wait().unwrap().is_none(), "it goes on: {}", server.said());
    drop(server);
    let server = Server::start(folder.path());
    assert_eq!(write(), "all is written\n");
    drop(server);
    let names = || {
        let entries = std::fs::read_dir(folder.path().join("data/volumes")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    for command in ["volume create other --size 16MiB", "volume resize scratch --size 64MiB"] {
        let mut limited = limited(8192);
        let output =
            limited.args(command.split(' ')).args(["--path", "data"]).current_dir(folder.path()).output();
        let output = output.unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && errors.contains("File too large"), "{command}: {errors}");
        assert_eq!(names(), before, "{command}");
    }
    let check = run(folder.path(), GRANARY, &["volume", "check", "scratch", "--path", "data"]);
    assert!(check.contains("the log says the same"), "{check}");
}

/// A process that is no NBD client, and a volume that is open elsewhere.
#[test]
fn what_cannot_be_served_says_so() {
    let folder = with_volume();
    let serve = ["volume", "serve", "scratch", "--path", "data"];
    let (is_fine, _, errors) = attempt(folder.path(), GRANARY, &serve);
    assert!(is_fine, "a client that says nothing has gone: {errors}");
    let (is_fine, output, errors) =
        attempt(folder.path(), GRANARY, &["volume", "serve", "none", "--path", "data"]);
    assert!(!is_fine && output.is_empty());
    assert!(errors.contains("there is no volume none in data/volumes"), "{errors}");
    let holder = [
        "-c",
        "import nbd, subprocess, sys\nh = nbd.NBD()\nh.connect_command(sys.argv[1:])\n\
                  print(subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, capture_output=True, text=True).stderr)",
    ];
    let held = run(folder.path(), "/usr/bin/python3", &[&holder[..], &[GRANARY], &serve[..]].concat());
    assert!(held.contains("scratch.volume is open in another process"), "{held}");
}

/// A reader that closes the pipe, like `head`, is no failure of the command.
#[test]
fn nobody_has_to_read_what_is_printed() {
    let folder = with_volume();
    for command in [
        "list --path data",
        "inspect scratch --path data",
        "check scratch --path data",
        "scrub scratch --path data",
    ] {
        let piped = format!("{GRANARY} volume {command} | true; exit ${{PIPESTATUS[0]}}");
        run(folder.path(), "bash", &["-c", &piped]);
    }
}

#[test]
fn a_device_is_a_block_device_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let create = ["volume", "create", "v", "--path", "data", "--size", "16MiB", "--device", "disk"];
    let (is_made, _, refused) = attempt(folder.path(), GRANARY, &create);
    assert!(!is_made && refused.contains("device: there is no ") && refused.contains("/disk"), "{refused}");
    assert!(!folder.path().join("disk").exists());
}
