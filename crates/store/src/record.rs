//! [`RecordStore`]: keeps the trace that an adversary would keep.
//!
//! It records the event before the call reaches the store below: the request is seen, whatever its
//! outcome. It does not keep bytes: sealed content reveals nothing, and a trace of millions of
//! accesses must fit in memory.

use crate::{Hint, Layer, Objects, Result, StoreAnswer, StoreCall};
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of a call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A range was read.
    Read,
    /// A range was written, or a whole object begun.
    Write,
    /// An object was synced, or settled.
    Sync,
    /// A whole object was put.
    Put,
    /// An object was cut or extended.
    Truncate,
    /// An object was extended to this length, and its space reserved.
    Allocate,
    /// A range's content was discarded.
    Discard,
    /// An object was deleted.
    Delete,
    /// An object's length was queried.
    Len,
    /// All objects were listed, or those whose names begin so.
    List,
    /// The right to write was taken. Only with [`RecordStore::whole`].
    Lock,
    /// The free space was queried. Only with [`RecordStore::whole`].
    Free,
    /// A likely read was announced. Only with [`RecordStore::whole`].
    ExpectReads,
    /// The bytes to keep were set. Only with [`RecordStore::whole`].
    MayKeep,
    /// Rounding up was allowed. Only with [`RecordStore::whole`].
    MayRoundUp,
    /// The call of this number failed. Only with [`RecordStore::whole`].
    Failed,
}

impl CallKind {
    fn of(call: &StoreCall<'_, '_>) -> Self {
        match call {
            StoreCall::Read(_) => Self::Read,
            StoreCall::Write(_) | StoreCall::WriteDurable(_) | StoreCall::Begin(_) => Self::Write,
            StoreCall::Sync(_) | StoreCall::Settle(_) => Self::Sync,
            StoreCall::Put(..) => Self::Put,
            StoreCall::Truncate(..) => Self::Truncate,
            StoreCall::Allocate(..) => Self::Allocate,
            StoreCall::Discard(_) => Self::Discard,
            StoreCall::Delete(_) => Self::Delete,
            StoreCall::Len(_) | StoreCall::Lens(_) => Self::Len,
            StoreCall::List | StoreCall::ListUnder(_) => Self::List,
            StoreCall::Lock => Self::Lock,
            StoreCall::FreeBytes => Self::Free,
            StoreCall::Hint(Hint::Reads(_)) => Self::ExpectReads,
            StoreCall::Hint(Hint::Keep(_)) => Self::MayKeep,
            // The other one is not recorded.
            StoreCall::Hint(Hint::RoundUp { .. } | Hint::BeforeRepeat(_)) => Self::MayRoundUp,
        }
    }

    /// Whether only a whole record has it: it touches no byte of an object.
    fn is_of_whole(self) -> bool {
        use CallKind::{ExpectReads, Failed, Free, Lock, MayKeep, MayRoundUp};
        matches!(self, Lock | Free | ExpectReads | MayKeep | MayRoundUp | Failed)
    }
}

/// One event that the adversary saw.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreEvent {
    /// The number of its call, from 0. Events of one call came together.
    pub call: u64,
    /// The kind of call.
    pub op: CallKind,
    /// The object's name; empty if there is none.
    pub object: Arc<str>,
    /// The start of a range; 0 if there is none.
    pub offset: u64,
    /// The bytes read, written, put, discarded, expected or kept; the length for
    /// [`CallKind::Truncate`] and [`CallKind::Allocate`]; the alignment for rounding up; else 0.
    pub len: u64,
    /// The time of the call in nanoseconds, if the recorder has a clock.
    pub time: Option<u64>,
}

type Clock = Box<dyn Fn() -> u64 + Send + Sync>;
type Watcher = Box<dyn FnMut(&StoreEvent) + Send>;

/// The destination of events.
enum Sink {
    Keep(Vec<StoreEvent>),
    Watch(Watcher),
}

struct State {
    calls: u64,
    /// Each name once; all events share it.
    names: HashSet<Arc<str>>,
    sink: Sink,
}

