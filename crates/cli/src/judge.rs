//! What a server's threads tell of failures to whoever looks after the volume: each once.

use crate::mount::log;
use crate::queue::{Queue, Refusal};
use oblivio_volume::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Judges how things went, for all threads of a server.
pub struct Judge<Op, A, E> {
    queue: Arc<Queue<Op, A, E>>,
    /// What to do about a failure that the server does not get over by itself.
    advice: &'static str,
    last_failure: Mutex<String>,
}

impl<Op, A, E: Refusal> Judge<Op, A, E> {
    pub fn new(queue: Arc<Queue<Op, A, E>>, advice: &'static str) -> Self {
        Self { queue, advice, last_failure: Mutex::default() }
    }

    fn last_failure(&self) -> MutexGuard<'_, String> {
        self.last_failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that something was finished, and says so when the volume or its store failed or is
    /// back.
    pub fn judge(&self, error: Option<&Error>) {
        let was_stalled = self.queue.progressed();
        match error.filter(|error| E::is_failure(error)) {
            Some(error) => {
                let what = error.to_string();
                if self.is_news(&what) {
                    log::note(&format!("the volume cannot be reached: {what}"));
                    if is_final(error) {
                        log::note(self.advice);
                    }
                }
            }
            None if was_stalled => log::note("the store answers again"),
            None => {}
        }
    }

    /// Remembers a failure; whether it is another than the one before.
    pub fn is_news(&self, what: &str) -> bool {
        let mut last = self.last_failure();
        let news = *last != what;
        if news {
            what.clone_into(&mut last);
        }
        news
    }

    /// Forgets the failure, now that all is well; whether there was one.
    pub fn is_over(&self) -> bool {
        !std::mem::take(&mut *self.last_failure()).is_empty()
    }

    /// What failed last, if it is not over.
    #[cfg(test)]
    pub fn failure(&self) -> String {
        self.last_failure().clone()
    }
}

/// Whether the volume must be opened again. A server does not do that on its own: programs have been
/// told of writes that only the state that failed knows, and going back to what is stored would
/// take them back without a word.
pub fn is_final(error: &Error) -> bool {
    matches!(error, Error::Tampered(_) | Error::RolledBack(_) | Error::Closed(_))
}
