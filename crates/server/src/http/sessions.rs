//! Sessions that outlive a request: `session_id` in the URL. SET and USE hold for the session's later requests;
//! settings in the URL for their own request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use granary_sql::{Error, Session};

use super::App;
use super::caller::Caller;
use super::url::Parameters;
use crate::limits::{SESSION_CHECK_SECONDS, SESSION_SECONDS, SESSION_SECONDS_MAX, SESSIONS_MAX};

/// A user and a name.
type Key = (String, String);

/// The sessions that are kept.
#[derive(Default)]
pub struct Sessions {
    kept: Mutex<HashMap<Key, HeldSession>>,
}

struct HeldSession {
    session: Arc<Session>,
    usage: Usage,
}

/// Whether a request uses a session now.
#[derive(Clone, Copy)]
enum Usage {
    Taken,
    Idle { since: Instant, until: Instant },
}

/// A session for one request. A named session is locked until this is dropped.
pub struct Lease {
    pub session: Arc<Session>,
    /// `None`: it has no name, and ends with the request.
    _lease: Option<SessionLease>,
}

/// The table entry of a session in use.
struct SessionLease {
    app: Arc<App>,
    key: Key,
    timeout: Duration,
    end: End,
}

/// What happens to a session after a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    IsKept,
    IsClosed,
}

impl Drop for SessionLease {
    fn drop(&mut self) {
        let mut kept = self.app.sessions.lock();
        if self.end == End::IsClosed {
            kept.remove(&self.key);
        } else if let Some(known) = kept.get_mut(&self.key) {
            let since = Instant::now();
            known.usage = Usage::Idle { since, until: since + self.timeout };
        }
    }
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, HeldSession>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops sessions whose time is over, for ever.
    pub async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(Duration::from_secs(SESSION_CHECK_SECONDS)).await;
            drop_expired(&mut self.lock());
        }
    }

    /// The session that a request names, or one for this request alone.
    ///
    /// # Errors
    /// SESSION_IS_LOCKED if another request uses it; with `session_check=1`, that there is no such session;
    /// INVALID_SESSION_TIMEOUT if that is no number or out of range; or that the maximum number of sessions is in use.
    pub fn find(&self, caller: &Caller, parameters: &Parameters) -> Result<Lease, Error> {
        let Some(name) = parameters.get("session_id") else {
            return Ok(Lease { session: Arc::new(caller.session()), _lease: None });
        };
        let timeout = timeout(parameters)?;
        let is_on = |name: &str| parameters.get(name).is_some_and(|value| value == "1");
        let end = if is_on("close_session") { End::IsClosed } else { End::IsKept };
        let mut kept = self.lock();
        drop_expired(&mut kept);
        let key = (caller.user.clone(), name.clone());
        let session = match kept.get_mut(&key) {
            Some(HeldSession { usage: Usage::Taken, .. }) => {
                let message = format!("Session {name} is locked by a concurrent client");
                return Err(Error::session_is_locked(message));
            }
            Some(known) => {
                known.usage = Usage::Taken;
                Arc::clone(&known.session)
            }
            None if is_on("session_check") => {
                return Err(Error::session_not_found(format!("Session {name} not found")));
            }
            None => {
                if kept.len() >= SESSIONS_MAX {
                    let victim = victim(&kept).ok_or_else(|| {
                        let message = format!("{SESSIONS_MAX} sessions are in use; send no session_id");
                        Error::bad_arguments(message)
                    })?;
                    kept.remove(&victim);
                }
                let session = Arc::new(caller.session());
                kept.insert(key.clone(), HeldSession { session: Arc::clone(&session), usage: Usage::Taken });
                session
            }
        };
        let lease = SessionLease { app: Arc::clone(&caller.app), key, timeout, end };
        Ok(Lease { session, _lease: Some(lease) })
    }
}

fn drop_expired(kept: &mut HashMap<Key, HeldSession>) {
    let now = Instant::now();
    kept.retain(|_, kept| !matches!(kept.usage, Usage::Idle { until, .. } if until <= now));
}

/// How long a session is kept after a request.
fn timeout(parameters: &Parameters) -> Result<Duration, Error> {
    let Some(text) = parameters.get("session_timeout") else {
        return Ok(Duration::from_secs(SESSION_SECONDS));
    };
    let seconds = text.parse().ok().filter(|seconds| *seconds <= SESSION_SECONDS_MAX);
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let most = SESSION_SECONDS_MAX;
        Error::invalid_session_timeout(format!(
            "session_timeout is a number of seconds up to {most}, not {text}"
        ))
    })
}

/// The session to drop for a new one: of the user with the most sessions, one that is as it began, if there is any, and
/// of these the least recently used. `None`: all are in use.
fn victim(kept: &HashMap<Key, HeldSession>) -> Option<Key> {
    let mut of_user: HashMap<&str, usize> = HashMap::new();
    for (user, _) in kept.keys() {
        *of_user.entry(user.as_str()).or_default() += 1;
    }
    let idle = kept.iter().filter_map(|(key, kept)| match kept.usage {
        Usage::Idle { since, .. } => Some((key, kept, since)),
        Usage::Taken => None,
    });
    let victim = idle.min_by_key(|(key, kept, since)| {
        let sessions = of_user.get(key.0.as_str()).copied().unwrap_or_default();
        (std::cmp::Reverse(sessions), !kept.session.is_unmodified(), *since)
    });
    victim.map(|(key, ..)| key.clone())
}
