//! Writing behind: what is written to a file is durable later, and until then it is kept.
//!
//! For two reasons. When a sync fails, the system may have dropped what it could not write, and
//! the next sync may succeed without it; so all of it is given to the system again before any
//! sync succeeds. And a long write costs the caller a copy only: a thread gives it to the system
//! and makes it durable, so the sync at the end waits for little. Reads see what waits.
//!
//! An error of the thread stays until somebody tries again: the next that writes much, or syncs.

mod kept;

use crate::medium::Medium;
use kept::{Found, Kept};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// The most bytes that wait while others are under way; a write that would make it more waits. The
/// thread begins when a quarter of it waits.
const MOST: usize = 4 << 20;
/// The same for whoever wants little memory used.
const LITTLE: usize = 512 << 10;

#[derive(Debug, Default)]
struct State {
    /// Written last.
    waiting: Kept,
    /// Written before that, and about to be durable.
    underway: Arc<Kept>,
    /// Somebody makes `underway` durable.
    busy: bool,
    /// That failed, and `underway` is to be given to the system again.
    failed: bool,
    closing: bool,
}

impl State {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.underway.is_empty()
    }
}

#[derive(Debug)]
struct Shared<M> {
    medium: M,
    state: Mutex<State>,
    changed: Condvar,
    most: AtomicUsize,
}

/// A file (or what stands for one), and what was written to it and is not durable.
#[derive(Debug)]
pub(crate) struct Behind<M: Medium = File> {
    shared: Arc<Shared<M>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<M: Medium> Behind<M> {
    pub(crate) fn new(medium: M) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Shared { medium, state, changed, most: AtomicUsize::new(MOST) };
        Self { shared: Arc::new(shared), thread: Mutex::default() }
    }

    /// Keeps less in memory from now on.
    pub(crate) fn save_memory(&self) {
        self.shared.most.store(LITTLE, Ordering::Relaxed);
    }

    pub(crate) fn medium(&self) -> &M {
        &self.shared.medium
    }

    /// Writes a range; `later` lets a thread do it.
    pub(crate) fn write(&self, offset: u64, data: &[u8], later: bool) -> io::Result<()> {
        let mut state = self.shared.state();
        if state.failed {
            state = self.shared.make_durable(state)?;
        }
        while !state.waiting.is_empty() && state.waiting.len() + data.len() > self.shared.most() {
            state = self.shared.next(state)?;
        }
        if later || !state.underway.is_empty() || state.waiting.waiting() > 0 {
            state.waiting.add(offset, data);
            if !state.busy && state.waiting.len() >= self.shared.enough() {
                self.shared.changed.notify_all();
                self.start();
            }
            return Ok(());
        }
        self.medium().write_at(data, offset)?;
        state.waiting.add_given(offset, data);
        Ok(())
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let state = self.shared.state();
        if state.is_empty() {
            return self.medium().sync();
        }
        self.shared.make_durable(state).map(drop)
    }

    /// Fills `buf` from what is kept; says whether that was possible. If not, the file has it.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> io::Result<bool> {
        let state = self.shared.state();
        let found = match state.waiting.read(offset, buf) {
            Found::Nothing => state.underway.read(offset, buf),
            found => found,
        };
        match found {
            Found::Nothing => Ok(false),
            Found::All => Ok(true),
            Found::Part => self.shared.make_durable(state).map(|_| false),
        }
    }

    /// Nothing that waits is in this range when this returns.
    pub(crate) fn settle(&self, offset: u64, len: u64) -> io::Result<()> {
        let state = self.shared.state();
        if state.waiting.touches(offset, len) || state.underway.touches(offset, len) {
            drop(self.shared.make_durable(state)?);
        }
        Ok(())
    }

    /// Where the file ends once all is written that waits; 0 when nothing does.
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

    fn start(&self) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            // Without a thread the writer itself has to wait, which is only slower.
            let name = "write-behind".to_owned();
            *thread = thread::Builder::new().name(name).spawn(move || shared.work()).ok();
        }
    }
}

impl Behind {
    /// Cuts the file, or makes it longer, durably.
    pub(crate) fn truncate(&self, len: u64) -> io::Result<()> {
        let mut state = self.shared.idle();
        self.medium().set_len(len)?;
        state.waiting.cut(len);
        if let Some(underway) = Arc::get_mut(&mut state.underway) {
            underway.cut(len);
        }
        drop(self.shared.make_durable(state)?);
        self.medium().sync()
    }
}

impl<M: Medium> Drop for Behind<M> {
    /// Whoever opens the file next sees what was written, durable or not.
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.shared.changed.notify_all();
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            let _ = thread.join();
        }
        let state = self.shared.state();
        // It was not promised to be there; an error was told, or nobody asked for it.
        let medium = self.medium();
        let _ = state.underway.give(medium).and_then(|()| state.waiting.give(medium));
    }
}

impl<M: Medium> Shared<M> {
    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    fn enough(&self) -> usize {
        self.most() / 4
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// The state when nobody is making anything durable.
    fn idle(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        while state.busy {
            state = self.wait(state);
        }
        state
    }

    /// What the thread does.
    fn work(&self) {
        let mut state = self.state();
        while !state.closing {
            let begin = !state.busy && !state.failed && state.waiting.len() >= self.enough();
            state = if begin {
                // The error is kept, for whoever comes next.
                self.round(state).0
            } else {
                self.wait(state)
            };
        }
    }

    /// One step towards nothing being under way: done here, or awaited.
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
        while state.busy || !state.is_empty() {
            state = self.next(state)?;
        }
        Ok(state)
    }

    /// Makes durable what is under way, or else what waits.
    fn round<'s>(
        &'s self,
        mut state: MutexGuard<'s, State>,
    ) -> (MutexGuard<'s, State>, io::Result<()>) {
        if state.underway.is_empty() {
            let State { waiting, underway, .. } = &mut *state;
            // The last one is its only owner, as nobody is busy.
            if let Some(underway) = Arc::get_mut(underway) {
                std::mem::swap(waiting, underway);
            }
        }
        state.busy = true;
        let batch = Arc::clone(&state.underway);
        drop(state);
        let result = batch.give(&self.medium).and_then(|()| self.medium.sync());
        drop(batch);
        let mut state = self.state();
        state.busy = false;
        state.failed = result.is_err();
        if let Some(underway) = Arc::get_mut(&mut state.underway) {
            if result.is_ok() { underway.forget() } else { underway.take_back() }
        }
        self.changed.notify_all();
        (state, result)
    }
}

#[cfg(test)]
mod tests;
