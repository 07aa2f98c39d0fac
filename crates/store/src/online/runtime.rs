//! The private runtime: it runs the requests of online stores side by side.
//!
//! Callers block until their requests are answered, as at any other store. How many requests of a
//! store run at once, and how long each may take, are fixed numbers: the service sees both, and
//! neither says anything about what is stored.

use super::failure::{Failure, Fault};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Threads of the runtime. They only wait for the network, so two are enough for all stores.
const THREADS: usize = 2;
/// A request may take this long, and more by the bytes it moves.
const PATIENCE: Duration = Duration::from_secs(30);
/// The slowest line that is waited for, in bytes a second.
const SLOWEST: u64 = 100_000;
/// How long a connection may take to be made.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// A request, ready to be sent.
pub(super) type Request<T> = Pin<Box<dyn Future<Output = opendal::Result<T>> + Send>>;

/// The threads that online stores share. Clones are the same runtime.
#[derive(Clone, Debug)]
pub struct Runtime(Arc<Threads>);

#[derive(Debug)]
struct Threads(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub fn new() -> io::Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("oblivio-online").enable_all();
        Ok(Self(Arc::new(Threads(Some(builder.build()?)))))
    }

    /// A store's line to its service: at most `at_once` requests run at a time.
    pub(super) fn line(&self, at_once: usize) -> Line {
        Line { runtime: self.clone(), gate: Arc::new(Semaphore::new(at_once)) }
    }

    fn handle(&self) -> Option<&tokio::runtime::Handle> {
        self.0.0.as_ref().map(tokio::runtime::Runtime::handle)
    }
}

impl Drop for Threads {
    /// Requests that still run are given up. Nobody waits for them any more.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// A store's requests.
#[derive(Clone, Debug)]
pub(super) struct Line {
    runtime: Runtime,
    gate: Arc<Semaphore>,
}

impl Line {
    /// Sends a request that moves this many bytes, and calls `then` with its answer.
    pub(super) fn begin<T: Send + 'static>(
        &self,
        bytes: u64,
        request: Request<T>,
        then: impl FnOnce(Result<T, Failure>) + Send + 'static,
    ) {
        let gate = Arc::clone(&self.gate);
        let Some(runtime) = self.runtime.handle() else {
            return then(Err(Failure::new(&Fault::Ended)));
        };
        let answer = runtime.spawn(async move {
            let _permit = gate.acquire_owned().await.map_err(|_| Fault::Ended)?;
            match tokio::time::timeout(limit(bytes), request).await {
                Ok(answer) => answer.map_err(Fault::Refused),
                Err(_) => Err(Fault::TimedOut),
            }
        });
        // A second task, so that a panic in the library is an error and nobody waits for ever.
        runtime.spawn(async move {
            let answer = answer.await.unwrap_or(Err(Fault::Ended));
            then(answer.map_err(|fault| Failure::new(&fault)));
        });
    }

    /// Sends requests side by side, each with the bytes it moves, and waits for all answers.
    pub(super) fn all<T: Send + 'static>(
        &self,
        requests: Vec<(u64, Request<T>)>,
    ) -> Vec<Result<T, Failure>> {
        let (sender, receiver) = channel();
        let mut answers: Vec<_> = requests.iter().map(|_| None).collect();
        for (index, (bytes, request)) in requests.into_iter().enumerate() {
            let sender = sender.clone();
            // Nobody listens any more only if the caller is gone.
            self.begin(bytes, request, move |answer| drop(sender.send((index, answer))));
        }
        drop(sender);
        for (index, answer) in receiver {
            answers[index] = Some(answer);
        }
        let ended = || Err(Failure::new(&Fault::Ended));
        answers.into_iter().map(|answer| answer.unwrap_or_else(ended)).collect()
    }

    /// Sends one request and waits for its answer.
    pub(super) fn one<T: Send + 'static>(
        &self,
        bytes: u64,
        request: Request<T>,
    ) -> Result<T, Failure> {
        let ended = Err(Failure::new(&Fault::Ended));
        self.all(vec![(bytes, request)]).pop().unwrap_or(ended)
    }
}

/// How long a request may take.
fn limit(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes.div_ceil(SLOWEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_request_has_time_for_its_bytes() {
        assert_eq!(limit(0), Duration::from_secs(30));
        assert_eq!(limit(8_000_001), Duration::from_secs(30 + 81));
    }

    #[test]
    fn no_more_than_the_limit_run_at_once_and_answers_keep_their_order() {
        let line = Runtime::new().unwrap().line(8);
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let request = |number: usize| {
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            let request: Request<usize> = Box::pin(async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(2)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok(number)
            });
            (0, request)
        };
        let answers = line.all((0..64).map(request).collect());
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        assert_eq!(answers, (0..64).collect::<Vec<_>>());
        assert_eq!(most.load(Ordering::SeqCst), 8);
    }

    #[test]
    fn a_panic_is_an_error_and_later_requests_run() {
        let line = Runtime::new().unwrap().line(1);
        let bad: Request<()> = Box::pin(async { panic!("a request panics, as the test wants") });
        assert!(line.one(0, bad).unwrap_err().about("a").may_pass());
        assert_eq!(line.one(0, Box::pin(async { Ok(7) })).unwrap(), 7);
    }
}
