//! What the policy of windows remembers beside what waits.

use std::time::Duration;

/// The account of a session with its store and with other computers.
pub struct WindowAccount {
    /// When the session last looked for a later one, and when the oldest intent on its way was
    /// sent.
    pub(super) looked: Duration,
    pub(super) sent: Duration,
    pub(super) heed: Heed,
    /// Whether records of an earlier session are being replayed: nothing commits before the end.
    pub(super) replaying: bool,
}

/// What is known of others who want the volume.
pub(super) struct Heed {
    /// When that was last looked up, and the newest entry then.
    pub at: Duration,
    pub entry: u64,
    /// Whether the caller knows.
    pub told: bool,
}

impl WindowAccount {
    /// Of a session that begins now.
    pub(super) fn new(now: Duration, replaying: bool) -> Self {
        let heed = Heed { at: now, entry: 1, told: false };
        Self { looked: now, sent: now, heed, replaying }
    }
}
