//! [`FaultStore`]: fails the operation that a test picks.
//!
//! Every range of a read, write or discard, and every object of a sync or delete, is one operation.
//! So a call of many can fail in the middle, after the ranges before it.

use oblivio_store::{Layer, Objects, Result, StoreAnswer, StoreCall, StoreError};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether the failing operation takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It is not applied.
    Before,
    /// It is applied, and fails nevertheless, like a lost answer.
    After,
}

/// The duration of the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Only that operation fails.
    Once,
    /// That operation and all later ones fail, until [`FaultPlan::clear`].
    FromThenOn,
}

/// The error to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`StoreError::Io`] with the system's EIO.
    Eio,
    /// [`StoreError::Full`].
    Full,
}

/// A planned fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Whether the operation takes effect.
    pub when: When,
    /// Its duration.
    pub repeat: Repeat,
    /// The error to return.
    pub kind: Kind,
}

impl Fault {
    /// EIO, once, without effect. Change the fields as needed.
    #[must_use]
    pub fn once() -> Self {
        Self { when: When::Before, repeat: Repeat::Once, kind: Kind::Eio }
    }
}

#[derive(Debug, Default)]
struct Plan {
    operations: u64,
    fired: u64,
    fault: Option<(u64, Fault)>,
}

/// A handle on the planned fault. Clones share it, and so may several stores.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    plan: Arc<Mutex<Plan>>,
}

/// The outcome of a call: operations applied, and the error after them.
struct Verdict {
    applied: usize,
    failed: Option<(usize, Kind)>,
}

impl FaultPlan {
    /// A plan without a fault.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails the operation with number `operation`, counted from 0 since the plan was made. It
    /// replaces the previous plan. A fault whose number has passed never happens, unless it lasts.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.plan().fault = Some((operation, fault));
    }

    /// Fails the operation `distance` after the next one: 0 is the next.
    pub fn fail_in(&self, distance: u64, fault: Fault) {
        let mut plan = self.plan();
        plan.fault = Some((plan.operations + distance, fault));
    }

    /// Cancels the fault.
    pub fn clear(&self) {
        self.plan().fault = None;
    }

    /// Operations so far, failed ones included.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.plan().operations
    }

    /// Operations that this plan failed.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.plan().fired
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call of `count` operations. Those after a failed one do not take place.
    fn judge(&self, count: usize) -> Verdict {
        let mut plan = self.plan();
        let begin = plan.operations;
        let hit = plan.fault.and_then(|(at, fault)| match at.checked_sub(begin) {
            Some(ahead) => (ahead < count as u64).then_some((ahead as usize, fault)),
            None => (fault.repeat == Repeat::FromThenOn && count > 0).then_some((0, fault)),
        });
        let Some((place, fault)) = hit else {
            plan.operations += count as u64;
            return Verdict { applied: count, failed: None };
        };
        plan.operations += place as u64 + 1;
        plan.fired += 1;
        let applied = place + usize::from(fault.when == When::After);
        Verdict { applied, failed: Some((place, fault.kind)) }
    }
}

/// A layer that fails by a [`FaultPlan`].
#[derive(Debug)]
pub struct FaultStore<S> {
    inner: S,
    plan: FaultPlan,
}

impl<S> FaultStore<S> {
    /// A layer that fails by `plan`.
    pub fn new(inner: S, plan: FaultPlan) -> Self {
        Self { inner, plan }
    }

    /// The plan.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// The store below.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Objects> FaultStore<S> {
    /// A call that is one operation.
    fn single(&self, object: &str, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let verdict = self.plan.judge(1);
        // Not applied means failed, and then this answer does not count.
        let answer = if verdict.applied == 1 { call.on(&self.inner)? } else { StoreAnswer::Done };
        verdict.check(|_| object).map(|_| answer)
    }
}

impl Verdict {
    fn check<'a>(&self, name: impl FnOnce(usize) -> &'a str) -> Result<StoreAnswer> {
        self.failed.map_or(Ok(StoreAnswer::Done), |(place, kind)| Err(kind.error(name(place))))
    }
}

impl Kind {
    fn error(self, object: &str) -> StoreError {
        /// The number is the same on every Unix.
        const EIO: i32 = 5;
        match self {
            Self::Eio => StoreError::io(object, io::Error::from_raw_os_error(EIO)),
            Self::Full => StoreError::Full,
        }
    }
}