/// A layer that records every call that touches an object, and with [`RecordStore::whole`] every
/// other one as well.
pub struct RecordStore<S> {
    inner: S,
    clock: Option<Clock>,
    whole: bool,
    state: Mutex<State>,
}

impl<S> RecordStore<S> {
    /// Keeps all events until [`RecordStore::take`].
    pub fn new(inner: S) -> Self {
        Self::with(inner, Sink::Keep(Vec::new()))
    }

    /// Keeps nothing and hands each event to `watcher`, for runs too long to keep. The watcher
    /// must not call this store.
    pub fn watching(inner: S, watcher: impl FnMut(&StoreEvent) + Send + 'static) -> Self {
        Self::with(inner, Sink::Watch(Box::new(watcher)))
    }

    /// Records the time of every call by `clock`, in nanoseconds.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// Also records the lock, space queries, hints and failures: everything that a store sees.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// The events since the last `take`, in order. Call numbers continue.
    pub fn take(&self) -> Vec<StoreEvent> {
        match &mut self.state().sink {
            Sink::Keep(events) => std::mem::take(events),
            Sink::Watch(_) => Vec::new(),
        }
    }

    /// Calls recorded so far.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// The store below.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// The store below, without its recorder.
    pub fn into_inner(self) -> S {
        self.inner
    }

    fn with(inner: S, sink: Sink) -> Self {
        let state = State { calls: 0, names: HashSet::new(), sink };
        Self { inner, clock: None, whole: false, state: Mutex::new(state) }
    }

    /// Records one call and its ranges, and returns its number.
    fn note(&self, op: CallKind, asked: &StoreCall<'_, '_>) -> u64 {
        let mut state = self.state();
        let call = state.calls;
        if op.is_of_whole() && !self.whole {
            return call;
        }
        // Read under the lock, so that times never run backwards in the trace.
        let time = self.clock.as_ref().map(|clock| clock());
        state.calls += 1;
        asked.ranges(&mut |object, offset, len| {
            let object = state.name(object);
            state.sink.push(StoreEvent { call, op, object, offset, len, time });
        });
        call
    }

