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
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// The most bytes that wait while others are under way; a write that would make it more waits.
const MOST: usize = 4 << 20;
/// The thread begins when so many bytes wait.
const ENOUGH: usize = 1 << 20;

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
        Self { shared: Arc::new(Shared { medium, state, changed }), thread: Mutex::default() }
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
        while !state.waiting.is_empty() && state.waiting.len() + data.len() > MOST {
            state = self.shared.next(state)?;
        }
        if later || !state.underway.is_empty() || state.waiting.waiting() > 0 {
            state.waiting.add(offset, data);
            if !state.busy && state.waiting.len() >= ENOUGH {
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
            let begin = !state.busy && !state.failed && state.waiting.len() >= ENOUGH;
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;

    fn open(content: &[u8]) -> io::Result<Behind> {
        let file = tempfile::tempfile()?;
        file.write_all_at(content, 0)?;
        Ok(Behind::new(file))
    }

    fn content(behind: &Behind) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; behind.medium().metadata()?.len() as usize];
        behind.medium().read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// The sync of these writes failed, and the system dropped them.
    fn failed(writes: &[(u64, &[u8])]) -> io::Result<Behind> {
        let behind = open(b"first")?;
        writes.iter().try_for_each(|(at, data)| behind.write(*at, data, false))?;
        behind.medium().write_all_at(b"first", 0)?;
        behind.medium().set_len(5)?;
        let mut state = behind.shared.state();
        state.waiting.take_back();
        (state.underway, state.failed) = (Arc::new(std::mem::take(&mut state.waiting)), true);
        drop(state);
        Ok(behind)
    }

    #[test]
    fn after_a_failed_sync_what_was_lost_is_written_again() -> io::Result<()> {
        let behind = failed(&[(0, b"second"), (2, b"X")])?;
        behind.sync()?;
        assert_eq!(content(&behind)?, b"seXond");
        assert!(behind.is_empty(), "nothing is kept any more");
        let behind = failed(&[(3, b"old")])?;
        behind.write(4, b"new", false)?;
        assert_eq!(content(&behind)?, b"fironew", "what is kept is older");
        let behind = failed(&[(3, b"long"), (6, b"er")])?;
        behind.truncate(6)?;
        assert_eq!(content(&behind)?, b"firlon", "lost, written again and cut");
        let behind = failed(&[(3, b"long")])?;
        let mut buf = [0; 3];
        assert!(behind.read(4, &mut buf)? && &buf == b"ong", "reads see what was written");
        assert!(!behind.read(0, &mut [0; 5])?, "partly kept, so it was written first");
        assert_eq!(content(&behind)?, b"firlong");
        Ok(())
    }

    #[test]
    fn an_error_stays_until_it_is_gone_and_nothing_is_forgotten() -> io::Result<()> {
        let path = tempfile::NamedTempFile::new()?;
        let behind = Behind::new(File::open(path.path())?);
        // Whoever writes later hears of it later, and of no success before.
        behind.write(0, &[7; 100], true)?;
        for _ in 0..3 {
            assert!(behind.sync().is_err());
            assert!(behind.write(5, &[8; 10], true).is_err());
            let mut buf = [0; 100];
            assert!(behind.read(0, &mut buf)? && buf == [7; 100]);
            assert_eq!(behind.end(), 100);
        }
        Ok(())
    }

    #[test]
    fn much_is_written_by_the_thread_and_bounded() -> io::Result<()> {
        let behind = open(b"")?;
        let piece = vec![7; 3 << 20];
        for round in 0..30 {
            behind.write(round * 11, &piece, true)?;
            assert!(behind.waiting() <= 2 * MOST + piece.len());
        }
        behind.sync()?;
        assert_eq!((behind.waiting(), behind.end()), (0, 0));
        assert_eq!(content(&behind)?.len(), 29 * 11 + piece.len());
        Ok(())
    }

    #[test]
    fn what_was_not_durable_is_there_when_it_is_closed() -> io::Result<()> {
        let path = tempfile::NamedTempFile::new()?;
        let behind = Behind::new(path.reopen()?);
        behind.write(2, b"later", true)?;
        drop(behind);
        assert_eq!(std::fs::read(path.path())?, b"\0\0later");
        Ok(())
    }

    #[derive(Clone, Debug)]
    enum Act {
        Write {
            at: u64,
            len: usize,
            later: bool,
        },
        Read {
            at: u64,
            len: usize,
        },
        Truncate(u64),
        Sync,
        /// The last sync failed, and the file has nothing of what was not durable.
        Fail,
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![
            6 => (0u64..200, 1usize..60, any::<bool>())
                .prop_map(|(at, len, later)| Act::Write { at, len, later }),
            4 => (0u64..200, 1usize..60).prop_map(|(at, len)| Act::Read { at, len }),
            1 => (0u64..250).prop_map(Act::Truncate),
            1 => Just(Act::Sync),
            1 => Just(Act::Fail),
        ]
    }

    fn run(acts: &[Act]) -> io::Result<()> {
        let behind = open(b"")?;
        let mut model = Vec::new();
        for (index, act) in acts.iter().enumerate() {
            match *act {
                Act::Write { at, len, later } => {
                    let data = vec![index as u8 + 1; len];
                    behind.write(at, &data, later)?;
                    model.resize(model.len().max(at as usize + len), 0);
                    model[at as usize..][..len].copy_from_slice(&data);
                }
                Act::Read { at, len } if at as usize + len <= model.len() => {
                    let mut buf = vec![0; len];
                    if !behind.read(at, &mut buf)? {
                        let end = behind.medium().metadata()?.len();
                        if end < at + len as u64 {
                            behind.sync()?;
                        }
                        behind.medium().read_exact_at(&mut buf, at)?;
                    }
                    assert_eq!(buf, model[at as usize..][..len]);
                }
                Act::Read { .. } => {}
                Act::Truncate(len) => {
                    behind.truncate(len)?;
                    model.resize(len as usize, 0);
                }
                Act::Sync => {
                    behind.sync()?;
                    assert_eq!(content(&behind)?, model);
                }
                Act::Fail => lose(&behind)?,
            }
            let end = behind.medium().metadata()?.len().max(behind.end());
            assert_eq!(end as usize, model.len());
        }
        behind.sync()?;
        assert_eq!(content(&behind)?, model);
        Ok(())
    }

    /// What a failed sync leaves, at its worst: nothing of what was not durable.
    fn lose(behind: &Behind) -> io::Result<()> {
        let mut state = behind.shared.idle();
        if state.underway.is_empty() {
            state.underway = Arc::new(std::mem::take(&mut state.waiting));
        }
        let len = behind.medium().metadata()?.len();
        let lost = (0..len).filter(|&at| state.underway.touches(at, 1));
        lost.clone().try_for_each(|at| behind.medium().write_all_at(&[0xee], at))?;
        state.failed = !state.underway.is_empty();
        if let Some(underway) = Arc::get_mut(&mut state.underway) {
            underway.take_back();
        }
        Ok(())
    }

    proptest! {
        // Each case syncs a real file.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_file_written_behind_is_a_file(acts in prop::collection::vec(act(), 1..60)) {
            prop_assert!(run(&acts).is_ok());
        }
    }
}
