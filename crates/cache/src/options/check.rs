//! Refuses options that make no sense, by their names, before anything is touched.

use super::{FlashOptions, MemoryDivision, Options};
use crate::admission::{Admission, COUNT_MAX};
use crate::blocks::Plan;
use crate::memory::Pool;
use granary_log::OpenError;
use granary_log::limits::PARTITIONS_MAX;
use std::os::unix::ffi::OsStrExt;

fn invalid<T>(option: &'static str, reason: impl Into<String>) -> Result<T, OpenError> {
    Err(OpenError::Invalid { option, reason: reason.into() })
}

impl Options {
    /// Refuses options that no cache can be made of.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if self.memory_entries == Some(0) {
            return invalid("memory_entries", "a bound of 0 entries keeps none; for no bound leave it out");
        }
        if let MemoryDivision::Fixed { blocks_percent: percent @ 101.. } = self.memory_division {
            return invalid("memory_division", format!("{percent} % of the RAM tier is more than all of it"));
        }
        if self.memory_entries.is_some()
            && self.flash.as_ref().is_some_and(|flash| flash.admission != Admission::All)
        {
            return invalid(
                "memory_entries",
                "DRAM first, the RAM tier is bounded by memory_bytes alone; a number of entries is for RAM without flash, or with Admission::All",
            );
        }
        match &self.flash {
            Some(flash) => flash.check()?,
            None if self.memory_bytes == 0 => {
                return invalid(
                    "memory_bytes",
                    "with 0 bytes of RAM and no flash there is no room for anything",
                );
            }
            None => {}
        }
        if matches!(self.memory_division, MemoryDivision::Fixed { blocks_percent: 1.. })
            && !self.keeps_blocks()
        {
            return invalid(
                "memory_division",
                format!(
                    "{} bytes of RAM keep no blocks: they need flash with Admission::All, and room for some blocks of it beside entries",
                    self.memory_bytes
                ),
            );
        }
        Ok(())
    }
}

impl Options {
    /// Whether the RAM tier of each partition keeps blocks, if its division lets it.
    fn keeps_blocks(&self) -> bool {
        let options = self.of_partition();
        let Some(flash) = options.flash.as_ref().filter(|flash| flash.admission == Admission::All) else {
            return false;
        };
        // Wrong sizes are reported elsewhere.
        let Ok(geometry) = flash.geometry() else { return true };
        let pool = Pool::new(options.memory_bytes, options.memory_entries);
        Plan::new(options.memory_division, &pool, options.entries_of_shard(), &geometry).is_some()
    }
}

impl FlashOptions {
    /// Checks these as [`Options::check`] does; [`granary_log::Geometry`] checks the sizes.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        if self.path.file_name().is_none() || self.path.as_os_str().as_bytes().ends_with(b"/") {
            return invalid("path", format!("{:?} has no name for the cache's files at its end", self.path));
        }
        if !self.partitions.is_power_of_two() || self.partitions > PARTITIONS_MAX {
            let (partitions, most) = (self.partitions, PARTITIONS_MAX);
            return invalid("partitions", format!("{partitions} is not a power of two from 1 to {most}"));
        }
        if self.max_stored_keys == Some(0) {
            return invalid("max_stored_keys", "a bound of 0 keys keeps none; for no bound leave it out");
        }
        if let Admission::Probability(probability) = self.admission
            && !(0.0..=1.0).contains(&probability)
        {
            return invalid("admission", format!("{probability} is not a probability from 0 to 1"));
        }
        if let Admission::Flashield(flashield) = &self.admission
            && !(1..=COUNT_MAX).contains(&flashield.reads)
        {
            return invalid("admission", format!("{} reads are not from 1 to {COUNT_MAX}", flashield.reads));
        }
        match self.bytes_per_day {
            Some(_) if self.admission == Admission::All => invalid(
                "bytes_per_day",
                "Admission::All writes all that is put; a budget is for policies that choose, such as Admission::Reuse",
            ),
            Some(0) => {
                invalid("bytes_per_day", "a budget of 0 bytes writes nothing: that is Admission::None")
            }
            _ => Ok(()),
        }
    }
}