impl<S: Objects> Layer for FaultStore<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::FreeBytes | StoreCall::Hint(_) => call.on(&self.inner),
            StoreCall::Read(reads) => {
                let verdict = self.plan.judge(reads.len());
                self.inner.read(&mut reads[..verdict.applied])?;
                verdict.check(|place| reads[place].object)
            }
            StoreCall::Write(writes) => {
                let verdict = self.plan.judge(writes.len());
                StoreCall::Write(&writes[..verdict.applied]).on(&self.inner)?;
                verdict.check(|place| writes[place].object)
            }
            StoreCall::Begin(objects) => {
                let verdict = self.plan.judge(objects.len());
                self.inner.begin(&objects[..verdict.applied])?;
                verdict.check(|place| objects[place].0)
            }
            StoreCall::WriteDurable(it) => {
                self.call(&mut StoreCall::Write(&[*it]))?;
                self.call(&mut StoreCall::Sync(&[it.object]))
            }
            StoreCall::Sync(objects) => {
                let verdict = self.plan.judge(objects.len());
                StoreCall::Sync(&objects[..verdict.applied]).on(&self.inner)?;
                verdict.check(|place| objects[place])
            }
            StoreCall::Settle(objects) => {
                let verdict = self.plan.judge(objects.len());
                self.inner.settle(&objects[..verdict.applied])?;
                verdict.check(|place| objects[place])
            }
            StoreCall::Discard(ranges) => {
                let verdict = self.plan.judge(ranges.len());
                StoreCall::Discard(&ranges[..verdict.applied]).on(&self.inner)?;
                verdict.check(|place| ranges[place].0)
            }
            StoreCall::Delete(objects) => {
                let verdict = self.plan.judge(objects.len());
                self.inner.delete(&objects[..verdict.applied])?;
                verdict.check(|place| objects[place])
            }
            StoreCall::Len(object)
            | StoreCall::Put(object, ..)
            | StoreCall::Truncate(object, _)
            | StoreCall::Allocate(object, _) => {
                let object = *object;
                self.single(object, call)
            }
            StoreCall::Lens(objects) => {
                let object = objects.first().copied().unwrap_or_default();
                self.single(object, call)
            }
            StoreCall::List | StoreCall::ListUnder(_) | StoreCall::Lock => self.single("", call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{Held, MemoryStore, PutMode, ReadAt, Store, WriteAt};

    fn store() -> FaultStore<MemoryStore> {
        FaultStore::new(MemoryStore::new(), FaultPlan::new())
    }

    fn write_three(store: &impl Store) -> Result<()> {
        let write = |object| WriteAt::new(object, 0, b"x");
        store.write(&[write("a"), write("b"), write("c")])
    }

    fn names(store: &FaultStore<MemoryStore>) -> Result<Vec<String>> {
        Ok(store.inner().list()?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn before_and_after() -> Result<()> {
        for (when, left) in [(When::Before, 1), (When::After, 2)] {
            let store = store();
            store.plan().fail_at(1, Fault { when, ..Fault::once() });
            let error = write_three(&store).expect_err("planned");
            assert!(matches!(error, StoreError::Io { object, .. } if object == "b"));
            assert_eq!(names(&store)?, ["a", "b", "c"][..left]);
            // Once: the same call now passes.
            write_three(&store)?;
            assert_eq!((store.plan().operations(), store.plan().fired()), (5, 1));
        }
        Ok(())
    }

    #[test]
    fn from_then_on_until_cleared() -> Result<()> {
        let store = store();
        let fault = Fault { repeat: Repeat::FromThenOn, kind: Kind::Full, ..Fault::once() };
        store.put("a", b"1", PutMode::Replace)?;
        store.plan().fail_in(1, fault);
        store.put("b", b"2", PutMode::Replace)?;
        for _ in 0..3 {
            assert!(matches!(store.put("c", b"3", PutMode::Replace), Err(StoreError::Full)));
            assert!(matches!(store.len("a"), Err(StoreError::Full)));
            assert!(matches!(store.list(), Err(StoreError::Full)));
        }
        assert_eq!(names(&store)?, ["a", "b"]);
        store.plan().clear();
        store.put("c", b"3", PutMode::Replace)
    }

    #[test]
    fn every_operation_can_fail() -> Result<()> {
        type Call = fn(&dyn Store) -> Result<()>;
        let calls: [Call; 10] = [
            |store| store.read(&mut [ReadAt { object: "a", offset: 0, buf: &mut [0] }]),
            |store| store.write(&[WriteAt::new("a", 0, b"y")]),
            |store| store.sync(&["a"]),
            |store| store.len("a").map(drop),
            |store| store.put("a", b"z", PutMode::Replace),
            |store| store.truncate("a", 0),
            |store| store.allocate("a", 2),
            |store| store.discard(&[("a", 0, 1)]),
            |store| store.delete(&["a"]),
            |store| store.list().map(drop),
        ];
        for when in [When::Before, When::After] {
            for call in calls {
                let store = store();
                store.put("a", b"x", PutMode::Replace)?;
                store.plan().fail_in(0, Fault { when, ..Fault::once() });
                let before = store.inner().snapshot();
                assert!(matches!(call(&store), Err(StoreError::Io { .. })));
                if when == When::Before {
                    assert_eq!(before.list()?, store.inner().list()?);
                }
                assert_eq!(store.plan().fired(), 1);
            }
        }
        Ok(())
    }

    #[test]
    fn plans_are_shared() {
        let plan = FaultPlan::new();
        let (one, two) = (
            FaultStore::new(MemoryStore::new(), plan.clone()),
            FaultStore::new(MemoryStore::new(), plan),
        );
        one.plan().fail_at(1, Fault::once());
        assert!(one.list().is_ok());
        assert!(two.list().is_err());
        assert!(one.list().is_ok());
    }
}
