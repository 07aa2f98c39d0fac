//! How long is waited for a store. Every such time is here; docs/online.md has them for users.
//!
//! A time follows from counts of answers and from sizes that the store sees anyway, never from what
//! is stored. Pauses differ from process to process, so that clients that failed together do not
//! come back together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a connection may take to be made.
pub const CONNECT: Duration = Duration::from_secs(10);
/// How long a command says nothing while a store on a network has not answered.
pub const WORD: Duration = Duration::from_secs(3);
/// The same of a store that has answered before, and has not failed since.
pub const LATER_WORD: Duration = Duration::from_secs(10);
/// How long a request may take, and more by the bytes that it moves.
pub const ANSWER: Duration = Duration::from_secs(30);
/// The slowest line that is waited for, in bytes a second.
pub const SLOWEST: u64 = 100_000;
/// How long a command repeats what a store on a network does not answer, from the first attempt on.
pub const COMMAND: Duration = Duration::from_secs(120);
/// After this time without any answer, a mount of such a store answers with an error.
pub const MOUNT: Duration = Duration::from_secs(30);

/// How long a request that moves this many bytes may take, where nobody has patience for more than
/// this.
#[must_use]
pub fn request(bytes: u64, patience: Duration) -> Duration {
    ANSWER.min(patience) + Duration::from_secs(bytes.div_ceil(SLOWEST))
}

/// The pauses between attempts: each is twice the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pauses {
    /// The first one.
    pub first: Duration,
    /// The longest.
    pub longest: Duration,
    /// Whether each is longer by up to half of it, from process to process.
    pub spread: bool,
}

impl Pauses {
    /// For a disk: it stands still for a moment, and nobody else waits for it.
    pub const DISK: Self =
        Self { first: Duration::from_millis(20), longest: Duration::from_secs(1), spread: false };
    /// For a store on a network.
    pub const NETWORK: Self =
        Self { first: Duration::from_millis(200), longest: Duration::from_secs(30), spread: true };

    /// The pause after this many attempts, 1 or more, that failed in a row.
    #[must_use]
    pub fn after(self, attempts: u32, place: &WaitPlace) -> Duration {
        let doubled = self.first.saturating_mul(1 << (attempts.clamp(1, 20) - 1));
        let pause = doubled.min(self.longest);
        if self.spread { place.spread(pause) } else { pause }
    }
}

/// Where it is waited: pauses differ from place to place, and from time to time.
#[derive(Debug)]
pub struct WaitPlace {
    number: u64,
    times: AtomicU64,
}

impl Default for WaitPlace {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) ^ u64::from(std::process::id()) << 32;
        Self { number, times: AtomicU64::new(0) }
    }
}

impl WaitPlace {
    /// A pause, and up to half as much more.
    fn spread(&self, pause: Duration) -> Duration {
        let times = self.times.fetch_add(1, Ordering::Relaxed);
        let mixed = (self.number ^ times.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        pause + pause.mul_f64((mixed >> 54) as f64 / 2048.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_time_for_its_bytes() {
        assert_eq!(request(0, COMMAND), Duration::from_secs(30));
        assert_eq!(request(8_000_001, COMMAND), Duration::from_secs(30 + 81));
        assert_eq!(request(8_000_001, Duration::from_secs(8)), Duration::from_secs(8 + 81));
    }

    #[test]
    fn each_pause_is_twice_the_one_before_up_to_the_longest() {
        let (place, disk, network) = (WaitPlace::default(), Pauses::DISK, Pauses::NETWORK);
        assert_eq!(disk.after(1, &place), Duration::from_millis(20));
        assert_eq!(disk.after(4, &place), Duration::from_millis(160));
        assert_eq!(disk.after(1000, &place), Duration::from_secs(1));
        for attempts in 1..40 {
            let least = Duration::from_millis(200 << (attempts - 1).min(10));
            let least = least.min(Duration::from_secs(30));
            let pause = network.after(attempts, &place);
            assert!(least <= pause && pause <= least * 3 / 2, "{attempts}: {pause:?}");
        }
    }

    #[test]
    fn two_places_do_not_keep_in_step() {
        let waits = |place: &WaitPlace| (0..8).map(|_| place.spread(Duration::from_secs(30))).sum();
        let (one, two): (Duration, Duration) =
            (waits(&WaitPlace::default()), waits(&WaitPlace::default()));
        assert_ne!(one, two);
    }
}
