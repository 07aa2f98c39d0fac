//! What a client hears of the changes of others.
//!
//! What is cached counts while the notices keep up: each answer says that the notice of its batch
//! must come, and a server that is there says so every few seconds. If either stays away, anything
//! may have changed.

use crate::volume::Keyed;
use oblivio_engine::Result;
use oblivio_engine::pyramid::share::{Change, Head, Notices, Session};
use oblivio_store::share::SealedNotice;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a notice may stay away after an answer of its batch.
const LATE: Duration = Duration::from_secs(3);
/// How long the server may say nothing at all. A call for notices waits for 2 seconds.
const SILENT: Duration = Duration::from_secs(5);
/// Changes that nobody took; with more, anything may have changed.
const MOST_KEPT: usize = 1 << 16;

/// The changes that were heard of and not taken yet.
pub struct HeardChanges {
    notices: Notices,
    changes: Vec<Change>,
    /// Some were missed.
    all: bool,
    /// When each head was named whose notice has not come.
    awaited: VecDeque<(u64, Instant)>,
    /// When the server said something last, be it nothing new.
    spoke: Instant,
}

impl HeardChanges {
    /// Nothing was heard yet.
    pub fn new(keyed: &Keyed, now: Instant) -> Self {
        let notices = Notices::new(keyed.volume(), keyed.sealer());
        let (changes, awaited) = Default::default();
        Self { notices, changes, all: false, awaited, spoke: now }
    }

    /// An answer named this head: the notice of its batch must come.
    ///
    /// # Errors
    /// `Forked` if the notices are of another history.
    pub fn expect(&mut self, head: Head, now: Instant) -> Result<()> {
        self.notices.expect(head)?;
        if head.number > self.notices.newest() {
            self.awaited.push_back((head.number, now));
        }
        Ok(())
    }

    /// The server said something.
    pub fn spoke(&mut self, now: Instant) {
        self.spoke = now;
    }

    /// Takes a notice. What this session did is no news.
    ///
    /// # Errors
    /// `Forked` if it is of another history; `State` if it does not open.
    pub fn hear(&mut self, notice: &SealedNotice, session: Session) -> Result<()> {
        // A head has the number after that of its record.
        let number = notice.number.0.saturating_add(1);
        let Some(heard) = self.notices.hear(number, &notice.sealed)? else { return Ok(()) };
        let newest = self.notices.newest();
        self.awaited.retain(|(number, _)| *number > newest);
        let others = heard.changes.into_iter().filter(|change| change.session != session);
        self.changes.extend(others);
        self.all |= heard.missed || self.changes.len() > MOST_KEPT;
        if self.all {
            self.changes.clear();
        }
        Ok(())
    }

    /// Takes the changes; none if anything may have changed.
    pub fn take(&mut self, now: Instant) -> Option<Vec<Change>> {
        let changes = std::mem::take(&mut self.changes);
        let all = std::mem::take(&mut self.all);
        let is_late = |(_, since): &(u64, Instant)| now.duration_since(*since) >= LATE;
        let late = self.awaited.front().is_some_and(is_late);
        let silent = now.duration_since(self.spoke) >= SILENT;
        (!all && !late && !silent).then_some(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::{NewShared, create};
    use oblivio_crypto::{KdfParams, Passphrase, Tag};
    use oblivio_share::MemoryShare;
    use std::sync::Arc;

    #[test]
    fn what_is_cached_counts_while_notices_keep_up() {
        let share = MemoryShare::new(Arc::new(|| Duration::ZERO));
        let kdf = KdfParams::TEST;
        let new = NewShared { block_bytes: 1024, capacity_bytes: 1 << 20, kdf };
        let keyed = create(&share, &new, &Passphrase::new("one")).unwrap();
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let head = |number| Head { number, tag: Tag([1; 16]) };
        let mut heard = HeardChanges::new(&keyed, begin);
        assert_eq!(heard.take(at(4999)), Some(vec![]));
        assert_eq!(heard.take(at(5000)), None, "the server is silent");
        heard.spoke(at(5000));
        assert_eq!(heard.take(at(5001)), Some(vec![]));
        // One that says that there is nothing new, after an answer.
        heard.expect(head(7), at(6000)).unwrap();
        heard.expect(head(9), at(8000)).unwrap();
        heard.spoke(at(8999));
        assert_eq!(heard.take(at(8999)), Some(vec![]));
        assert_eq!(heard.take(at(9000)), None);
        assert_eq!(heard.take(at(9001)), None, "until it comes");
    }
}
