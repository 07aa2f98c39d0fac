//! When twins are written: at the end of a session, and when a mount was quiet for a while.

use super::state::{Quiet, State};
use super::twin_io::{BATCH, TwinIo};
use crate::Result;
use std::time::Duration;

/// The most chunks whose copies one end of a session writes anew. More wait for a mount's idle
/// time.
const MOST_AT_END: usize = 2048;
/// The most chunks that one end of a session gives twins.
const MOST_PAIRED: u64 = 256;
/// How long metadata stays as it is before its twins are written, seconds. Else programs that sync
/// often would have each change written twice.
const QUIET_SECONDS: i64 = 30;

impl TwinIo<'_> {
    /// What the end of a session does for the twins, after its last change.
    pub(super) fn end_twins(&mut self) -> Result<()> {
        if self.0.blocks()?.pads() {
            return Ok(());
        }
        self.0.note_damage()?;
        let few = self.0.metadata.map.mapped() as usize <= MOST_AT_END;
        if few && self.0.metadata.twins.is_suspect() {
            self.heal_all()?;
        }
        if self.0.metadata.changed {
            self.0.metadata.pairs = true;
            self.pair_chunks(MOST_PAIRED)?;
            self.renew_twins(MOST_AT_END)?;
        }
        Ok(())
    }

    /// Whether idle time has something to do for the twins.
    fn twins_wait(&mut self) -> Result<bool> {
        let twins = &self.0.metadata.twins;
        let stale = self.0.metadata.changed && twins.stale().next().is_some();
        Ok((stale || twins.is_suspect()) && !self.0.blocks()?.pads())
    }

    /// Does a part of it; says whether that is all.
    fn tend_some(&mut self) -> Result<bool> {
        if self.0.metadata.twins.is_suspect() && !self.heal_some(BATCH)? {
            return Ok(false);
        }
        if !self.renew_twins(BATCH)? {
            return Ok(false);
        }
        self.0.blocks()?.commit()?;
        Ok(true)
    }
}

impl State {
    /// Writes some twins if metadata was quiet for long enough. Gives the time to the next call.
    pub(super) fn tend_twins(&mut self) -> Result<Option<Duration>> {
        let now = self.now();
        let mut pool = self.pool.lock();
        let busy = self.progress.operations > 0 || self.progress.pending;
        if busy || self.latch.is_closed() || !TwinIo(&mut pool).twins_wait()? {
            return Ok(None);
        }
        let changes = pool.metadata.twins.changes();
        if self.cleaning.quiet.changes != changes {
            self.cleaning.quiet = Quiet { since: now, changes };
            let pause = now.map_or(0, |_| QUIET_SECONDS as u64);
            return Ok(Some(Duration::from_secs(pause)));
        }
        let passed =
            now.zip(self.cleaning.quiet.since).map(|(now, since)| now.seconds - since.seconds);
        // A clock that was put back says nothing.
        if let Some(passed) = passed.filter(|passed| (0..QUIET_SECONDS).contains(passed)) {
            return Ok(Some(Duration::from_secs((QUIET_SECONDS - passed) as u64)));
        }
        let done = TwinIo(&mut pool).tend_some()?;
        Ok((!done).then_some(Duration::ZERO))
    }
}
