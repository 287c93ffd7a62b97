//! How far the changes of a source are known (UPDATE_FIELD), beside a cache that is warm at the next start: what
//! changed while nobody looked is found then.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// What stands in place of the boot's id if the cache was closed.
const CLOSED: &str = "closed";

/// The file. A power cut may take entries back that were newer than others that then count again, so a watermark that
/// was left open by another boot says nothing.
pub(crate) struct WatermarkFile {
    path: PathBuf,
    fingerprint: u64,
}

impl WatermarkFile {
    pub fn new(path: PathBuf, fingerprint: u64) -> WatermarkFile {
        WatermarkFile { path, fingerprint }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The watermark that was saved; `None`: none that says something.
    pub fn load(&self) -> Option<String> {
        let saved: Value = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let text = |name: &str| saved.get(name)?.as_str().map(str::to_string);
        let boot = text("boot")?;
        let is_ours = text("fingerprint")? == self.fingerprint.to_string();
        let watermark = text("mark").filter(|_| is_ours && (boot == CLOSED || Some(boot) == boot_id()))?;
        // From now on it is open.
        self.save(Some(&watermark), Cache::Open);
        Some(watermark)
    }

    /// Saves a watermark, in one step. One that cannot be saved is one that is not known at the next start.
    pub fn save(&self, watermark: Option<&str>, cache: Cache) {
        let boot = match cache {
            Cache::Open => boot_id(),
            Cache::Closed => Some(CLOSED.to_string()),
        };
        let (Some(watermark), Some(boot)) = (watermark, boot) else {
            let _ = fs::remove_file(&self.path);
            return;
        };
        let saved = json!({ "fingerprint": self.fingerprint.to_string(), "boot": boot, "mark": watermark });
        let unfinished = self.path.with_extension("mark.tmp");
        let written = fs::write(&unfinished, saved.to_string())
            .and_then(|()| fs::File::open(&unfinished)?.sync_all())
            .and_then(|()| fs::rename(&unfinished, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What becomes of the cache beside a watermark.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Cache {
    Open,
    Closed,
}

fn boot_id() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().map(|id| id.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watermark_of_another_cache_or_of_a_lost_boot_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = |fingerprint| WatermarkFile::new(folder.path().join("d.mark"), fingerprint);
        assert_eq!(file(1).load(), None);
        for cache in [Cache::Open, Cache::Closed] {
            file(1).save(Some("2026-01-01 00:00:00"), cache);
            assert_eq!(file(2).load(), None);
            assert_eq!(file(1).load().as_deref(), Some("2026-01-01 00:00:00"));
        }
        let text = fs::read_to_string(file(1).path()).unwrap();
        fs::write(file(1).path(), text.replace(&boot_id().unwrap(), "another")).unwrap();
        assert_eq!(file(1).load(), None);
        file(1).save(None, Cache::Closed);
        assert!(!file(1).path().exists());
    }
}
