//! Volumes, served to common clients, with cleaning under way.

mod common;

use common::bytes::{BLOCK_STATUS, Heard, request};
use common::fuse::Fuse;
use common::programs::{attempt, run};
use common::serving::Serving;
use common::skip;
use common::spoken::Spoken;
use granary_nbd::limits::STATUS_BLOCKS_MAX;
use granary_nbd::{Export, Exports, VolumeExports};
use granary_volume::{Config, Io, Volume};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn new(size: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Volume::create(folder.path(), "disk", &Config::new(size)).unwrap();
        Self { folder }
    }

    fn open(&self) -> Arc<Volume> {
        Arc::new(Volume::open(self.folder.path(), "disk", &mut |_, _| {}).unwrap())
    }
}

fn export(volume: &Arc<Volume>) -> Arc<dyn Export> {
    VolumeExports::new([Arc::clone(volume)]).open("").unwrap()
}

/// Stops the server, and closes the volume once the last connection has dropped it.
fn close(serving: Serving, volume: Arc<Volume>) {
    serving.server.stop();
    let mut volume = volume;
    // Less than the 30 s after which the server ends connections by itself.
    let deadline = Instant::now() + Duration::from_secs(25);
    loop {
        match Arc::try_unwrap(volume) {
            Ok(volume) => return volume.close().unwrap(),
            Err(shared) => volume = shared,
        }
        assert!(Instant::now() < deadline, "connections end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_copied_to_a_volume_is_there_after_a_restart() {
    let disk = Disk::new(48 * MIB);
    let volume = disk.open();
    let serving = Serving::new(export(&volume));
    let image: Vec<u8> = (0..48 * MIB as usize).map(|i| (i / 512 * 7 + i) as u8).collect();
    std::fs::write(serving.folder.path().join("image"), &image).unwrap();
    run(serving.folder.path(), "nbdcopy", &["--flush", "--connections=4", "image", &serving.tcp()]);
    run(serving.folder.path(), "qemu-img", &["compare", "-f", "raw", "-F", "raw", "image", &serving.tcp()]);
    close(serving, volume);
    let volume = disk.open();
    let serving = Serving::new(export(&volume));
    run(serving.folder.path(), "nbdcopy", &[&serving.unix(), "again"]);
    assert!(std::fs::read(serving.folder.path().join("again")).unwrap() == image);
    close(serving, volume);
}

#[test]
fn fio_finds_what_it_wrote() {
    let disk = Disk::new(64 * MIB);
    let volume = disk.open();
    let serving = Serving::new(export(&volume));
    let uri = format!("--uri={}", serving.unix());
    for (sizes, jobs) in [("--bs=4k", "1"), ("--bs=4k", "4"), ("--bsrange=1536-40k", "1"), ("--bs=8k", "4")] {
        let jobs = format!("--numjobs={jobs}");
        let arguments = [
            "--name=verify",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            sizes,
            &jobs,
            "--size=16m",
            "--offset_increment=16m",
            "--iodepth=16",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--do_verify=1",
        ];
        for _ in 0..2 {
            run(serving.folder.path(), "fio", &arguments);
        }
    }
    assert!(volume.stats().segments_cleaned > 0, "{:?}", volume.stats());
    close(serving, volume);
}

#[test]
fn discarded_blocks_are_holes_and_take_no_space() {
    let disk = Disk::new(64 * MIB);
    let volume = disk.open();
    let serving = Serving::new(export(&volume));
    let (folder, uri) = (serving.folder.path(), serving.tcp());
    let commands = [
        "-f",
        "raw",
        "-c",
        "write -P 7 1M 4M",
        "-c",
        "discard 2M 1M",
        "-c",
        "read -P 0 2M 1M",
        "-c",
        "read -P 7 3M 2M",
        "-c",
        "flush",
    ];
    run(folder, "qemu-io", &[&commands[..], &[&uri]].concat());
    assert_eq!(volume.stats().blocks_mapped, 3 * MIB / 4096);
    let map: serde_json::Value =
        serde_json::from_str(&run(folder, "nbdinfo", &["--map", "--json", &uri])).unwrap();
    let extents = map.as_array().unwrap().iter();
    let extents: Vec<_> =
        extents.map(|it| (it["length"].as_u64().unwrap() / MIB, it["type"].as_u64().unwrap())).collect();
    assert_eq!(extents, [(1, 3), (1, 0), (1, 3), (2, 0), (59, 3)]);
    let (is_fine, output, errors) = attempt(folder, "qemu-io", &["-f", "raw", "-c", "write 64M 4k", &uri]);
    assert!(!is_fine || (output + &errors).contains("error"), "beyond the end");
    close(serving, volume);
}

/// One answer looks at so many blocks; clients ask for the rest.
#[test]
fn block_status_of_a_long_range_is_answered_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config { block_size: 512, ..Config::new(64 * MIB) };
    Volume::create(folder.path(), "disk", &config).unwrap();
    let disk = Disk { folder };
    let volume = disk.open();
    volume.write(&mut Io::new(), 0, &vec![7; 48 * MIB as usize]).unwrap();
    let mut spoken = Spoken::transmitting(export(&volume), true);
    let heard = spoken.ask(&request(0, BLOCK_STATUS, 1, 0, 64 * MIB as u32));
    let (_, _, _, payload) = Heard(&heard).chunk();
    let mut extents = Heard(&payload[4..]);
    assert_eq!((extents.u32(), extents.u32(), extents.0.len()), (512 * STATUS_BLOCKS_MAX as u32, 0, 0));
    drop(spoken);
    let serving = Serving::new(export(&volume));
    let (folder, uri) = (serving.folder.path(), serving.unix());
    for (program, arguments, [start, data]) in [
        ("nbdinfo", &["--map", "--json"][..], ["offset", "type"]),
        ("qemu-img", &["map", "--output=json", "-f", "raw"], ["start", "data"]),
    ] {
        let map = run(folder, program, &[arguments, &[&uri]].concat());
        let map: serde_json::Value = serde_json::from_str(&map).unwrap();
        for extent in map.as_array().unwrap() {
            let [first, len] = [start, "length"].map(|of| extent[of].as_u64().unwrap());
            let is_data = extent[data] == 0 || extent[data] == true;
            assert_eq!(is_data, first < 48 * MIB, "{program}: {extent}");
            assert!(first + len <= if is_data { 48 * MIB } else { 64 * MIB }, "{program}: {extent}");
        }
        let covered: u64 =
            map.as_array().unwrap().iter().map(|extent| extent["length"].as_u64().unwrap()).sum();
        assert_eq!(covered, 64 * MIB, "{program}");
    }
    close(serving, volume);
}

/// A client sends BLOCK_STATUS for a range inside a block that another one writes and trims at the same time.
#[test]
fn block_status_is_right_beside_trims() {
    let disk = Disk::new(16 * MIB);
    let volume = disk.open();
    let (block, until) = (volume.config().block_size, Instant::now() + Duration::from_secs(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut io, content) = (Io::new(), vec![7; block as usize]);
            while Instant::now() < until {
                volume.write(&mut io, 0, &content).unwrap();
                volume.trim(0, block).unwrap();
            }
        });
        let mut spoken = Spoken::transmitting(export(&volume), true);
        while Instant::now() < until {
            let heard = spoken.ask(&request(0, BLOCK_STATUS, 1, 100, 4 * block as u32));
            let (_, _, _, payload) = Heard(&heard).chunk();
            let mut extent = Heard(&payload[4..]);
            let (len, state) = (extent.u32(), extent.u32());
            assert!(state != 0 || u64::from(len) == block - 100, "{len} bytes of data");
        }
    });
}

