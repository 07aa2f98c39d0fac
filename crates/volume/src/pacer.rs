//! The clock of a constant rate.

use crate::environment::Clock;
use crate::options::Pace;
use std::time::Duration;

/// The pace and its next tick.
pub(crate) struct Pacer {
    pub pace: Pace,
    pub next: Duration,
}

impl Pacer {
    pub fn new(pace: Pace, clock: &dyn Clock) -> Self {
        Self { pace, next: clock.now() }
    }

    /// The time until the next tick.
    pub fn until(&self, clock: &dyn Clock) -> Duration {
        self.next.saturating_sub(clock.now())
    }

    /// Waits for the next tick, without those missed while the computer slept.
    pub fn wait(&mut self, clock: &dyn Clock) {
        let now = clock.now();
        if self.next > now {
            clock.sleep(self.next - now);
        }
        let late = now.saturating_sub(self.next);
        let missed = late.as_nanos() / self.pace.interval.as_nanos().max(1);
        self.next += self.pace.interval * (u32::try_from(missed).unwrap_or(u32::MAX - 1) + 1);
    }
}
