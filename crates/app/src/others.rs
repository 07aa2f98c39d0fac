//! Other computers that want a volume, and what this one says of itself to them.

use oblivio_volume::{HolderNotice, OnWait};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long another computer is waited for that goes on with its work.
pub const WAIT: Duration = Duration::from_secs(180);
/// A computer at work answers sooner.
const ANSWERS: Duration = Duration::from_secs(30);

/// The computer that asked for a volume, if one did.
#[derive(Default)]
pub struct Wanted(Mutex<Option<String>>);

impl Wanted {
    /// Notes what its owner calls it.
    pub fn tell(&self, host: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(host.to_owned());
    }

    /// What its owner calls it.
    pub fn by(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Waits for another computer; not at all without any time.
pub fn on_wait(time: Option<Duration>) -> Option<OnWait> {
    let time = time.unwrap_or(WAIT);
    (!time.is_zero()).then(|| Box::new(move |waiting: &_| goes_on(waiting, time)) as OnWait)
}

/// Whether to wait longer for a computer that had this time.
pub fn goes_on(waiting: &HolderNotice, time: Duration) -> bool {
    is_silent(waiting) || waiting.waited < time
}

/// Whether a computer does not answer. It is waited for until it counts as gone.
pub fn is_silent(waiting: &HolderNotice) -> bool {
    waiting.silent > ANSWERS
}

/// What this computer is called.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_silent_is_waited_for_to_the_end() {
        let waiting = |waited, silent| HolderNotice {
            host: "one".into(),
            waited: Duration::from_secs(waited),
            silent: Duration::from_secs(silent),
        };
        assert!(goes_on(&waiting(170, 3), WAIT));
        assert!(!goes_on(&waiting(181, 3), WAIT));
        assert!(goes_on(&waiting(200, 60), WAIT));
        assert!(on_wait(Some(Duration::ZERO)).is_none() && on_wait(None).is_some());
    }
}
