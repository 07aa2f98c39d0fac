//! The clock and the randomness of a volume, as values. With a simulated clock and a seed a session
//! shows the same trace each time.

use oblivio_crypto::Randomness;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tells the time and waits.
pub trait Clock: Send + Sync {
    /// The time since some moment before.
    fn now(&self) -> Duration;

    /// The same, of a clock that also runs while the computer sleeps.
    fn also_asleep(&self) -> Duration {
        self.now()
    }

    /// Returns after this time.
    fn sleep(&self, time: Duration);

    /// The date, in seconds since 1970. Other computers have other clocks, so nothing that must be
    /// right follows from it.
    fn date(&self) -> u64 {
        self.now().as_secs()
    }
}

/// The computer's clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

#[expect(clippy::disallowed_methods, reason = "the one clock of a volume")]
impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

#[expect(clippy::disallowed_methods, reason = "the one clock of a volume")]
impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn also_asleep(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }

    fn sleep(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn date(&self) -> u64 {
        std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
    }
}

/// A clock for tests: time passes while somebody sleeps, and at no other time.
#[derive(Debug, Default)]
pub struct SimulatedClock(Mutex<Duration>);

impl Clock for SimulatedClock {
    fn now(&self) -> Duration {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, time: Duration) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += time;
    }
}

/// A volume's clock and randomness: the computer's by default.
#[derive(Clone)]
pub struct Environment {
    /// Paces, and how long the store may take before a write is answered.
    pub clock: Arc<dyn Clock>,
    /// Keys, salts, labels of dummies, names of computers.
    pub randomness: Randomness,
    /// The same for lanes. It is apart, so that nothing of a lane reaches the volume's own bytes.
    pub lanes: Randomness,
    /// Whether a volume's own thread may sync what nobody waits for.
    pub threads: bool,
}

impl Default for Environment {
    fn default() -> Self {
        let clock = Arc::new(SystemClock::default());
        let (randomness, lanes) = (Randomness::default(), Randomness::default());
        Self { clock, randomness, lanes, threads: true }
    }
}

impl Environment {
    /// A reproducible one, **for tests and simulation only**: a simulated clock, randomness from
    /// the seed, and no threads.
    pub fn from_seed(seed: u64) -> Self {
        let clock = Arc::new(SimulatedClock::default());
        let (randomness, lanes) = (Randomness::from_seed(seed), Randomness::from_seed(!seed));
        Self { clock, randomness, lanes, threads: false }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment(..)")
    }
}
