//! Each contender from empty, once more, after a restart with the same keys, and after another with new ones.

use std::path::Path;
use std::time::{Duration, Instant};

use granary_lab::{ClickHouse, Samples};

use super::contender::{CONTENDERS, FORMAT, ProxyContender, create, granary_ssd_cache, over_http};
use super::size::ProxyStudySize;
use super::stream::{Batch, Stream};
use crate::failure::{Failure, Result};
use crate::study::postgres::Postgres;
use crate::study::process::{free_port, resident_bytes};
use crate::study::served::Served;

/// The passes: name, the life that it belongs to, and its stream.
pub const PASSES: [(&str, usize, usize); 4] =
    [("from empty", 0, 0), ("again", 0, 0), ("restarted, again", 1, 0), ("restarted, new draws", 2, 1)];
/// Starts of everything except PostgreSQL.
pub const LIVES: usize = 3;
/// How long PostgreSQL may take to notice disconnected clients.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Runs of one contender.
#[derive(Default)]
pub struct ProxyRuns {
    /// By pass.
    pub seconds: [Samples; PASSES.len()],
    /// Rows that PostgreSQL read in each life.
    pub rows: [Samples; LIVES],
    /// Rows in the first life, counted by Granary from the answers it got.
    pub rows_told: Samples,
    /// RAM at the end of the first life: the growth of ClickHouse's process, and all of Granary's.
    pub clickhouse_bytes: Samples,
    pub granary_bytes: Samples,
    /// Batches that failed, and the first error.
    pub failed: u64,
    pub error: Option<String>,
}

/// What all contenders share.
pub struct Stage<'a> {
    pub size: &'a ProxyStudySize,
    pub scratch: &'a Path,
    pub rivals: &'a Path,
    pub postgres: &'a Postgres,
    pub streams: [Stream; 2],
    pub has_clickhouse: bool,
}

/// Runs all contenders in turns.
pub fn run(stage: &Stage<'_>) -> Result<[ProxyRuns; CONTENDERS.len()]> {
    let mut all = <[ProxyRuns; CONTENDERS.len()]>::default();
    for round in 0..stage.size.repetitions {
        for (contender, runs) in CONTENDERS.into_iter().zip(&mut all) {
            if stage.has_clickhouse || !contender.has_clickhouse() {
                stage.run(contender, runs)?;
                let medians: Vec<String> =
                    runs.seconds.iter().map(|pass| format!("{:.2}", pass.median())).collect();
                eprintln!("{}, {}: {} s", round + 1, contender.name(), medians.join(", "));
            }
        }
    }
    Ok(all)
}

impl Stage<'_> {
    fn run(&self, contender: ProxyContender, runs: &mut ProxyRuns) -> Result<()> {
        let folder = self.scratch.join("contender");
        let port = free_port()?;
        for stream in &self.streams {
            stream.write(&folder.join("clickhouse"))?;
        }
        for life in 0..LIVES {
            let before = self.rows()?;
            self.live(contender, life, &folder, port, runs)?;
            runs.rows[life].push((self.rows()? - before) as f64);
        }
        // The next contender must start as empty.
        std::fs::remove_dir_all(&folder).map_err(crate::failure::at(&folder))
    }

    fn live(
        &self,
        contender: ProxyContender,
        life: usize,
        folder: &Path,
        port: u16,
        runs: &mut ProxyRuns,
    ) -> Result<()> {
        let source = self.postgres.source("users");
        let served = match contender.has_granary() {
            true => Some(Served::start(&folder.join("granary"), port)?),
            false => None,
        };
        let mut clickhouse = match contender.has_clickhouse() {
            true => Some(ClickHouse::start(self.rivals, &folder.join("clickhouse"))?),
            false => None,
        };
        if life == 0 {
            if let Some(served) = &served {
                served.ask(&create("users", &source, &granary_ssd_cache(self.size)))?;
            }
            if let Some(clickhouse) = &mut clickhouse {
                let granary =
                    served.as_ref().map(|served| over_http(&served.url, FORMAT)).unwrap_or_default();
                clickhouse.run(&contender.statement(self.size, &source, &granary))?;
            }
        }
        let process = clickhouse.as_ref().map(ClickHouse::process_id);
        let bytes = || process.and_then(resident_bytes).unwrap_or(0) as f64;
        let at_first = bytes();
        for (pass, (_, _, stream)) in PASSES.iter().enumerate().filter(|(_, pass)| pass.1 == life) {
            let mut seconds = 0.0;
            for batch in &self.streams[*stream].batches {
                match self.look_up(batch, clickhouse.as_mut(), served.as_ref()) {
                    Ok(taken) => seconds += taken,
                    // Errors of ClickHouse are counted; wrong values end the study.
                    Err(Failure::Peer(error)) => {
                        runs.failed += 1;
                        runs.error.get_or_insert_with(|| error.to_string());
                    }
                    Err(failure) => return Err(failure),
                }
            }
            runs.seconds[pass].push(seconds);
        }
        if life == 0 {
            if process.is_some() {
                runs.clickhouse_bytes.push(bytes() - at_first);
            }
            if let Some(served) = &served {
                runs.granary_bytes.push(served.resident_bytes() as f64);
                let told = served.ask("SELECT sum(source_rows) FROM system.dictionaries")?;
                runs.rows_told.push(told.parse().unwrap_or(f64::NAN));
            }
        }
        drop(clickhouse);
        served.map_or(Ok(()), Served::stop)
    }

    /// The seconds of a batch. Its values are checked afterwards.
    fn look_up(
        &self,
        batch: &Batch,
        clickhouse: Option<&mut ClickHouse>,
        served: Option<&Served>,
    ) -> Result<f64> {
        match (clickhouse, served) {
            (Some(clickhouse), _) => {
                let (seconds, answer) = clickhouse.run(&batch.query("users"))?;
                match answer.trim() == batch.checksum {
                    true => Ok(seconds),
                    false => Err(Failure::Answer(format!("{answer} for {}", batch.file))),
                }
            }
            (None, Some(served)) => {
                let bytes = batch.bytes();
                let start = Instant::now();
                let rows = served.post("/dictionary/users", &bytes)?;
                let seconds = start.elapsed().as_secs_f64();
                batch.check(self.size, &rows)?;
                Ok(seconds)
            }
            (None, None) => unreachable!("somebody is asked"),
        }
    }

    /// Rows of the table that PostgreSQL has read so far, by index or scan. Connections report their counts when they
    /// end.
    fn rows(&self) -> Result<u64> {
        let deadline = Instant::now() + TIMEOUT;
        let clients = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' \
                       AND pid <> pg_backend_pid()";
        while self.postgres.number(clients)? > 0 {
            if Instant::now() > deadline {
                return Err(Failure::Answer("a client of PostgreSQL that does not go".to_owned()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // They leave the list before they report.
        std::thread::sleep(Duration::from_millis(200));
        self.postgres.number(
            "SELECT coalesce(sum(idx_tup_fetch), 0) + coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables",
        )
    }
}