/// READs of several blocks go to the device in pieces. If one block of a piece is damaged, READs with it fail and
/// others succeed, even if all are in flight together.
#[test]
fn a_damaged_block_costs_the_reads_of_it_alone() {
    let disk = Disk::new(16 * MIB);
    let (blocks, damaged) = (256, 77);
    let image: Vec<u8> =
        (0..blocks).flat_map(|lba: u32| (lba ^ 0xA5A5_0000).to_le_bytes().repeat(1024)).collect();
    let volume = disk.open();
    let mut io = Io::new();
    volume.write(&mut io, 0, &image).unwrap();
    Arc::into_inner(volume).unwrap().close().unwrap();
    let log = disk.folder.path().join("disk.log");
    let mut bytes = std::fs::read(&log).unwrap();
    let block = &image[damaged * 4096..(damaged + 1) * 4096];
    let at = bytes.chunks_exact(4096).position(|found| found == block).unwrap() * 4096;
    bytes[at + 99] ^= 4;
    std::fs::write(&log, bytes).unwrap();
    let volume = disk.open();
    let serving = Serving::new(export(&volume));
    let folder = serving.folder.path();
    std::fs::write(folder.join("image"), &image).unwrap();
    let script = "
import sys
image = open('image', 'rb').read()
h.connect_uri(sys.argv[1])
wanted = [(i * 4096, n * 4096) for n in (1, 2, 16, 17, 40) for i in range(0, 256 - n, 3)]
wanted += [(i * 4096 + 700, n * 4096 + 33) for n in (1, 5, 33) for i in range(0, 200, 7)]
failed = 0
for part in (wanted[i:i + 100] for i in range(0, len(wanted), 100)):
    reads = [(o, n, nbd.Buffer(n)) for o, n in part]
    cookies = [h.aio_pread(b, o) for o, n, b in reads]
    for (o, n, b), cookie in zip(reads, cookies):
        bad = o < 78 * 4096 and o + n > 77 * 4096
        try:
            while not h.aio_command_completed(cookie):
                h.poll(-1)
            assert not bad, (o, n)
            assert bytes(b.to_bytearray()) == image[o:o + n], (o, n)
        except nbd.Error as e:
            assert bad and e.errno == 'EIO', (o, n, e)
            failed += 1
print(failed, len(wanted))
";
    let script = format!("import nbd\nh = nbd.NBD()\n{script}");
    let told = run(folder, "/usr/bin/python3", &["-c", &script, &serving.unix()]);
    let [failed, reads] = [0, 1].map(|i| told.split_whitespace().nth(i).unwrap().parse::<u64>().unwrap());
    assert!(failed > 10, "{failed}");
    assert_eq!(volume.stats().reads, reads, "what is looked up again is one read");
    close(serving, volume);
}

