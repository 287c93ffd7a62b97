//! Describes the machine of a study.

use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Lines such as `kernel: 6.1.0`, as far as the system tells.
pub fn describe(data: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            lines.push(format!("{name}: {value}"));
        }
    };
    line("kernel", first_line(Path::new("/proc/sys/kernel/osrelease")));
    line("CPU", field("/proc/cpuinfo", "model name"));
    line("cores", std::thread::available_parallelism().ok().map(|cores| cores.to_string()));
    line("RAM", field("/proc/meminfo", "MemTotal"));
    line("device", device(data));
    line("read_ahead_kb", disk(data).and_then(|disk| first_line(&disk.join("queue/read_ahead_kb"))));
    line("file system", file_system(data));
    lines
}

fn first_line(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.lines().next()?.trim().to_owned())
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The block device under a folder, in /sys.
fn block_device(path: &Path) -> Option<PathBuf> {
    let number = std::fs::metadata(path).ok()?.st_dev();
    let (major, minor) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xfff00);
    std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()
}

/// The folder in /sys of the disk that a path is on; a partition's folder is within its disk's.
fn disk(path: &Path) -> Option<PathBuf> {
    let place = block_device(path)?;
    let above = place.parent()?.to_owned();
    [place, above].into_iter().find(|place| place.join("queue").is_dir())
}

/// The name and model of the block device under a folder, as far as the system tells.
fn device(path: &Path) -> Option<String> {
    let name = block_device(path)?.file_name()?.to_string_lossy().into_owned();
    let model = disk(path).and_then(|disk| first_line(&disk.join("device/model")));
    Some(match model {
        Some(model) => format!("{name} ({model})"),
        None => format!("{name} (model not told)"),
    })
}

/// The type of the file system with the longest mount point above a folder.
fn file_system(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = std::fs::read_to_string("/proc/mounts").ok()?;
    let entries = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((words.next()?, words.next()?))
    });
    let above = entries.filter(|(mount, _)| path.starts_with(mount));
    above.max_by_key(|(mount, _)| mount.len()).map(|(_, kind)| kind.to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn something_is_seen() {
        let lines = super::describe(std::path::Path::new("/"));
        assert!(lines.iter().any(|line| line.starts_with("kernel: ")), "{lines:?}");
        // Attributes of a disk are found for its partitions, too.
        let has = |name: &str| lines.iter().any(|line| line.starts_with(name));
        assert_eq!(has("device: "), has("read_ahead_kb: "), "{lines:?}");
    }
}
