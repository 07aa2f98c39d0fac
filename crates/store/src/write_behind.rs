//! Write-behind: a write to a file becomes durable later, and is kept in memory until then.
//!
//! There are two reasons. First, after a failed sync the system may have dropped its unwritten
//! pages, and the next sync may succeed without them. So everything is handed to the system again
//! before any sync succeeds. Second, a long write costs the caller at most a copy: a thread hands
//! it to the system and makes it durable, so a final sync waits little. Reads see the deferred
//! writes.
//!
//! An error of the thread stays until a retry: the next write or sync.

mod holes;
mod kept;

use crate::WriteAt;
use crate::medium::Medium;
use crate::system;
use holes::Holes;
use kept::{Found, Kept};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Bytes kept without throttling. With more of them, a final sync waits longer.
const MOST: usize = 4 << 20;
/// The throttle above `MOST`: a write waits longer per byte the more is kept, up to this, 12 ms per
/// MiB, at the limit ([`WriteBehind::may_keep`]). So several writes wait a little each. Otherwise
/// one would wait for a stalled disk, or for everything that it writes.
const PACE: Duration = Duration::from_nanos(12);

#[derive(Debug, Default)]
struct State {
    /// The newest writes.
    waiting: Kept,
    /// Writes before those, in the current round.
    underway: Arc<Kept>,
    /// Ranges to punch in the next round. No kept write overlaps them.
    holes: Holes,
    /// The ranges of the current round.
    punching: Arc<Holes>,
    /// Some thread makes `underway` durable.
    busy: bool,
    /// The round failed, and `underway` must be handed to the system again.
    failed: bool,
    /// Changes of the medium that no kept write is, each counted once it was made.
    changes: u64,
    /// How many of them were made when the last sync began that succeeded.
    synced: Option<u64>,
    /// Writes and holes so far, and how many of them, the first, are durable.
    added: u64,
    durable: u64,
    closing: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        let holes = self.holes.is_empty() && self.punching.is_empty();
        holes && self.waiting.is_empty() && self.underway.is_empty()
    }

    /// Whether everything is durable, and no round is running.
    fn is_settled(&self) -> bool {
        self.is_empty() && !self.busy && !self.failed
    }

    /// Whether the last sync left nothing to do.
    fn is_durable(&self) -> bool {
        self.synced == Some(self.changes) && self.is_settled()
    }

    /// The system may have lost all kept writes.
    fn take_back(&mut self) {
        if let Some(underway) = Arc::get_mut(&mut self.underway) {
            underway.take_back();
        }
        self.waiting.take_back();
    }

    /// Bytes kept.
    fn kept(&self) -> usize {
        self.waiting.len() + self.underway.len()
    }

    /// Whether something that the system does not have yet, or may be given now, overlaps a range.
    fn is_pending(&self, offset: u64, end: u64) -> bool {
        let len = end - offset;
        self.punching.touch(offset, end)
            || self.underway.touches(offset, len)
            || self.waiting.waits(offset, end)
    }

    /// Whether a pending hole overlaps a range.
    fn becomes_zero(&self, offset: u64, len: usize) -> bool {
        let end = offset + len as u64;
        self.holes.touch(offset, end) || self.punching.touch(offset, end)
    }
}

#[derive(Debug)]
struct Shared<M> {
    medium: M,
    state: Mutex<State>,
    changed: Condvar,
    /// The most bytes kept while the disk falls behind.
    reserve: AtomicUsize,
    /// Deferred writes may be rounded up to the next multiple of this.
    align: AtomicUsize,
}

