//! Sessions that outlive a request: `session_id` in the URL. What SET and USE say stays for the next request with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use granary_sql::{Error, Session};

use super::caller::Caller;
use crate::limits::{SESSION_SECONDS, SESSION_SECONDS_MAX, SESSIONS_MAX};

/// The sessions that are kept, by user and name.
#[derive(Default)]
pub struct Sessions {
    kept: Mutex<HashMap<(String, String), Kept>>,
}

struct Kept {
    session: Arc<Session>,
    until: Instant,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session that a request names, or one for this request alone.
    ///
    /// # Errors
    /// Too many sessions are kept, with `session_check=1` there is none of this name, or `session_timeout` is no
    /// number of seconds that is allowed.
    pub fn find(&self, caller: &Caller, parameters: &HashMap<String, String>) -> Result<Arc<Session>, Error> {
        let Some(name) = parameters.get("session_id") else { return Ok(Arc::new(caller.session())) };
        let seconds = match parameters.get("session_timeout") {
            None => SESSION_SECONDS,
            Some(text) => {
                text.parse().ok().filter(|seconds| *seconds <= SESSION_SECONDS_MAX).ok_or_else(|| {
                    let most = SESSION_SECONDS_MAX;
                    Error::bad_arguments(format!(
                        "session_timeout is a number of seconds up to {most}, not {text}"
                    ))
                })?
            }
        };
        let now = Instant::now();
        let until = now + Duration::from_secs(seconds);
        let mut kept = self.lock();
        kept.retain(|_, session| session.until > now);
        let key = (caller.user.clone(), name.clone());
        if let Some(known) = kept.get_mut(&key) {
            known.until = until;
            return Ok(Arc::clone(&known.session));
        }
        if parameters.get("session_check").is_some_and(|check| check == "1") {
            return Err(Error::session_not_found(format!("Session {name} not found")));
        }
        if kept.len() >= SESSIONS_MAX {
            let message =
                format!("{SESSIONS_MAX} sessions are open; wait until some time out, or send no session_id");
            return Err(Error::bad_arguments(message));
        }
        let session = Arc::new(caller.session());
        kept.insert(key, Kept { session: Arc::clone(&session), until });
        Ok(session)
    }
}