fn can(folder: &Path, program: &str, arguments: &[&str]) -> bool {
    attempt(folder, program, arguments).0
}

/// Trims the file system until `is_done`: xfs frees the blocks of removed files behind the removal. Returns `false`
/// where no discards pass through the loop device and nbdfuse.
fn trim_until(folder: &Path, is_done: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let (is_fine, output, errors) = attempt(folder, "fstrim", &["-v", "mount"]);
        if errors.contains("not supported") {
            skip::skipped("no discards through a loop device and nbdfuse: fstrim on volumes");
            return false;
        }
        assert!(is_fine, "fstrim: {errors}{output}");
        if is_done() {
            return true;
        }
        assert!(Instant::now() < deadline, "trimmed space is given back: {output}");
        std::thread::sleep(Duration::from_millis(100));
        run(folder, "sync", &["-f", "mount"]);
    }
}

/// ext4 and xfs on a volume, mounted through FUSE and a loop device: filled, trimmed, checked.
#[test]
fn file_systems_live_on_a_volume() {
    for (make, check, size) in
        [("mkfs.ext4", &["e2fsck", "-f", "-n"][..], 96), ("mkfs.xfs", &["xfs_repair", "-n"][..], 400)]
    {
        let disk = Disk::new(size * MIB);
        let volume = disk.open();
        let serving = Serving::new(export(&volume));
        let folder = serving.folder.path();
        std::fs::create_dir(folder.join("mount")).unwrap();
        let Some(fuse) = Fuse::mount(folder, "nbd", &serving.unix()) else {
            return skip::skipped("no nbdfuse or no FUSE: file systems on volumes");
        };
        let forced = if make == "mkfs.ext4" { "-F" } else { "-f" };
        run(folder, make, &["-q", forced, "nbd"]);
        if !can(folder, "mount", &["-o", "loop", "nbd", "mount"]) {
            return skip::skipped("no loop device: file systems on volumes");
        }
        for i in 0..40 {
            std::fs::write(folder.join(format!("mount/{i}")), vec![i as u8; 1 << 20]).unwrap();
        }
        // Otherwise the removed files would never have been on the volume.
        run(folder, "sync", &["-f", "mount"]);
        let mapped = volume.stats().blocks_mapped;
        (0..40).step_by(2).for_each(|i| std::fs::remove_file(folder.join(format!("mount/{i}"))).unwrap());
        run(folder, "sync", &["-f", "mount"]);
        if trim_until(folder, || volume.stats().blocks_trimmed >= 16 * MIB / 4096) {
            assert!(volume.stats().blocks_mapped < mapped - 16 * MIB / 4096, "{make}: they take no space");
        }
        run(folder, "umount", &["mount"]);
        run(folder, check[0], &[&check[1..], &["nbd"]].concat());
        run(folder, "mount", &["-o", "loop", "nbd", "mount"]);
        for i in (1..40).step_by(2) {
            let found = std::fs::read(folder.join(format!("mount/{i}"))).unwrap();
            assert!(found == vec![i as u8; 1 << 20], "file {i}");
        }
        run(folder, "umount", &["mount"]);
        drop(fuse);
        close(serving, volume);
    }
}
