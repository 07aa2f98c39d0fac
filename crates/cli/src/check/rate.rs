//! A limited rate for what reads everything.

use std::thread;
use std::time::{Duration, Instant};

/// Waits, so that no more bytes a second are read than the limit.
pub struct RateLimit {
    begun: Instant,
    /// Bytes a second; no limit without it.
    limit: Option<u64>,
    /// Bytes of all steps together.
    all: u64,
}

impl RateLimit {
    /// From now on, for steps that read `all` bytes.
    pub fn new(limit: Option<u64>, all: u64) -> Self {
        Self { begun: Instant::now(), limit, all }
    }

    /// Waits until these steps may be done.
    pub fn wait(&self, done: u64, steps: u64) {
        if let Some(time) = self.least(done, steps) {
            thread::sleep(time.saturating_sub(self.begun.elapsed()));
        }
    }

    /// The least time that these steps take.
    fn least(&self, done: u64, steps: u64) -> Option<Duration> {
        let part = done as f64 / steps.max(1) as f64;
        let bytes = self.all as f64 * part;
        self.limit.map(|limit| Duration::from_secs_f64(bytes / limit.max(1) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_a_second() {
        let rate = RateLimit::new(Some(10 << 20), 40 << 20);
        assert_eq!(rate.least(5, 10), Some(Duration::from_secs(2)));
        assert_eq!(rate.least(0, 0), Some(Duration::ZERO));
        assert_eq!(RateLimit::new(None, 40 << 20).least(5, 10), None);
    }
}
