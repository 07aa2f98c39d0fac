//! Records that run ahead of syncs, and the notes that name them.
//!
//! A record is with the system before the reads that it announces begin, so the death of the
//! process loses none. A power cut may lose those that are not durable: then what they announced
//! may be shown once more. So at most [`AHEAD`] accesses, all shown within [`AHEAD_FOR`], are ahead
//! of the durable records, and twice that of the durable note: a store that acknowledges syncs and
//! drops them hides no more. A thread makes records durable, and then the note, every [`EVERY`]
//! while there is something to do; the owner waits only at those bounds.
//!
//! None of this depends on what an access is: it counts accesses, and looks at the clock.

use crate::environment::Environment;
use crate::records::journal::JOURNAL_OBJECT;
use crate::trust::{Act, LogMark, NoteSyncer, SharedNotes};
use crate::{Error, Result};
use oblivio_store::Store;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The most accesses ahead of the durable records.
pub(crate) const AHEAD: u64 = 256;
/// The longest time that one is.
const AHEAD_FOR: Duration = Duration::from_millis(50);
/// A sync begins this long after the last one began, or once half of [`AHEAD`] wait.
const EVERY: Duration = Duration::from_millis(5);
/// The most accesses of a batch that does not wait for its own record.
pub(crate) const MOST_UNSYNCED: usize = 32;

/// A record of the journal, and how many accesses the session has shown with it.
#[derive(Clone, Copy, Debug)]
struct Written {
    mark: LogMark,
    act: Act,
    accesses: u64,
    at: Duration,
}

#[derive(Default)]
struct SyncState {
    /// Accesses with records so far.
    written: u64,
    /// Accesses whose records are durable, and whose note is.
    durable: u64,
    noted: u64,
    /// Records that are not durable, the oldest first.
    waiting: VecDeque<Written>,
    /// Durable ones whose note is not.
    unnoted: VecDeque<Written>,
    /// The durable end of the journal.
    end: u64,
    syncing: bool,
    noting: bool,
    /// When the last sync began.
    begun: Duration,
    failed: Option<Error>,
    closing: bool,
}

impl SyncState {
    /// Whether the next reads must wait.
    fn is_far_ahead(&self, now: Duration) -> bool {
        let old = |oldest: Option<&Written>, most| oldest.is_some_and(|it| it.at + most < now);
        self.written - self.durable > AHEAD
            || self.written - self.noted > 2 * AHEAD
            || old(self.waiting.front(), AHEAD_FOR)
            || old(self.unnoted.front(), 2 * AHEAD_FOR)
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.unnoted.is_empty()
    }

    fn is_half_ahead(&self) -> bool {
        self.written - self.durable >= AHEAD / 2
    }

    /// When the next sync is to begin.
    fn next(&self) -> Duration {
        if self.is_half_ahead() { Duration::ZERO } else { self.begun + EVERY }
    }
}

struct Shared {
    store: Arc<dyn Store>,
    notes: SharedNotes,
    note_syncer: Option<NoteSyncer>,
    environment: Environment,
    state: Mutex<SyncState>,
    changed: Condvar,
}

/// What makes the records of a session durable, and their notes.
pub(crate) struct RecordSync {
    shared: Arc<Shared>,
    /// Whether records may run ahead. Otherwise each is durable before its reads begin, and only
    /// its note is synced later.
    ahead: bool,
    thread: Option<JoinHandle<()>>,
}

impl RecordSync {
    /// For a session whose last record is durable and noted.
    pub fn new(
        store: &Arc<dyn Store>,
        notes: SharedNotes,
        environment: &Environment,
        ahead: bool,
    ) -> Self {
        let note_syncer = notes.syncer();
        let (store, environment) = (Arc::clone(store), environment.clone());
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Shared { store, notes, note_syncer, environment, state, changed };
        Self { shared: Arc::new(shared), ahead, thread: None }
    }

    /// Up to which offset the journal is durable, if records may run ahead.
    pub fn ahead_of(&self) -> Option<u64> {
        self.ahead.then(|| self.shared.state().end)
    }

    /// Notes a record that was written, perhaps `durable`, and how many accesses it announces. On
    /// return its reads may begin; if `wait`, it is durable.
    ///
    /// # Errors
    /// Those of the store and of the keeper, also of syncs before.
    pub fn wrote(
        &mut self,
        (mark, act): (LogMark, Act),
        accesses: u64,
        (durable, wait): (bool, bool),
    ) -> Result<()> {
        let at = self.shared.environment.clock.now();
        let mut state = self.shared.state();
        let was_idle = state.is_idle();
        state.written += accesses;
        let written = Written { mark, act, accesses: state.written, at };
        if durable {
            while state.syncing {
                state = self.shared.wait(state);
            }
            self.shared.synced(&mut state, written)?;
        } else {
            state.waiting.push_back(written);
        }
        let wake = was_idle && !state.is_idle() || state.is_half_ahead();
        drop(state);
        if wake {
            self.wake();
        }
        self.shared.hold_up(|state, now| state.is_far_ahead(now) || wait && state.end < mark.end)
    }

