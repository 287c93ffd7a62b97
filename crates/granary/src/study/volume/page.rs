//! The page of the study. Parts that were not measured stay as they are.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::{Part, VolumeFindings};
use crate::failure::{Result, at};

/// docs/studies/volume.md, and a table for each part beside it.
pub struct VolumePage {
    folder: PathBuf,
    quick: bool,
    parts: Vec<(Part, String)>,
}

impl Part {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Part::Maps => "Maps on a device that does nothing",
            Part::Memory => "RAM and time of the maps by themselves",
            Part::Transport => "Over NBD, in RAM",
            Part::Disk => "Over NBD, on the device",
            Part::Amplification => "Write amplification",
            Part::Opening => "Opening",
            Part::Endurance => "Full, and overwritten for a long time",
        }
    }

    fn name(self) -> String {
        self.to_possible_value().expect("no part is hidden").get_name().to_owned()
    }

    fn marks(self) -> [String; 2] {
        let name = self.name();
        [format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n")]
    }
}

impl VolumePage {
    /// The existing page, or an empty one.
    pub fn read(folder: &Path, quick: bool) -> Result<Self> {
        let path = folder.join("volume.md");
        let text = match path.exists() {
            true => std::fs::read_to_string(&path).map_err(at(&path))?,
            false => String::new(),
        };
        let found = |part: &Part| {
            let [begin, end] = part.marks();
            let (_, after) = text.split_once(&begin)?;
            Some((*part, after.split_once(&end)?.0.to_owned()))
        };
        let parts = Part::value_variants().iter().filter_map(found).collect();
        Ok(Self { folder: folder.to_owned(), quick, parts })
    }

    /// Replaces a part's section by its new results.
    pub fn put(&mut self, part: Part, findings: &VolumeFindings) -> Result<()> {
        self.parts.retain(|(other, _)| *other != part);
        self.parts.push((part, findings.text.clone()));
        let path = self.folder.join(format!("volume-{}.csv", part.name()));
        let tables: Vec<String> = findings.reports.iter().map(|report| report.csv()).collect();
        std::fs::write(&path, tables.join("\n")).map_err(at(&path))
    }

    /// Writes the page.
    pub fn write(&self, notes: &[String]) -> Result<()> {
        let warning = match self.quick {
            false => "",
            true => "\n**Made with `--quick`: the sizes are too small for the figures to mean anything.**\n",
        };
        let notes: Vec<String> = notes.iter().map(|note| format!("- {note}")).collect();
        let mut text = format!(
            "\
<!-- Written by `granary study volume`. Change the program, not this page. -->

# Volumes: maps, serving, the log and its cleaning
{warning}
```sh
scripts/install-test-servers.sh    # fio, nbdkit, qemu-nbd
granary study volume               # writes this page, its plots, and a table for each part
```

{notes}

Runs that are compared took turns; each figure is the median of its runs. A machine that does other work \
meanwhile, as a shared one does, changes figures more than their ratios.
",
            notes = notes.join("\n"),
        );
        for part in Part::value_variants() {
            let Some((_, found)) = self.parts.iter().find(|(other, _)| other == part) else { continue };
            let [begin, end] = part.marks();
            text.push_str(&format!("\n## {}\n{begin}{found}{end}", part.title()));
        }
        let path = self.folder.join("volume.md");
        std::fs::write(&path, text).map_err(at(&path))
    }
}