    /// Returns the result of the calls with these numbers, and records a failure.
    fn done<T>(&self, calls: RangeInclusive<u64>, result: Result<T>) -> Result<T> {
        if result.is_err() && self.whole {
            let time = self.clock.as_ref().map(|clock| clock());
            let mut state = self.state();
            for call in calls {
                let object = state.name("");
                state.sink.push(StoreEvent {
                    call,
                    op: CallKind::Failed,
                    object,
                    offset: 0,
                    len: 0,
                    time,
                });
            }
        }
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn name(&mut self, object: &str) -> Arc<str> {
        if let Some(known) = self.names.get(object) {
            return Arc::clone(known);
        }
        let new: Arc<str> = object.into();
        self.names.insert(Arc::clone(&new));
        new
    }
}

impl Sink {
    fn push(&mut self, event: StoreEvent) {
        match self {
            Self::Keep(events) => events.push(event),
            Self::Watch(watcher) => watcher(&event),
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for RecordStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl<S: Objects> Layer for RecordStore<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if let StoreCall::Hint(Hint::BeforeRepeat(_)) = call {
            return call.on(&self.inner);
        }
        let first = self.note(CallKind::of(call), call);
        // A durable write is a write and a sync in one call.
        let last = match call {
            StoreCall::WriteDurable(it) => {
                self.note(CallKind::Sync, &StoreCall::Sync(&[it.object]))
            }
            _ => first,
        };
        self.done(first..=last, call.on(&self.inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Held, Lease, Log, MemoryStore, Objects, PutMode, ReadAt, Slots, StoreError, WriteAt,
    };
    use std::sync::atomic::{AtomicU64, Ordering};

    fn write<'a>(object: &'a str, offset: u64, data: &'a [u8]) -> WriteAt<'a> {
        WriteAt::new(object, offset, data)
    }

    #[test]
    fn events_come_in_order_and_by_call() -> Result<()> {
        let store = RecordStore::new(MemoryStore::new());
        store.write(&[write("a", 0, b"one"), write("b", 7, b"two!")])?;
        store.sync(&["a", "b"])?;
        store.read(&mut [ReadAt { object: "b", offset: 8, buf: &mut [0; 2] }])?;
        store.put("c", b"12345", PutMode::Replace)?;
        store.truncate("a", 2)?;
        store.allocate("a", 9)?;
        store.discard(&[("b", 7, 2), ("c", 0, 1)])?;
        store.len("a")?;
        store.list()?;
        store.delete(&["a"])?;
        store.lock()?;
        let seen: Vec<_> = store.take().into_iter().collect();
        let plain: Vec<_> =
            seen.iter().map(|e| (e.call, e.op, &*e.object, e.offset, e.len)).collect();
        let expected = [
            (0, CallKind::Write, "a", 0, 3),
            (0, CallKind::Write, "b", 7, 4),
            (1, CallKind::Sync, "a", 0, 0),
            (1, CallKind::Sync, "b", 0, 0),
            (2, CallKind::Read, "b", 8, 2),
            (3, CallKind::Put, "c", 0, 5),
            (4, CallKind::Truncate, "a", 0, 2),
            (5, CallKind::Allocate, "a", 0, 9),
            (6, CallKind::Discard, "b", 7, 2),
            (6, CallKind::Discard, "c", 0, 1),
            (7, CallKind::Len, "a", 0, 0),
            (8, CallKind::List, "", 0, 0),
            (9, CallKind::Delete, "a", 0, 0),
        ];
        assert_eq!(plain, expected);
        assert!(seen.iter().all(|event| event.time.is_none()));
        assert!(store.take().is_empty());
        assert_eq!(store.calls(), 10);
        Ok(())
    }

    #[test]
    fn what_fails_was_seen_too() {
        let store = RecordStore::new(MemoryStore::new());
        assert!(matches!(store.sync(&["none"]), Err(StoreError::Missing { .. })));
        assert_eq!(store.take().len(), 1);
    }

    #[test]
    fn a_whole_record_has_hints_the_lock_and_failures() -> Result<()> {
        let store = RecordStore::new(MemoryStore::new()).whole();
        store.lock()?;
        store.hint(Hint::Keep(7));
        store.hint(Hint::RoundUp { object: "a", align: 4096 });
        store.hint(Hint::Reads(&[("a", 1, 2)]));
        store.write_durable("a", 3, b"xy")?;
        store.free_bytes()?;
        assert!(store.sync(&["none"]).is_err());
        let seen: Vec<_> =
            store.take().into_iter().map(|e| (e.call, e.op, e.object, e.offset, e.len)).collect();
        let plain: Vec<_> = seen.iter().map(|e| (e.0, e.1, &*e.2, e.3, e.4)).collect();
        let expected = [
            (0, CallKind::Lock, "", 0, 0),
            (1, CallKind::MayKeep, "", 0, 7),
            (2, CallKind::MayRoundUp, "a", 0, 4096),
            (3, CallKind::ExpectReads, "a", 1, 2),
            (4, CallKind::Write, "a", 3, 2),
            (5, CallKind::Sync, "a", 0, 0),
            (6, CallKind::Free, "", 0, 0),
            (7, CallKind::Sync, "none", 0, 0),
            (7, CallKind::Failed, "", 0, 0),
        ];
        assert_eq!(plain, expected);
        Ok(())
    }

    #[test]
    fn a_watcher_gets_the_events_and_the_time() -> Result<()> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let ticks = AtomicU64::new(5);
        let store = RecordStore::watching(MemoryStore::new(), move |event: &StoreEvent| {
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
        })
        .clock(move || ticks.fetch_add(10, Ordering::Relaxed));
        store.put("a", b"x", PutMode::Replace)?;
        store.sync(&["a"])?;
        assert!(store.take().is_empty());
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let times: Vec<_> = seen.iter().map(|event| event.time).collect();
        assert_eq!(times, [Some(5), Some(15)]);
        Ok(())
    }
}
