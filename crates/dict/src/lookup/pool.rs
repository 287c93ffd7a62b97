//! The threads that ask the source, and the requests waiting for them.

use super::flight::lock;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::limits;
use crate::source::Source;

/// A request. It runs on a source thread with that thread's connection, if there is one already; or is told
/// that the pool closed before its turn.
pub(crate) type Job = Box<dyn FnOnce(JobInput<'_>) + Send>;

/// What a job is given.
pub(crate) enum JobInput<'a> {
    /// The thread's connection, kept between jobs; `None`: to be made.
    Run(&'a mut Option<Box<dyn Source>>),
    Closed,
}

/// At most `threads_max` threads, started when they are needed.
pub(crate) struct Pool {
    shared: Arc<PoolShared>,
    handles: Mutex<Vec<JoinHandle<()>>>,
    threads_max: usize,
    queue_max: usize,
    keys_max: usize,
}

struct PoolShared {
    queue: Mutex<Queue>,
    work: Condvar,
    room: Condvar,
    ended: Condvar,
}

/// Invariant: `idle <= threads`.
#[derive(Default)]
struct Queue {
    /// Each with the number of keys that it asks for.
    jobs: VecDeque<(Job, usize)>,
    /// The keys of all of them.
    keys: usize,
    threads: usize,
    idle: usize,
    /// Counts the calls of `drop_connections`.
    generation: u64,
    state: QueueState,
}

/// What a thread keeps between jobs.
#[derive(Default)]
struct CachedConnection {
    source: Option<Box<dyn Source>>,
    /// The generation in which it was made.
    generation: u64,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum QueueState {
    #[default]
    Open,
    Closed,
}

/// What a pool does now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolFigures {
    /// Jobs waiting for a thread.
    pub waiting: u64,
    /// Keys that the waiting jobs ask for.
    pub waiting_keys: u64,
    /// Threads that exist.
    pub threads: u64,
    /// Threads that have a job.
    pub active: u64,
}

/// Why a job was refused; it was called with `JobInput::Closed`.
#[derive(Debug, PartialEq)]
pub(crate) enum Refused {
    /// The queue held this many requests, its maximum, for all of the time allowed.
    Full(usize),
    /// The queued requests asked for this many keys, the maximum, for all of the time allowed.
    FullOfKeys(usize),
    Closed,
    /// There is no thread for it, and none can be started.
    NoThread(String),
}

impl Pool {
    pub fn new(threads_max: usize, queue_max: usize) -> Pool {
        let shared = PoolShared {
            queue: Mutex::default(),
            work: Condvar::new(),
            room: Condvar::new(),
            ended: Condvar::new(),
        };
        let keys_max = limits::QUEUE_KEYS_MAX;
        Pool { shared: Arc::new(shared), handles: Mutex::default(), threads_max, queue_max, keys_max }
    }

    /// Queues a job that asks for `keys` keys, waiting for room at most `timeout`.
    pub fn push(&self, job: Job, keys: usize, timeout: Duration) -> Result<(), Refused> {
        let deadline = Instant::now() + timeout;
        let mut queue = lock(&self.shared.queue);
        loop {
            if queue.state == QueueState::Closed {
                drop(queue);
                job(JobInput::Closed);
                return Err(Refused::Closed);
            }
            if queue.jobs.len() < self.queue_max && queue.keys < self.keys_max {
                break;
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                let refused = match queue.jobs.len() {
                    waiting if waiting >= self.queue_max => Refused::Full(waiting),
                    _ => Refused::FullOfKeys(queue.keys),
                };
                drop(queue);
                job(JobInput::Closed);
                return Err(refused);
            };
            queue = self.shared.room.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.jobs.push_back((job, keys));
        queue.keys += keys;
        if queue.jobs.len() > queue.idle && queue.threads < self.threads_max {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("granary-source".into());
            match thread.spawn(move || shared.run()) {
                Ok(handle) => {
                    queue.threads += 1;
                    lock(&self.handles).push(handle);
                }
                // A running thread will get to it; without one the job would wait for ever.
                Err(_) if queue.threads > 0 => {}
                Err(e) => {
                    let refused = queue.jobs.pop_back();
                    queue.keys -= keys;
                    drop(queue);
                    refused.into_iter().for_each(|(job, _)| job(JobInput::Closed));
                    return Err(Refused::NoThread(e.to_string()));
                }
            }
        }
        self.shared.work.notify_one();
        Ok(())
    }

    /// No job gets a connection any more that existed before. Waiting threads drop theirs now, others at the end of
    /// their job.
    pub fn drop_connections(&self) {
        lock(&self.shared.queue).generation += 1;
        self.shared.work.notify_all();
    }

    /// Its figures now.
    pub fn figures(&self) -> PoolFigures {
        let queue = lock(&self.shared.queue);
        PoolFigures {
            waiting: queue.jobs.len() as u64,
            waiting_keys: queue.keys as u64,
            threads: queue.threads as u64,
            active: (queue.threads - queue.idle) as u64,
        }
    }

    /// Tells the waiting jobs that there will be no turn, and waits for the running ones, at most `timeout`:
    /// a source that hangs must not hang its user.
    pub fn close(&self, timeout: Duration) {
        let deadline = Instant::now() + timeout;
        let mut queue = lock(&self.shared.queue);
        queue.state = QueueState::Closed;
        let waiting = std::mem::take(&mut queue.jobs);
        queue.keys = 0;
        drop(queue);
        waiting.into_iter().for_each(|(job, _)| job(JobInput::Closed));
        self.shared.work.notify_all();
        self.shared.room.notify_all();
        let mut queue = lock(&self.shared.queue);
        while queue.threads > 0 {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return };
            queue = self.shared.ended.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(queue);
        let own = std::thread::current().id();
        for handle in lock(&self.handles).drain(..).filter(|handle| handle.thread().id() != own) {
            // A job catches its own panics.
            let _ = handle.join();
        }
    }
}

impl PoolShared {
    fn run(&self) {
        let mut kept = CachedConnection::default();
        while let Some(job) = self.next(&mut kept) {
            let source = &mut kept.source;
            self.room.notify_one();
            // A job's panic must not end the thread: the number of threads is limited.
            let run = catch_unwind(AssertUnwindSafe(|| job(JobInput::Run(source))));
            if run.is_err() {
                kept.source = None;
            }
        }
        drop(kept);
        lock(&self.queue).threads -= 1;
        self.ended.notify_all();
    }

    fn next(&self, kept: &mut CachedConnection) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if kept.generation != queue.generation {
                kept.generation = queue.generation;
                // Closing a connection may take long.
                drop(queue);
                kept.source = None;
                queue = lock(&self.queue);
                continue;
            }
            if let Some((job, keys)) = queue.jobs.pop_front() {
                queue.keys -= keys;
                return Some(job);
            }
            if queue.state == QueueState::Closed {
                return None;
            }
            queue.idle += 1;
            queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_full_queue_refuses_and_closing_tells_who_waits() {
        let pool = Pool::new(1, 1);
        let (started, is_started) = channel();
        let (go, may_go) = channel::<()>();
        let running = Box::new(move |_: JobInput<'_>| {
            started.send(()).unwrap();
            let _ = may_go.recv();
        });
        pool.push(running, 3, Duration::ZERO).unwrap();
        is_started.recv().unwrap();
        let (told, turns) = channel();
        let tell = |name: &'static str| -> Job {
            let told = told.clone();
            Box::new(move |input| told.send((name, matches!(input, JobInput::Closed))).unwrap())
        };
        pool.push(tell("waits"), 5, Duration::ZERO).unwrap();
        let figures = PoolFigures { waiting: 1, waiting_keys: 5, threads: 1, active: 1 };
        assert_eq!(pool.figures(), figures);
        assert_eq!(pool.push(tell("full"), 1, Duration::from_millis(20)), Err(Refused::Full(1)));
        assert_eq!(turns.recv().unwrap(), ("full", true));
        pool.close(Duration::from_millis(20));
        assert_eq!(turns.recv().unwrap(), ("waits", true));
        assert_eq!(pool.push(tell("late"), 1, Duration::ZERO), Err(Refused::Closed));
        assert_eq!(turns.recv().unwrap(), ("late", true));
        go.send(()).unwrap();
        pool.close(Duration::from_secs(60));
        assert_eq!(lock(&pool.shared.queue).threads, 0);
    }

    #[test]
    fn so_many_keys_wait_and_then_no_more_requests() {
        let pool = Pool { keys_max: 10, ..Pool::new(1, 100) };
        let (go, may_go) = channel::<()>();
        let (started, is_started) = channel();
        let hold = move |_: JobInput<'_>| {
            started.send(()).unwrap();
            let _ = may_go.recv();
        };
        pool.push(Box::new(hold), 500, Duration::ZERO).unwrap();
        is_started.recv().unwrap();
        let nothing = || -> Job { Box::new(|_| ()) };
        for keys in [9, 500] {
            pool.push(nothing(), keys, Duration::ZERO).unwrap();
        }
        assert_eq!(pool.push(nothing(), 1, Duration::from_millis(20)), Err(Refused::FullOfKeys(509)));
        assert_eq!(pool.figures().waiting_keys, 509);
        go.send(()).unwrap();
        pool.push(nothing(), 1, Duration::from_secs(20)).unwrap();
        pool.close(Duration::from_secs(60));
        assert_eq!(pool.figures(), PoolFigures::default());
    }

    #[test]
    fn a_job_that_panics_leaves_its_thread_to_the_next() {
        let pool = Pool::new(1, 10);
        let (done, results) = channel();
        for job in 0..3 {
            let done = done.clone();
            let run = move |_: JobInput<'_>| match job {
                0 => panic!("on purpose"),
                _ => done.send(job).unwrap(),
            };
            pool.push(Box::new(run), 0, Duration::ZERO).unwrap();
        }
        assert_eq!([0; 2].map(|_| results.recv_timeout(Duration::from_secs(20)).unwrap()), [1, 2]);
        pool.close(Duration::from_secs(60));
        assert_eq!(lock(&pool.shared.queue).threads, 0);
    }

    #[test]
    fn jobs_run_side_by_side_up_to_the_limit() {
        let pool = Pool::new(3, 100);
        let together = Arc::new(std::sync::Barrier::new(3));
        let (done, results) = channel();
        for _ in 0..9 {
            let (together, done) = (together.clone(), done.clone());
            let job = move |_: JobInput<'_>| {
                together.wait();
                done.send(()).unwrap();
            };
            pool.push(Box::new(job), 0, Duration::ZERO).unwrap();
        }
        for _ in 0..9 {
            results.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        pool.close(Duration::from_secs(60));
    }
}
