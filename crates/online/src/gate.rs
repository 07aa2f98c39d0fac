//! The one gate through which all requests of a store go.
//!
//! It lets a fixed number through at once. When the service asks to wait, it is closed for all of
//! them: as long as the service says, or by how often it has said so in a row. What waits, and for
//! how long, so follows from the service's own answers and from nothing that is stored.

use super::failure::{Fault, Kind};
use oblivio_store::waits::{self, Pauses, WaitPlace};
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// The most patience of this process, in milliseconds, with a request and with a service that asks
/// to wait. A longer wait is an error at once, and still nothing is sent before its end: a mount
/// must not hang.
static PATIENCE: AtomicU64 = AtomicU64::new(waits::COMMAND.as_millis() as u64);

/// Bounds how long any store of this process waits for an answer.
pub fn bound_patience(most: Duration) {
    PATIENCE.store(u64::try_from(most.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

fn patience() -> Duration {
    Duration::from_millis(PATIENCE.load(Ordering::Relaxed))
}

#[derive(Debug)]
pub(super) struct Gate {
    places: Semaphore,
    place: WaitPlace,
    closed: Mutex<Closed>,
}

#[derive(Debug, Default)]
struct Closed {
    until: Option<Instant>,
    /// How often it was closed.
    times: u64,
    /// How often in a row, without an answer in between.
    in_a_row: u32,
}

impl Gate {
    /// A gate for this many requests at once.
    pub(super) fn new(at_once: usize) -> Arc<Self> {
        let (places, place) = (Semaphore::new(at_once), WaitPlace::default());
        Arc::new(Self { places, place, closed: Mutex::default() })
    }

    /// Sends a request that moves this many bytes, once it is its turn.
    pub(super) async fn pass<T>(
        &self,
        bytes: u64,
        request: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let _place = self.places.acquire().await.map_err(|_| Fault::Ended)?;
        let times = self.opened().await?;
        let most = waits::request(bytes, patience());
        let answer = timeout(most, request).await.unwrap_or(Err(Fault::TimedOut));
        match answer.as_ref().err().and_then(Fault::wait) {
            Some(seconds) => self.close(times, seconds),
            None => self.closed().in_a_row = 0,
        }
        answer
    }

    /// Waits until it is open, and says how often it had been closed.
    async fn opened(&self) -> Result<u64, Fault> {
        loop {
            let (until, times) = {
                let closed = self.closed();
                (closed.until, closed.times)
            };
            let left = until.map_or(Duration::ZERO, |it| it.duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(times);
            }
            if left > patience() {
                return Err(Fault::of(Kind::Io(io::ErrorKind::ResourceBusy)));
            }
            sleep(left).await;
        }
    }

    /// Closes it for all, as a request that went through after the `times`-th time was asked to
    /// wait. Requests that were under way together count as one.
    pub(super) fn close(&self, times: u64, seconds: Option<u64>) {
        let mut closed = self.closed();
        if closed.times == times {
            closed.times += 1;
            closed.in_a_row += 1;
        }
        let wait = self.wait(&closed, seconds);
        let until = Instant::now() + wait;
        closed.until = Some(closed.until.map_or(until, |held| held.max(until)));
    }

    /// How long it is closed: as long as the service says, else by how often it was closed.
    fn wait(&self, closed: &Closed, seconds: Option<u64>) -> Duration {
        if let Some(seconds) = seconds.filter(|&it| it > 0) {
            return Duration::from_secs(seconds.min(86_400));
        }
        Pauses::NETWORK.after(closed.in_a_row, &self.place)
    }

    /// How often it was closed.
    pub(super) fn times(&self) -> u64 {
        self.closed().times
    }

    fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Said;

    fn busy(wait: Option<u64>) -> Fault {
        let kind = Kind::Io(io::ErrorKind::ResourceBusy);
        Fault::Said(Said { kind, status: 429, word: String::new(), wait })
    }

    fn waited(gate: &Gate) -> Duration {
        let until = gate.closed().until;
        until.map_or(Duration::ZERO, |it| it.duration_since(Instant::now()))
    }

    fn counts(gate: &Gate) -> (u32, u64) {
        let closed = gate.closed();
        (closed.in_a_row, closed.times)
    }

    /// Its clock stands still but for waits, which take no time.
    fn run<T>(future: impl Future<Output = T>) -> T {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
    }

    #[test]
    fn it_closes_as_long_as_the_service_says() {
        run(async {
            let gate = Gate::new(4);
            gate.pass(0, async { Err::<(), _>(busy(Some(7))) }).await.unwrap_err();
            assert_eq!(waited(&gate), Duration::from_secs(7));
            // One that asks for less does not open it earlier.
            gate.close(gate.times(), Some(1));
            assert_eq!(waited(&gate), Duration::from_secs(7));
            // Those that come meanwhile wait, too.
            let begun = Instant::now();
            let (one, other) = tokio::join!(
                gate.pass(0, async { Ok(begun.elapsed()) }),
                gate.pass(0, async { Ok(begun.elapsed()) }),
            );
            assert_eq!((one.unwrap().as_secs(), other.unwrap().as_secs()), (7, 7));
        });
        let closed = |in_a_row| Closed { in_a_row, ..Closed::default() };
        for in_a_row in [1, 2, 9] {
            assert_eq!(Gate::new(1).wait(&closed(in_a_row), Some(3)), Duration::from_secs(3));
        }
    }

    #[test]
    fn without_a_time_each_wait_in_a_row_is_longer() {
        let gate = Gate::new(1);
        let wait = |in_a_row, seconds| {
            let closed = Closed { in_a_row, times: 77, ..Closed::default() };
            gate.wait(&closed, seconds)
        };
        for in_a_row in 1..6 {
            assert!(wait(in_a_row, None) < wait(in_a_row + 1, None));
        }
        assert!(wait(1000, Some(0)) <= Pauses::NETWORK.longest * 3 / 2);
    }

    #[test]
    fn requests_under_way_together_count_once_and_an_answer_ends_the_row() {
        run(async {
            let gate = Gate::new(64);
            for _ in 0..64 {
                gate.close(0, None);
            }
            assert_eq!(counts(&gate), (1, 1));
            gate.pass(0, async { Err::<(), _>(busy(None)) }).await.unwrap_err();
            assert_eq!(counts(&gate), (2, 2));
            // A refusal is an answer.
            gate.pass(0, async { Err::<(), _>(Fault::of(Kind::Missing)) }).await.unwrap_err();
            assert_eq!(counts(&gate), (0, 2));
        });
    }

    #[test]
    fn a_very_long_wait_is_an_error_and_sends_nothing() {
        run(async {
            let gate = Gate::new(1);
            gate.close(0, Some(10_000));
            let sent = gate.pass(0, async { Ok(()) }).await;
            assert!(sent.unwrap_err().wait().is_some());
        });
    }
}