    /// Makes all records durable.
    ///
    /// # Errors
    /// Those of the store and of the keeper.
    pub fn settle(&mut self) -> Result<()> {
        self.shared.hold_up(|state, _| !state.waiting.is_empty())
    }

    /// A commit is durable and noted: the journal begins again. Records of before are void.
    pub fn restart(&mut self) {
        let mut state = self.shared.state();
        while state.noting {
            state = self.shared.wait(state);
        }
        let (begun, written, failed) = (state.begun, state.written, state.failed.take());
        let (durable, noted) = (written, written);
        *state = SyncState { begun, written, durable, noted, failed, ..SyncState::default() };
    }

    /// Wakes the thread, and starts it the first time. Without one the owner does all by itself.
    #[expect(clippy::disallowed_methods, reason = "the one thread that syncs records")]
    fn wake(&mut self) {
        if self.thread.is_none() && self.shared.environment.threads {
            let shared = Arc::clone(&self.shared);
            let name = "record-sync".to_owned();
            self.thread = thread::Builder::new().name(name).spawn(move || shared.work()).ok();
        }
        self.shared.changed.notify_all();
    }
}

impl Drop for RecordSync {
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, SyncState>) -> MutexGuard<'s, SyncState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs, or waits for who does, as long as this must not go on.
    fn hold_up(&self, must_wait: impl Fn(&SyncState, Duration) -> bool) -> Result<()> {
        let mut state = self.state();
        loop {
            if let Some(error) = state.failed.take() {
                return Err(error);
            }
            if !must_wait(&state, self.environment.clock.now()) {
                return Ok(());
            }
            state = if !state.syncing && !state.waiting.is_empty() {
                self.sync_records(state)
            } else if !state.noting && !state.syncing && !state.unnoted.is_empty() {
                self.sync_note(state)
            } else {
                self.wait(state)
            };
        }
    }

    /// The loop of the thread.
    fn work(&self) {
        let mut state = self.state();
        while !state.closing {
            let pause = state.next().saturating_sub(self.environment.clock.now());
            state = if state.is_idle() || state.failed.is_some() {
                self.wait(state)
            } else if pause > Duration::ZERO {
                let waited = self.changed.wait_timeout(state, pause);
                waited.unwrap_or_else(PoisonError::into_inner).0
            } else if state.syncing || state.waiting.is_empty() && state.noting {
                self.wait(state)
            } else {
                self.round(state)
            };
        }
    }

    /// A sync of the records, and one of their note.
    fn round<'s>(&'s self, mut state: MutexGuard<'s, SyncState>) -> MutexGuard<'s, SyncState> {
        state.begun = self.environment.clock.now();
        if !state.waiting.is_empty() {
            state = self.sync_records(state);
        }
        match state.noting || state.unnoted.is_empty() || state.failed.is_some() {
            true => state,
            false => self.sync_note(state),
        }
    }

    /// Makes the records that wait durable, and notes the last.
    fn sync_records<'s>(
        &'s self,
        mut state: MutexGuard<'s, SyncState>,
    ) -> MutexGuard<'s, SyncState> {
        let Some(newest) = state.waiting.back().copied() else { return state };
        (state.syncing, state.begun) = (true, self.environment.clock.now());
        drop(state);
        let synced = self.store.sync(&[JOURNAL_OBJECT]);
        let mut state = self.state();
        state.syncing = false;
        let done = synced.map_err(Error::from).and_then(|()| self.synced(&mut state, newest));
        state.failed = done.err();
        self.changed.notify_all();
        state
    }

    /// Everything up to this record is durable.
    fn synced(&self, state: &mut SyncState, newest: Written) -> Result<()> {
        self.notes.logged(newest.mark, Some(newest.act))?;
        let at = state.waiting.front().map_or(newest.at, |oldest| oldest.at);
        state.waiting.retain(|it| it.mark.end > newest.mark.end);
        (state.durable, state.end) = (newest.accesses, newest.mark.end);
        match self.note_syncer {
            Some(_) => state.unnoted.push_back(Written { at, ..newest }),
            None => state.noted = newest.accesses,
        }
        Ok(())
    }

    /// Makes the newest note durable.
    fn sync_note<'s>(&'s self, mut state: MutexGuard<'s, SyncState>) -> MutexGuard<'s, SyncState> {
        let (Some(sync), Some(newest)) = (&self.note_syncer, state.unnoted.back().copied()) else {
            return state;
        };
        state.noting = true;
        drop(state);
        let synced = sync();
        let mut state = self.state();
        state.noting = false;
        match synced {
            Ok(()) => {
                state.unnoted.retain(|it| it.mark.end > newest.mark.end);
                state.noted = newest.accesses;
            }
            Err(error) => state.failed = Some(error),
        }
        self.changed.notify_all();
        state
    }
}
