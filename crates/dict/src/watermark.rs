//! How far the changes of a source are known (UPDATE_FIELD), beside a cache that is warm at the next start: changes in
//! the meantime are found then.

use granary_cache::{UnpublishedFile, sync_folder};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::PathBuf;

/// The file. Changes before a watermark are synced before it is saved, so that it holds after any kind of end.
pub(crate) struct WatermarkFile {
    path: PathBuf,
    fingerprint: u64,
}

impl WatermarkFile {
    pub fn new(path: PathBuf, fingerprint: u64) -> WatermarkFile {
        WatermarkFile { path, fingerprint }
    }

    /// The saved watermark; `None`: there is no valid one.
    pub fn load(&self) -> Option<String> {
        let saved: Value = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let text = |name: &str| saved.get(name)?.as_str().map(str::to_string);
        let is_ours = text("fingerprint")? == self.fingerprint.to_string();
        text("mark").filter(|_| is_ours)
    }

    /// Saves a watermark, in one step. If that fails, none is known at the next start.
    pub fn save(&self, watermark: Option<&str>) {
        let Some(watermark) = watermark else { return self.remove() };
        let saved = json!({ "fingerprint": self.fingerprint.to_string(), "mark": watermark });
        let write = |file: &mut fs::File| file.write_all(saved.to_string().as_bytes());
        let written = UnpublishedFile::write(self.unfinished(), 0o666, write)
            .and_then(|written| written.publish_as(&self.path));
        if written.is_err() {
            self.remove();
        }
    }

    /// Removes the file: nothing is known at the next start.
    pub fn remove(&self) {
        let _ = fs::remove_file(self.unfinished());
        // A power loss must not bring the file back: for a table that was restored since, it hides changes.
        if fs::remove_file(&self.path).is_ok() {
            let _ = sync_folder(&self.path);
        }
    }

    fn unfinished(&self) -> PathBuf {
        self.path.with_extension("mark.tmp")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watermark_of_another_cache_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = |fingerprint| WatermarkFile::new(folder.path().join("d.mark"), fingerprint);
        assert_eq!(file(1).load(), None);
        file(1).save(Some("2026-01-01 00:00:00"));
        assert_eq!(file(2).load(), None);
        assert_eq!(file(1).load().as_deref(), Some("2026-01-01 00:00:00"));
        file(1).save(None);
        assert!(!file(1).path.exists());
    }
}
