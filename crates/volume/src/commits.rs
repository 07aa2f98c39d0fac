//! When changes are committed without being asked for: the one policy of all who change a volume.
//!
//! What waits is bounded in bytes, because it takes memory, and in time where there is a clock,
//! because a crash loses it. A volume may want a commit besides; that is the volume's to say.
//!
//! Why the times of commits tell nothing: the storage sees how much was changed anyway, by the
//! accesses. A timer is public, and of a change that settles it is only its time that shows.

use crate::block::CHANGE_BYTES;
use std::time::{Duration, Instant};

/// A change that settles waits at least this many times the duration of the last commit. Where
/// commits are expensive, a program with occasional changes must not spend its time on them.
const COMMIT_SHARE: u32 = 10;

/// Counts what was changed, and says when that is to be committed.
#[derive(Debug)]
pub struct Commits {
    most_bytes: u64,
    bytes: u64,
    timer: Option<Timer>,
    /// Minimum delay between the last change and its commit, where no sync requests arrive.
    settle: Option<Duration>,
    /// When the changes have settled, if no more come until then.
    settles: Option<Instant>,
    /// The duration of the last commit.
    took: Duration,
}

#[derive(Debug)]
struct Timer {
    every: Duration,
    next: Instant,
    /// It keeps the same pace whatever is changed and committed: a server's pace is public.
    steady: bool,
}

impl Commits {
    /// Commits after this many bytes.
    #[must_use]
    pub fn after_bytes(most_bytes: u64) -> Self {
        let (timer, settle, settles) = (None, None, None);
        Self { most_bytes, bytes: 0, timer, settle, settles, took: Duration::ZERO }
    }

    /// Also when something has waited since a commit this long ago.
    #[must_use]
    pub fn or_after(self, time: Duration, now: Instant) -> Self {
        Self { timer: Some(Timer { every: time, next: now + time, steady: false }), ..self }
    }

    /// Also at a steady pace; and, if a time to settle is given, that long after the last change.
    #[must_use]
    pub fn or_every(self, time: Duration, settle: Option<Duration>, now: Instant) -> Self {
        Self { timer: Some(Timer { every: time, next: now + time, steady: true }), settle, ..self }
    }

    /// Counts written bytes.
    pub fn wrote(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Counts a change of about this many bytes, at least [`CHANGE_BYTES`].
    pub fn changed(&mut self, bytes: u64) {
        self.bytes += bytes.max(CHANGE_BYTES);
    }

    /// The same for a change that is to settle from now on.
    pub fn changed_at(&mut self, bytes: u64, now: Instant) {
        self.changed(bytes);
        self.settles = self.settle.map(|pause| now + pause.max(self.took * COMMIT_SHARE));
    }

    /// Bytes that wait for a commit.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.bytes
    }

    /// Whether `more` bytes still fit this commit.
    #[must_use]
    pub fn has_room(&self, more: u64) -> bool {
        self.bytes.saturating_add(more) <= self.most_bytes
    }

    /// Whether enough waits that a commit is due at any time.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes >= self.most_bytes
    }

    /// Whether a commit is due now. A steady timer goes on with it, and what has settled is said
    /// once: if the commit fails, the timer tries again.
    #[must_use]
    pub fn is_due(&mut self, now: Instant) -> bool {
        let timed = self.timer.as_mut().is_some_and(|timer| {
            let due = now >= timer.next;
            if due && timer.steady {
                timer.next = now + timer.every;
            }
            due
        });
        let settled = self.settles.take_if(|at| now >= *at).is_some();
        self.is_full() || (timed || settled) && self.bytes > 0
    }

    /// When the clock may next make a commit due.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        let timer = self.timer.as_ref().map(|timer| timer.next);
        [timer, self.settles].into_iter().flatten().min()
    }

    /// Notes how long a commit took, whether it failed or not.
    pub fn took(&mut self, time: Duration) {
        self.took = time;
    }

    /// Everything is durable now.
    pub fn committed(&mut self) {
        self.bytes = 0;
        self.settles = None;
    }

    /// The same, with the time from which the next commit is counted.
    pub fn committed_at(&mut self, now: Instant) {
        self.committed();
        if let Some(timer) = self.timer.as_mut().filter(|timer| !timer.steady) {
            timer.next = now + timer.every;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn much_is_due_and_a_little_waits_for_its_time() {
        let begun = Instant::now();
        let mut commits = Commits::after_bytes(10 * CHANGE_BYTES).or_after(5 * SECOND, begun);
        commits.wrote(1);
        assert!(!commits.is_due(begun + 4 * SECOND) && commits.is_due(begun + 5 * SECOND));
        commits.committed_at(begun + 7 * SECOND);
        assert!(!commits.is_due(begun + 60 * SECOND), "nothing waits");
        commits.changed(1);
        assert_eq!(commits.waiting(), CHANGE_BYTES);
        assert!(!commits.is_due(begun + 11 * SECOND) && commits.is_due(begun + 12 * SECOND));
        assert!(commits.has_room(9 * CHANGE_BYTES) && !commits.has_room(9 * CHANGE_BYTES + 1));
        commits.wrote(9 * CHANGE_BYTES);
        assert!(commits.is_full() && commits.is_due(begun));
    }

    #[test]
    fn a_steady_timer_keeps_its_pace_whatever_happens() {
        let begun = Instant::now();
        let mut commits = Commits::after_bytes(1 << 20).or_every(5 * SECOND, None, begun);
        assert!(!commits.is_due(begun + 5 * SECOND), "nothing waits");
        assert_eq!(commits.next(), Some(begun + 10 * SECOND));
        commits.changed_at(1, begun + 6 * SECOND);
        commits.committed_at(begun + 7 * SECOND);
        commits.changed_at(1, begun + 8 * SECOND);
        assert!(!commits.is_due(begun + 9 * SECOND) && commits.is_due(begun + 10 * SECOND));
    }

    /// Each change restarts the clock; what may have been one does not, nor is it committed.
    #[test]
    fn what_has_settled_is_due_once() {
        let begun = Instant::now();
        let at = |seconds: u32| begun + seconds * SECOND;
        let commits = Commits::after_bytes(1 << 20);
        let mut commits = commits.or_every(1000 * SECOND, Some(3 * SECOND), begun);
        commits.changed_at(1, at(0));
        commits.changed(1);
        assert_eq!(commits.next(), Some(at(3)));
        commits.changed_at(1, at(2));
        assert!(!commits.is_due(at(4)) && commits.is_due(at(5)));
        assert!(!commits.is_due(at(6)), "if that failed, the timer tries again");
        commits.took(SECOND);
        commits.changed_at(1, at(7));
        assert!(!commits.is_due(at(16)) && commits.is_due(at(17)), "commits are dear");
        commits.committed();
        commits.changed(1);
        assert!(!commits.is_due(at(900)) && commits.is_due(at(1000)));
    }
}
