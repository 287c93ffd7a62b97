//! Runs measurements in turns.

use super::contender::{Contender, Engine, Programs};
use super::error::StoreError;
use super::measurement::{Contents, Loaded, Measured, Phase, Reading};
use crate::Samples;
use std::path::PathBuf;

/// A series of measurements: a contender, its store and its reading.
#[derive(Clone)]
pub struct Job {
    pub contender: Contender,
    pub contents: Contents,
    pub reading: Reading,
}

/// Results of a job, one for each repetition; `None`: it cannot run, or failed.
pub type Runs = Option<Vec<Measured>>;

/// Carries out the study.
pub struct Runner<'a> {
    pub programs: &'a Programs,
    /// Folder of the stores.
    pub folder: PathBuf,
    pub repetitions: u64,
    pub say: &'a dyn Fn(&str),
}

impl Runner<'_> {
    /// A store of an engine, in its own folder.
    pub fn contents(
        &self,
        engine: Engine,
        keys: u64,
        value_bytes: u64,
        block_bytes: u64,
        in_key_order: bool,
    ) -> Contents {
        let folder = self.folder.join(engine.name());
        Contents { folder, keys, value_bytes, in_key_order, block_bytes }
    }

    /// Loads a store. A peer that fails is left out: `None`.
    ///
    /// # Errors
    /// Granary fails.
    pub fn load(&self, engine: Engine, contents: &Contents) -> Result<Option<Loaded>, StoreError> {
        if engine != Engine::Granary && self.programs.peers.is_none() {
            return Ok(None);
        }
        let loaded = self.unless_peer_fails(engine, self.programs.load(engine, contents))?;
        if let Some(loaded) = &loaded {
            let (keys, bytes, seconds) = (loaded.keys, loaded.disk_bytes >> 20, loaded.seconds);
            (self.say)(&format!("{} loaded: {keys} keys, {bytes} MiB, {seconds:.1} s", engine.name()));
        }
        Ok(loaded)
    }

    /// Removes stores.
    pub fn remove(&self, engines: &[Engine]) {
        for engine in engines {
            // Files that remain are removed with the whole folder.
            let _ = std::fs::remove_dir_all(self.folder.join(engine.name()));
        }
    }

    /// Runs jobs in turns, each once per repetition.
    ///
    /// # Errors
    /// Granary fails, or a process cannot be limited.
    pub fn measure(&self, jobs: &[Job]) -> Result<Vec<Runs>, StoreError> {
        let mut all: Vec<Runs> =
            jobs.iter().map(|job| self.programs.can_run(&job.contender).then(Vec::new)).collect();
        for repetition in 1..=self.repetitions {
            for place in turns(jobs.len(), repetition, self.repetitions) {
                let (job, runs) = (&jobs[place], &mut all[place]);
                let Some(list) = runs else { continue };
                let mut reading = job.reading.clone();
                reading.seed = repetition;
                let measured = self.programs.read(&job.contender, &job.contents, &reading);
                match self.unless_peer_fails(job.contender.engine, measured)? {
                    Some(measured) => {
                        (self.say)(&line(job, &measured));
                        list.push(measured);
                    }
                    None => *runs = None,
                }
            }
        }
        Ok(all)
    }

    fn unless_peer_fails<T>(
        &self,
        engine: Engine,
        result: Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(why) if engine != Engine::Granary && !matches!(why, StoreError::Limit(_)) => {
                (self.say)(&format!("{} is left out: {why}", engine.name()));
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }
}

/// The order of the jobs in a repetition. Each repetition begins with another job, and none with the first: no job
/// always follows right after the loading, or after the same neighbour.
fn turns(jobs: usize, repetition: u64, repetitions: u64) -> impl Iterator<Item = usize> {
    let first = (2 * repetition - 1) * jobs as u64 / (2 * repetitions);
    (0..jobs).map(move |place| (first as usize + place) % jobs)
}

fn line(job: &Job, measured: &Measured) -> String {
    let reading = &job.reading;
    let phase = |phase: &Phase| format!("{} {:.2} us", phase.name, phase.mean_us);
    let phases: Vec<String> = measured.phases.iter().map(phase).collect();
    format!(
        "{}, blocks of {}, cache {} + {} KiB: {}, {} MiB of RAM",
        job.contender.name,
        job.contents.block_bytes,
        reading.cache_bytes >> 10,
        reading.row_cache_bytes >> 10,
        phases.join(", "),
        measured.memory_bytes >> 20
    )
}

/// A figure, of each repetition.
pub fn samples(runs: &[Measured], figure: impl Fn(&Measured) -> f64) -> Samples {
    let mut samples = Samples::default();
    runs.iter().for_each(|measured| samples.push(figure(measured)));
    samples
}

/// The median of a figure of a phase; NaN: it was not measured.
pub fn median(runs: &Runs, phase: usize, figure: impl Fn(&Phase) -> f64) -> f64 {
    runs.as_ref().map_or(f64::NAN, |runs| samples(runs, |measured| figure(&measured.phases[phase])).median())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_job_has_the_same_turn_in_each_repetition() {
        let turns = |jobs, repetition, repetitions| turns(jobs, repetition, repetitions).collect::<Vec<_>>();
        assert_eq!(turns(4, 1, 1), [2, 3, 0, 1]);
        for (jobs, repetitions) in [(1, 3), (2, 3), (11, 1), (11, 3), (96, 5)] {
            let mut firsts = Vec::new();
            for repetition in 1..=repetitions {
                let mut order = turns(jobs, repetition, repetitions);
                firsts.push(order[0]);
                order.sort_unstable();
                assert_eq!(order, (0..jobs).collect::<Vec<_>>());
            }
            if jobs as u64 >= 2 * repetitions {
                firsts.dedup();
                assert_eq!((firsts.len() as u64, firsts.contains(&0)), (repetitions, false));
            }
        }
    }

    #[test]
    fn a_peer_that_fails_is_left_out_but_not_a_limit_that_cannot_be_made() {
        let programs = Programs { granary: Vec::new(), peers: None, can_limit: true };
        let runner = Runner { programs: &programs, folder: PathBuf::new(), repetitions: 1, say: &|_| {} };
        let failed = |engine, why| runner.unless_peer_fails::<()>(engine, Err(why));
        let wrong = || StoreError::Wrong(String::new());
        assert!(failed(Engine::RocksDb, wrong()).unwrap().is_none());
        assert!(failed(Engine::Granary, wrong()).is_err());
        let limit = StoreError::Limit(std::io::ErrorKind::OutOfMemory.into());
        assert!(matches!(failed(Engine::RocksDb, limit), Err(StoreError::Limit(_))));
    }
}