/// A file (or a stand-in), and its writes that are not durable.
#[derive(Debug)]
pub(crate) struct WriteBehind<M: Medium = File> {
    shared: Arc<Shared<M>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<M: Medium> WriteBehind<M> {
    pub(crate) fn new(medium: M) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let (reserve, align) = (AtomicUsize::new(MOST), AtomicUsize::new(1));
        let shared = Shared { medium, state, changed, reserve, align };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Sets the most bytes to keep; a single write may exceed it. Above 4 MiB, writes are
    /// throttled.
    pub(crate) fn may_keep(&self, bytes: usize) {
        self.shared.reserve.store(bytes, Ordering::Relaxed);
    }

    /// Declares the bytes between the end of a write and the next multiple of `align` meaningless.
    pub(crate) fn may_round_up(&self, align: usize) {
        self.shared.align.store(align.max(1), Ordering::Relaxed);
    }

    pub(crate) fn medium(&self) -> &M {
        &self.shared.medium
    }

    /// Writes a range; `later` lets a thread do it. Otherwise the system has it on return, unless
    /// an older write to the range is pending: whatever becomes of this process, it is not lost.
    pub(crate) fn write(&self, write: &WriteAt<'_>, later: bool) -> io::Result<()> {
        self.repair()?;
        let &WriteAt { offset, data, .. } = write;
        let mut state = self.shared.state();
        let mut waited = false;
        while !state.is_empty() && state.kept() + data.len() > self.shared.most() {
            let at_work = state.busy || self.shared.is_enough(&state) && self.start();
            let Some(wait) = self.shared.pace(&state, data.len()).filter(|_| at_work) else {
                state = self.shared.next(state)?;
                continue;
            };
            if std::mem::replace(&mut waited, true) {
                break;
            }
            self.shared.changed.notify_all();
            state = self.shared.wait_for(state, wait);
        }
        let end = self.shared.rounded(offset + data.len() as u64);
        state.holes.keep_out(offset, end);
        state.added += 1;
        // The busy thread may be punching a hole here, or writing what is older.
        if later || state.is_pending(offset, end) {
            let zeros = (end - offset) as usize - data.len();
            state.waiting.add(offset, write.to_kept(), zeros, false);
            if self.shared.is_enough(&state) {
                self.shared.changed.notify_all();
                self.start();
            }
            return Ok(());
        }
        if let Err(error) = self.medium().write_at(data, 0, offset) {
            // A part of it may be there.
            state.changes += 1;
            return Err(error);
        }
        state.waiting.add(offset, write.to_kept(), 0, true);
        Ok(())
    }

    /// Notes a change of the medium that is no write of this. Call it after the change: a sync that
    /// began before does not make it durable.
    pub(crate) fn changed_beside(&self) {
        self.shared.state().changes += 1;
    }

    /// As [`Self::sync`], but what the thread has made durable already waits for nothing. All other
    /// changes of the medium must be noted.
    pub(crate) fn sync_changes(&self) -> io::Result<()> {
        if self.is_durable() { Ok(()) } else { self.sync() }
    }

    /// Whether [`Self::sync_changes`] would wait for nothing.
    pub(crate) fn is_durable(&self) -> bool {
        self.shared.state().is_durable()
    }

    /// Makes durable what was written before; it does not wait for what is written meanwhile.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let mut state = self.shared.state();
        if state.is_empty() && !state.failed {
            let changes = state.changes;
            drop(state);
            let result = self.medium().sync();
            self.shared.state().synced = result.is_ok().then_some(changes);
            return result;
        }
        let all = state.added;
        while state.failed || state.durable < all {
            state = self.shared.next(state)?;
        }
        Ok(())
    }

    /// Fills `buf` from the kept writes. False if the file has the range.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<bool> {
        let state = self.shared.state();
        let found = match state.waiting.read(offset, buf) {
            Found::Nothing => state.underway.read(offset, buf),
            found => found,
        };
        match found {
            Found::Nothing if !state.becomes_zero(offset, buf.len()) => Ok(false),
            Found::All => Ok(true),
            _ => self.shared.make_durable(state).map(|_| false),
        }
    }

    /// On return, no kept write overlaps this range.
    pub(crate) fn settle(&self, offset: u64, len: u64) -> io::Result<()> {
        self.settled(offset, len).map(drop)
    }

    fn settled(&self, offset: u64, len: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.shared.state();
        if state.waiting.touches(offset, len) || state.underway.touches(offset, len) {
            return self.shared.make_durable(state);
        }
        Ok(state)
    }

    /// Lets the thread punch a range: a disk may take its time to free space.
    pub(crate) fn punch_later(&self, offset: u64, len: u64) -> io::Result<()> {
        let mut state = self.settled(offset, len)?;
        state.holes.add(offset, len);
        state.added += 1;
        drop(state);
        self.start();
        self.shared.changed.notify_all();
        Ok(())
    }

    /// The file's end after all kept writes; 0 without any.
    pub(crate) fn end(&self) -> u64 {
        let state = self.shared.state();
        state.waiting.end().max(state.underway.end())
    }

    /// Bytes that may not have taken their space yet.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.shared.state();
        state.waiting.waiting() + state.underway.len()
    }

    /// Whether everything is durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.shared.state().is_empty()
    }

    /// Whether everything is durable and no round is running.
    pub(crate) fn is_settled(&self) -> bool {
        self.shared.state().is_settled()
    }

    /// Retries a failed round, if there was one.
    pub(crate) fn repair(&self) -> io::Result<()> {
        let state = self.shared.state();
        if state.failed { self.shared.make_durable(state).map(drop) } else { Ok(()) }
    }

    /// Starts the thread. False if that fails.
    #[expect(clippy::disallowed_methods, reason = "the one thread that writes behind")]
    fn start(&self) -> bool {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            // Without a thread, the writer itself waits, which is only slower.
            let name = "write-behind".to_owned();
            *thread = thread::Builder::new().name(name).spawn(move || shared.work()).ok();
        }
        thread.is_some()
    }
}

