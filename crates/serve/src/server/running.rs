//! The threads of a server, and how it ends.

use crate::error::{self, Error};
use crate::log;
use crate::queue::{Refusal, RequestQueue};
use crate::threads::spawn;
use oblivio_volume::Result;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A server at work on a thread of its own.
pub struct Running(JoinHandle<Result<()>>);

impl Running {
    /// Starts a server, and the clock that answers for a stalled store.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start<Op, A, E>(
        queue: &Arc<RequestQueue<Op, A, E>>,
        serve: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> io::Result<Self>
    where
        Op: Send + 'static,
        A: Send + 'static,
        E: Refusal,
    {
        let watched = Arc::clone(queue);
        // Whatever ends the server, every request gets an answer.
        let end = End(Arc::clone(queue));
        spawn("deadline", move || {
            watched.watch(|waited| {
                log::note(&format!(
                    "the store has not answered for {} seconds; until it does, whoever waits gets \
                     an error",
                    waited.as_secs_f64()
                ));
            });
        })?;
        let server = spawn("server", move || {
            let _end = end;
            serve()
        })?;
        Ok(Running(server))
    }

    /// Waits until the server has ended and everything is committed.
    ///
    /// # Errors
    /// The error that ended it.
    pub fn wait(self) -> error::Result<()> {
        match self.0.join() {
            Ok(ended) => Ok(ended?),
            Err(_) => Err(Error::Panicked("the server of the volume")),
        }
    }
}

struct End<Op, A, E: Refusal>(Arc<RequestQueue<Op, A, E>>);

impl<Op, A, E: Refusal> Drop for End<Op, A, E> {
    fn drop(&mut self) {
        self.0.kill();
    }
}
