//! The private runtime: it runs the requests of online stores side by side.
//!
//! Callers block until their requests are answered, as at any other store. How many requests of a
//! store run at once, and how long each may take, are fixed numbers: the service sees both, and
//! neither says anything about what is stored. A store's gate holds them.

use super::driver::Request;
use super::failure::{Failure, Fault};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

/// Threads of the runtime. They only wait for the network, so two are enough for all stores.
const THREADS: usize = 2;

/// The threads that online stores share. Clones are the same runtime.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<Threads>);

#[derive(Debug)]
struct Threads {
    runtime: Option<tokio::runtime::Runtime>,
    answers: Arc<AtomicU64>,
}

impl Runtime {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn new() -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("oblivio-online").enable_all();
        let runtime = Some(builder.build()?);
        Ok(Self(Arc::new(Threads { runtime, answers: Arc::default() })))
    }

    fn handle(&self) -> Option<&tokio::runtime::Handle> {
        self.0.runtime.as_ref().map(tokio::runtime::Runtime::handle)
    }

    /// Counts the requests of all stores that were answered well: a sign of life of the network.
    #[must_use]
    pub fn answers(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.answers)
    }
}

impl Drop for Threads {
    /// Requests that still run are given up. Nobody waits for them any more.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Runtime {
    /// Sends a request, and calls `then` with its answer.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        request: Request<T>,
        then: impl FnOnce(Result<T, Failure>) + Send + 'static,
    ) {
        let Some(runtime) = self.handle() else {
            return then(Err(Failure::new(&Fault::Ended)));
        };
        let answer = runtime.spawn(request);
        let answers = self.answers();
        // A second task, so that a panic in the library is an error and nobody waits for ever.
        runtime.spawn(async move {
            let answer = answer.await.unwrap_or(Err(Fault::Ended));
            if answer.is_ok() {
                answers.fetch_add(1, Ordering::Relaxed);
            }
            then(answer.map_err(|fault| Failure::new(&fault)));
        });
    }

    /// Sends requests side by side, and waits for all answers.
    pub(super) fn all<T: Send + 'static>(
        &self,
        requests: Vec<Request<T>>,
    ) -> Vec<Result<T, Failure>> {
        let (sender, receiver) = channel();
        let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
        for (index, request) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            // Nobody listens any more only if the caller is gone.
            self.begin(request, move |answer| drop(sender.send((index, answer))));
        }
        drop(sender);
        for (index, answer) in receiver {
            answers[index] = Some(answer);
        }
        let ended = || Err(Failure::new(&Fault::Ended));
        answers.into_iter().map(|answer| answer.unwrap_or_else(ended)).collect()
    }

    /// Sends one request and waits for its answer.
    pub(super) fn one<T: Send + 'static>(&self, request: Request<T>) -> Result<T, Failure> {
        let ended = Err(Failure::new(&Fault::Ended));
        self.all(vec![request]).pop().unwrap_or(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Gate;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    #[test]
    fn no_more_than_the_limit_run_at_once_and_answers_keep_their_order() {
        let (runtime, gate) = (Runtime::new().unwrap(), Gate::new(8));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let request = |number: usize| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            let gate = Arc::clone(&gate);
            let request = async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(number)
            };
            let request: Request<usize> = Box::pin(async move { gate.pass(0, request).await });
            request
        };
        let answers = runtime.all((0..64).map(request).collect());
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..64).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 8);
    }

    #[test]
    fn a_panic_is_an_error_and_later_requests_run() {
        let runtime = Runtime::new().unwrap();
        let bad: Request<()> = Box::pin(async { panic!("a request panics, as the test wants") });
        assert!(runtime.one(bad).unwrap_err().about("a").may_pass());
        assert_eq!(runtime.one(Box::pin(async { Ok(7) })).unwrap(), 7);
    }
}
