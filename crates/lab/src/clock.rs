//! Time as the experiments measure it.
//!
//! An engine over memory is one thread that waits for nothing. So its time is the thread's
//! processor time, which leaves out other work of the machine.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A stop watch of this thread's time on the processor.
#[derive(Clone, Copy, Debug)]
pub struct CpuClock(Duration);

impl CpuClock {
    /// Begins now.
    pub fn start() -> Self {
        Self(now())
    }

    /// Seconds since it began.
    pub fn seconds(&self) -> f64 {
        (now() - self.0).as_secs_f64()
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
