//! Golden files: a hex dump that a person can read, lines of zeros left out. A test compares what is
//! written today with it; `GRANARY_GOLDEN=write cargo test` writes it anew, for a new version of the
//! format.

use std::fmt::Write;
use std::path::Path;
use twox_hash::XxHash3_64;

/// The fixed instance number of all golden files: with random ones their checksums would differ.
pub const INSTANCE: u64 = 0x0123_4567_89AB_CDEF;

/// Sixteen bytes a line, as `hexdump -C` shows them, under a line that says how many there are.
pub fn to_text(bytes: &[u8]) -> String {
    let mut text = format!("{} bytes\n", bytes.len());
    for (i, line) in bytes.chunks(16).enumerate() {
        if line.iter().all(|byte| *byte == 0) {
            continue;
        }
        let shown = |byte: &u8| if (0x20..0x7F).contains(byte) { *byte as char } else { '.' };
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let letters: String = line.iter().map(shown).collect();
        writeln!(text, "{:08x}  {:<47}  |{letters}|", i * 16, hex.join(" ")).unwrap();
    }
    text
}

/// The bytes of such a text.
pub fn from_text(text: &str) -> Vec<u8> {
    let mut lines = text.lines();
    let size = lines.next().unwrap().strip_suffix(" bytes").unwrap().parse().unwrap();
    let mut bytes = vec![0; size];
    for line in lines {
        let at = usize::from_str_radix(&line[..8], 16).unwrap();
        for (i, byte) in line[10..57].split_whitespace().enumerate() {
            bytes[at + i] = u8::from_str_radix(byte, 16).unwrap();
        }
    }
    bytes
}

/// Compares bytes with the golden file `name` in `folder`.
pub fn compare(folder: &Path, name: &str, bytes: &[u8]) {
    let path = folder.join(name);
    let text = to_text(bytes);
    assert_eq!(from_text(&text), bytes, "a dump shows everything");
    if std::env::var("GRANARY_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    for (now, then) in text.lines().zip(golden.lines()) {
        assert_eq!(now, then, "{name}: the format changed; see {}", path.display());
    }
    assert_eq!(text, golden, "{name}: the format changed; see {}", path.display());
}

/// The bytes of the golden file `name` in `folder`.
pub fn read(folder: &Path, name: &str) -> Vec<u8> {
    from_text(&std::fs::read_to_string(folder.join(name)).unwrap())
}

/// Changes a state file and makes its checksum fit again, by docs/format.md.
pub fn change_state(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    let sum = XxHash3_64::oneshot(&bytes[16..]);
    bytes[8..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(path, bytes).unwrap();
}

/// Gives a log that was stopped cleanly the instance number of the golden files.
pub fn fix_instance(state: &Path) {
    change_state(state, |bytes| bytes[40..48].copy_from_slice(&INSTANCE.to_le_bytes()));
}

/// Puts another boot id into a state file: the machine went down since.
pub fn lose_power(state: &Path) {
    change_state(state, |bytes| bytes[64] ^= 0xFF);
}

/// The state file with zeros for its boot id, which differs from boot to boot.
pub fn without_boot_id(state: &Path) -> Vec<u8> {
    let copy = state.with_extension("without-boot-id");
    std::fs::copy(state, &copy).unwrap();
    change_state(&copy, |bytes| bytes[64..80].fill(0));
    std::fs::read(copy).unwrap()
}

/// Gives a state file this boot's id; `None`: this kernel has none.
pub fn fix_boot_id(state: &Path) -> Option<()> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().replace('-', "");
    let id = u128::from_str_radix(&digits, 16).ok()?;
    change_state(state, |bytes| bytes[64..80].copy_from_slice(&id.to_be_bytes()));
    Some(())
}
