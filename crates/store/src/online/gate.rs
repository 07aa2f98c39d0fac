//! The one gate through which all requests of a store go.
//!
//! It lets a fixed number through at once. When the service asks to wait, it is closed for all of
//! them: as long as the service says, or by how often it has said so in a row. What waits, and for
//! how long, so follows from the service's own answers and from nothing that is stored.

use super::failure::{Fault, Kind};
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};

/// A request may take this long, and more by the bytes it moves.
const PATIENCE: Duration = Duration::from_secs(30);
/// The slowest line that is waited for, in bytes a second.
const SLOWEST: u64 = 100_000;
/// The first wait where the service says no time. Each in a row is twice the one before.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A longer wait is an error at once, and still nothing is sent before its end: a mount must not
/// hang.
const STUCK: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(super) struct Gate {
    places: Semaphore,
    /// Differs from gate to gate.
    number: u64,
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
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) ^ u64::from(std::process::id()) << 32;
        Arc::new(Self { places: Semaphore::new(at_once), number, closed: Mutex::default() })
    }

    /// Sends a request that moves this many bytes, once it is its turn.
    pub(super) async fn pass<T>(
        &self,
        bytes: u64,
        request: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let _place = self.places.acquire().await.map_err(|_| Fault::Ended)?;
        let times = self.opened().await?;
        let answer = timeout(limit(bytes), request).await.unwrap_or(Err(Fault::TimedOut));
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
            if left > STUCK {
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
        let doubled = FIRST_WAIT.saturating_mul(1 << (closed.in_a_row.clamp(1, 20) - 1));
        self.spread(doubled.min(LONGEST_WAIT), closed.times)
    }

    /// A wait, and up to half as much more, which differs from gate to gate and from time to time.
    /// Those who met once would meet again and again otherwise.
    fn spread(&self, wait: Duration, times: u64) -> Duration {
        let mixed = (self.number ^ times.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        wait + wait.mul_f64((mixed >> 54) as f64 / 2048.0)
    }

    /// How often it was closed.
    pub(super) fn times(&self) -> u64 {
        self.closed().times
    }

    fn closed(&self) -> MutexGuard<'_, Closed> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a request may take.
fn limit(bytes: u64) -> Duration {
    PATIENCE + Duration::from_secs(bytes.div_ceil(SLOWEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::online::failure::Said;

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

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn a_request_has_time_for_its_bytes() {
        assert_eq!(limit(0), Duration::from_secs(30));
        assert_eq!(limit(8_000_001), Duration::from_secs(30 + 81));
    }

    #[test]
    fn it_closes_as_long_as_the_service_says() {
        run(async {
            let gate = Gate::new(4);
            gate.pass(0, async { Err::<(), _>(busy(Some(7))) }).await.unwrap_err();
            assert!((3.0..7.1).contains(&waited(&gate).as_secs_f64()));
            // One that asks for less does not open it earlier.
            gate.close(gate.times(), Some(1));
            assert!(waited(&gate) > Duration::from_secs(3));
        });
        let closed = |in_a_row| Closed { in_a_row, ..Closed::default() };
        for in_a_row in [1, 2, 9] {
            assert_eq!(Gate::new(1).wait(&closed(in_a_row), Some(3)), Duration::from_secs(3));
        }
    }

    #[test]
    fn without_a_time_each_wait_in_a_row_is_longer() {
        let gate = Gate::new(1);
        for in_a_row in 1..10 {
            let closed = Closed { in_a_row, times: 77, ..Closed::default() };
            let (wait, least) = (gate.wait(&closed, None), FIRST_WAIT * (1 << (in_a_row - 1)));
            assert!(least <= wait && wait <= least * 3 / 2, "{in_a_row}: {wait:?}");
        }
        let closed = Closed { in_a_row: 1000, ..Closed::default() };
        assert!(gate.wait(&closed, Some(0)) <= LONGEST_WAIT * 3 / 2);
        // Another gate has another wait.
        let waits = |gate: &Gate| (0..8).map(|times| gate.spread(LONGEST_WAIT, times)).sum();
        let (one, two): (Duration, Duration) = (waits(&gate), waits(&Gate::new(1)));
        assert_ne!(one, two);
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