impl WriteBehind {
    /// Cuts or extends the file, durably.
    pub(crate) fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.shared.idle();
        let result = self.medium().set_len(len);
        state.changes += 1;
        result?;
        state.waiting.cut(len);
        if let Some(underway) = Arc::get_mut(&mut state.underway) {
            underway.cut(len);
        }
        state.holes.keep_out(len, u64::MAX);
        drop(self.shared.make_durable(state)?);
        self.sync_changes()
    }
}

impl<M: Medium> Drop for WriteBehind<M> {
    /// The next process that opens the file sees all writes, durable or not.
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.shared.changed.notify_all();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
        let state = self.shared.state();
        // No sync promised these writes. Errors were reported, or no one asked for them.
        let medium = self.medium();
        let _ = state.underway.give(medium).and_then(|()| state.waiting.give(medium));
        let _ = state.holes.punch(medium);
    }
}

impl<M: Medium> Shared<M> {
    fn reserve(&self) -> usize {
        self.reserve.load(Ordering::Relaxed)
    }

    fn most(&self) -> usize {
        MOST.min(self.reserve())
    }

    /// The throttle of a write of `len` bytes; `None` when there is no room for it.
    fn pace(&self, state: &State, len: usize) -> Option<Duration> {
        let (reserve, kept) = (self.reserve(), state.kept() + len);
        let most = MOST.min(reserve);
        let (room, over) = (reserve - most, kept.saturating_sub(most));
        let nanos = PACE.as_nanos() * len as u128 * over as u128 / room.max(1) as u128;
        (over <= room).then(|| Duration::from_nanos(nanos as u64))
    }

    /// The furthest end of a write that ends here.
    fn rounded(&self, end: u64) -> u64 {
        let align = self.align.load(Ordering::Relaxed) as u64;
        end.checked_next_multiple_of(align).unwrap_or(end)
    }

    /// Whether the thread should start a round: an eighth of the most is kept, or a hole waits, and
    /// no round is running.
    fn is_enough(&self, state: &State) -> bool {
        let enough = state.waiting.len() >= self.most() / 8 || !state.holes.is_empty();
        enough && !state.busy && !state.failed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The state between two rounds.
    fn idle(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while state.busy {
            state = self.wait(state);
        }
        state
    }

    /// Waits for a change, but at most this long.
    fn wait_for<'s>(&self, state: MutexGuard<'s, State>, time: Duration) -> MutexGuard<'s, State> {
        let waited = self.changed.wait_timeout(state, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// The loop of the thread.
    fn work(&self) {
        // Deferred writes must not delay another thread's access.
        system::does_not_interrupt();
        let mut state = self.state();
        while !state.closing {
            state = if self.is_enough(&state) {
                // The state keeps the error for the next caller.
                self.round(state).0
            } else {
                self.wait(state)
            };
        }
    }

    /// One step towards no round in progress: runs one, or waits.
    fn next<'s>(&'s self, state: MutexGuard<'s, State>) -> io::Result<MutexGuard<'s, State>> {
        if state.busy {
            return Ok(self.wait(state));
        }
        let (state, result) = self.round(state);
        result.map(|()| state)
    }

    fn make_durable<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
    ) -> io::Result<MutexGuard<'s, State>> {
        while state.busy || state.failed || !state.is_empty() {
            state = self.next(state)?;
        }
        Ok(state)
    }

    /// Makes the failed round's writes durable, or else the next ones.
    fn round<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
    ) -> (MutexGuard<'s, State>, io::Result<()>) {
        if state.underway.is_empty() {
            state.underway = Arc::new(state.waiting.take(self.most() / 2));
        }
        state.busy = true;
        let covered = if state.waiting.is_empty() { state.added } else { state.durable };
        state.punching = Arc::new(std::mem::take(&mut state.holes));
        let (batch, holes) = (Arc::clone(&state.underway), Arc::clone(&state.punching));
        let changes = state.changes;
        drop(state);
        let given = holes.punch(&self.medium).and_then(|()| batch.give(&self.medium));
        let result = given.and_then(|()| self.medium.sync());
        let mut state = self.state();
        state.busy = false;
        state.punching = Arc::default();
        (state.failed, state.synced) = (result.is_err(), result.is_ok().then_some(changes));
        if result.is_ok() {
            state.underway = Arc::default();
            state.durable = covered;
        } else {
            drop(batch);
            state.take_back();
        }
        self.changed.notify_all();
        (state, result)
    }
}

#[cfg(test)]
mod tests;
