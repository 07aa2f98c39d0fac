//! [`LatencyStore`]: a store as slow as a network or a disk.

use oblivio_store::{Layer, Objects, Result, StoreAnswer, StoreCall};
use std::thread;
use std::time::Duration;

/// The delays of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// The delay of every call, for any number of ranges.
    pub per_call: Duration,
    /// Bytes read per second; 0 is unlimited.
    pub read_rate: u64,
    /// Bytes written per second; 0 is unlimited.
    pub write_rate: u64,
}

impl Latency {
    /// The same rate in both directions.
    #[must_use]
    pub fn new(per_call: Duration, rate: u64) -> Self {
        Self { per_call, read_rate: rate, write_rate: rate }
    }

    /// The time of a call that reads `down` bytes and writes `up` bytes.
    #[must_use]
    pub fn of(&self, down: u64, up: u64) -> Duration {
        self.per_call + transfer(down, self.read_rate) + transfer(up, self.write_rate)
    }
}

fn transfer(bytes: u64, rate: u64) -> Duration {
    if rate == 0 {
        return Duration::ZERO;
    }
    let nanoseconds = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// A layer that waits before every call. Threads wait in parallel: each has the whole rate.
#[derive(Debug)]
pub struct LatencyStore<S> {
    inner: S,
    latency: Latency,
}

impl<S> LatencyStore<S> {
    /// Slows `inner` down.
    pub fn new(inner: S, latency: Latency) -> Self {
        Self { inner, latency }
    }

    /// The store below.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    #[expect(clippy::disallowed_methods, reason = "waiting is what this store is for")]
    fn wait(&self, down: u64, up: u64) {
        let time = self.latency.of(down, up);
        if !time.is_zero() {
            thread::sleep(time);
        }
    }
}

impl<S: Objects> Layer for LatencyStore<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if !matches!(call, StoreCall::FreeBytes | StoreCall::Hint(_)) {
            self.wait(call.bytes_down(), call.bytes_up());
        }
        call.on(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{Held, MemoryStore, ReadAt, Slots, WriteAt};
    use std::time::Instant;

    #[test]
    fn times_add_up() {
        let latency = Latency::new(Duration::from_millis(2), 1_000_000);
        assert_eq!(latency.of(0, 0), Duration::from_millis(2));
        assert_eq!(latency.of(3_000, 1_000), Duration::from_millis(6));
        assert_eq!(Latency::default().of(u64::MAX, u64::MAX), Duration::ZERO);
        let one_way = Latency { write_rate: 1_000, ..Latency::default() };
        assert_eq!(one_way.of(500, 0), Duration::ZERO);
        assert_eq!(one_way.of(0, 500), Duration::from_millis(500));
    }

    #[test]
    fn it_waits_in_both_directions() -> Result<()> {
        let latency = Latency::new(Duration::from_millis(1), 1_000_000);
        let store = LatencyStore::new(MemoryStore::new(), latency);
        let mut buf = [0; 10_000];
        let start = Instant::now();
        store.write(&[WriteAt::new("a", 0, &buf)])?;
        assert!(start.elapsed() >= Duration::from_millis(11));
        let start = Instant::now();
        store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut buf }])?;
        assert!(start.elapsed() >= Duration::from_millis(11));
        Ok(())
    }
}
