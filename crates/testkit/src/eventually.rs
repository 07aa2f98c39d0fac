//! Waiting for what must come about, however busy the computer is.
#![allow(clippy::disallowed_methods, reason = "tests wait")]

use std::time::{Duration, Instant};

/// How long. Nothing that is right takes this long; what is wrong is said after it.
const BOUND: Duration = Duration::from_secs(60);

/// Looks again and again until there is something, and returns it.
///
/// # Panics
/// After a minute without it. `what` says what was waited for.
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < BOUND, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
