//! Reports of failures by a server's threads to the administrator: each failure once.

use crate::log;
use crate::queue::{Refusal, RequestQueue};
use oblivio_volume::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is said when another computer has the volume now. Nothing is damaged.
const OVERTAKEN: &str = "another computer took the volume over: nothing more is read or written \
                         here. What was synced is kept, what was not is lost. Unmount, or end this \
                         server; open the volume again to take it back";

/// Judges outcomes, for all threads of a server.
pub struct Judge<Op, A, E> {
    queue: Arc<RequestQueue<Op, A, E>>,
    /// Advice for a failure that the server cannot recover from.
    advice: &'static str,
    last_failure: Mutex<String>,
}

impl<Op, A, E: Refusal> Judge<Op, A, E> {
    pub fn new(queue: Arc<RequestQueue<Op, A, E>>, advice: &'static str) -> Self {
        Self { queue, advice, last_failure: Mutex::default() }
    }

    fn last_failure(&self) -> MutexGuard<'_, String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an operation finished. Reports when the volume or its store failed or is back.
    pub fn judge(&self, error: Option<&Error>) {
        let was_stalled = self.queue.progressed();
        match error.filter(|error| E::is_failure(error)) {
            Some(error) => {
                let what = error.to_string();
                if self.is_news(&what) {
                    self.report(error, &what);
                }
            }
            None if was_stalled => log::note("the store answers again"),
            None => {}
        }
    }

    /// Says what failed, and what to do about a failure that stays.
    fn report(&self, error: &Error, what: &str) {
        if matches!(error, Error::Overtaken) {
            log::note(OVERTAKEN);
            return;
        }
        log::note(&format!("the volume cannot be reached: {what}"));
        if is_final(error) {
            log::note(self.advice);
        }
    }

    /// Remembers a failure; returns whether it differs from the last one.
    pub fn is_news(&self, what: &str) -> bool {
        let mut last = self.last_failure();
        let news = *last != what;
        if news {
            what.clone_into(&mut last);
        }
        news
    }

    /// Forgets the failure, now that all is well; returns whether there was one.
    pub fn is_over(&self) -> bool {
        !std::mem::take(&mut *self.last_failure()).is_empty()
    }

    /// What failed last, if it is not over.
    #[cfg(test)]
    pub fn failure(&self) -> String {
        self.last_failure().clone()
    }
}

/// Whether the volume must be opened again. A server never does that on its own. Programs have had
/// writes acknowledged that only the failed state knows; going back to the stored state would
/// silently undo them.
pub fn is_final(error: &Error) -> bool {
    matches!(error, Error::Tampered(_) | Error::RolledBack(_) | Error::Overtaken | Error::Closed(_))
}
