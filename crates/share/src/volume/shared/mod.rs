//! A shared volume over a keeper: who may do what, in which order, and what is durable when.
//!
//! Three locks, always taken in this order: `building` (objects), `syncing` (who makes records
//! durable; the others wait and find it done), `state`. The last is held for work in memory and
//! for the write of a record only.

mod building;
mod clients;
mod scribe;
mod waiting;

use super::history_index::HistoryIndex;
use super::keeper::{Catalog, Change, Keeper, Kept};
use super::lease::Lease;
use super::limits::{BEYOND_QUOTA, LEAST_FREE};
use super::objects::Objects;
use super::request_queue::RequestQueue;
use oblivio_store::StoreError;
use oblivio_store::share::{
    HistoryEntry, Number, Object, Result, ScribeTerm, ServerTable, ShareCall, ShareClock,
    ShareError, ShareReply, decode,
};
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use waiting::Waiting;

/// A shared volume.
pub(super) struct Shared<K> {
    keeper: K,
    clock: ShareClock,
    building: Mutex<()>,
    syncing: Mutex<()>,
    state: Mutex<State>,
    asks_came: Condvar,
    records_came: Condvar,
}

struct State {
    waiting: Waiting,
    lease: Lease,
    queue: RequestQueue,
    index: HistoryIndex,
    catalog: Catalog,
    /// Records before this one are durable.
    synced: Number,
    /// The disk failed in a way that only a new start finds out about.
    failed: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unusable() -> ShareError {
    let why = io::Error::other("an earlier write failed; start the server anew");
    ShareError::Store(StoreError::io("history", why))
}

impl State {
    fn admit(&mut self, term: ScribeTerm, now: Duration) -> Result<()> {
        self.usable()?;
        self.lease.admit(term, now)
    }

    fn usable(&self) -> Result<()> {
        if self.failed { Err(unusable()) } else { Ok(()) }
    }

    fn slot_bytes(&self) -> Result<u32> {
        self.catalog.parameters.as_ref().map(|it| it.slot_bytes).ok_or(ShareError::NotMade)
    }

    /// Refuses more than the quota, and `beyond`.
    fn within_quota(&self, used: u64, beyond: u64) -> Result<()> {
        match self.catalog.quota {
            Some(quota) if used >= quota.saturating_add(beyond) => Err(ShareError::Quota),
            _ => Ok(()),
        }
    }
}

impl<K: Keeper> Shared<K> {
    /// An empty one.
    pub fn new(keeper: K, catalog: Catalog, clock: ShareClock) -> Self {
        Self::with(keeper, catalog, HistoryIndex::default(), clock)
    }

    /// Opens what a keeper has.
    ///
    /// # Errors
    /// Those of storage; `Invalid` for records that no server wrote.
    pub fn open(mut keeper: K, kept: Kept, clock: ShareClock) -> Result<Self> {
        let Kept { catalog, objects, next } = kept;
        let mut held = Objects::default();
        for (object, len) in objects {
            let named = match object {
                Object::Table(table) => catalog.tables.contains_key(&table),
                Object::Checkpoint(at) => catalog.checkpoint.is_some_and(|it| it.at == at),
            };
            held.add(object, len, named);
        }
        let mut index = HistoryIndex::new(catalog.first, held);
        for number in catalog.first.0..next.0 {
            let encoded = keeper.record(Number(number))?;
            let entry = decode(&encoded)?;
            match &entry {
                // The catalog has it already.
                HistoryEntry::Switch(_) if number < catalog.applied.0 => index.take_applied(&entry),
                _ => index.take(&entry, &encoded),
            }
        }
        keeper.clean()?;
        let needed: Vec<ServerTable> = index.needed().into_iter().collect();
        needed.into_iter().for_each(|table| index.objects.is_replaced(table));
        let shared = Self::with(keeper, catalog, index, clock);
        shared.sync_before(next)?;
        Ok(shared)
    }

    /// What was read may not be durable yet, so nothing counts as durable before a sync.
    fn with(keeper: K, catalog: Catalog, index: HistoryIndex, clock: ShareClock) -> Self {
        let lease = Lease::resumed(catalog.term, clock());
        let queue = RequestQueue::of_start(catalog.starts);
        let synced = catalog.first;
        let state = State {
            waiting: Waiting::default(),
            lease,
            queue,
            index,
            catalog,
            synced,
            failed: false,
        };
        Self {
            keeper,
            clock,
            building: Mutex::default(),
            syncing: Mutex::default(),
            state: Mutex::new(state),
            asks_came: Condvar::new(),
            records_came: Condvar::new(),
        }
    }

    /// The keeper.
    pub fn keeper(&self) -> &K {
        &self.keeper
    }

    /// Makes all records so far durable.
    pub fn settle(&self) -> Result<()> {
        let next = self.state().index.next();
        self.sync_before(next)?;
        self.keeper.settle()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn admit(&self, term: ScribeTerm) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        state.admit(term, (self.clock)())?;
        Ok(state)
    }

    fn used(&self, state: &State) -> u64 {
        self.keeper.record_bytes() + state.index.objects.bytes()
    }

    /// Refuses what does not fit: more than the quota and `beyond`, or than the disk has room for.
    fn within(&self, state: &State, beyond: u64) -> Result<()> {
        state.within_quota(self.used(state), beyond)?;
        // The rest is for what must still be ended in order.
        match self.keeper.free_bytes()? < BEYOND_QUOTA.saturating_sub(beyond) + LEAST_FREE {
            true => Err(StoreError::Full.into()),
            false => Ok(()),
        }
    }

    /// Sets how many bytes the volume may take.
    pub fn set_quota(&self, quota: Option<u64>) -> Result<()> {
        self.commit(&[Change::Quota(quota)])
    }

    /// Makes changes durable, then visible.
    fn commit(&self, changes: &[Change]) -> Result<()> {
        self.keeper.commit(changes)?;
        let mut state = self.state();
        changes.iter().for_each(|change| state.catalog.apply(change));
        Ok(())
    }

    /// Makes all records before this one durable, with others that are there by then.
    pub fn sync_before(&self, before: Number) -> Result<()> {
        let is_done = || self.state().synced >= before;
        if is_done() {
            return Ok(());
        }
        let _syncing = lock(&self.syncing);
        if is_done() {
            return Ok(());
        }
        let next = {
            let state = self.state();
            state.usable()?;
            state.index.next()
        };
        let switches = match self.keeper.sync() {
            Ok(()) => self.state().index.objects.take_switches(next),
            Err(error) => {
                self.state().failed = true;
                return Err(error);
            }
        };
        if !switches.is_empty()
            && let Err(error) = self.commit(&switches)
        {
            self.state().failed = true;
            return Err(error);
        }
        let gone = {
            let mut state = self.state();
            state.synced = next;
            state.index.durable(next)
        };
        self.records_came.notify_all();
        gone.into_iter().try_for_each(|table| self.keeper.delete(Object::Table(table)))
    }

    /// Carries out a call.
    pub fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        let done = |()| ShareReply::Done;
        match call {
            ShareCall::Parameters => {
                Ok(ShareReply::Parameters(self.state().catalog.parameters.clone()))
            }
            ShareCall::PutParameters { after, slot_bytes, header } => {
                self.put_parameters(after, slot_bytes, header).map(ShareReply::Version)
            }
            ShareCall::Ask(asks) => self.ask(asks).map(done),
            ShareCall::Answers { session, from, wait } => {
                self.answers(session, from, wait).map(ShareReply::Answers)
            }
            ShareCall::Notices { from, wait } => self.notices(from, wait).map(ShareReply::Notices),
            ShareCall::Claim { previous } => self.claim(previous).map(ShareReply::Term),
            ShareCall::Renew(term) => self.admit(term).map(|_| ShareReply::Done),
            ShareCall::Release(term) => self.state().lease.release(term, (self.clock)()).map(done),
            ShareCall::Asks { term, from, wait } => {
                self.asks(term, from, wait).map(|(asks, next)| ShareReply::Asks(asks, next))
            }
            ShareCall::Append { term, number, entry } => self.append(term, number, entry).map(done),
            ShareCall::Durable { term, number } => self.durable(term, number).map(done),
            ShareCall::Sums { term, number } => self.sums(term, number).map(ShareReply::Bytes),
            ShareCall::Refuse { term, answers } => self.refuse(term, answers).map(done),
            ShareCall::Slots { term, after, spots } => {
                self.slots(term, after, spots).map(ShareReply::Bytes)
            }
            ShareCall::Upload { term, object, offset, piece } => {
                self.upload(term, object, offset, piece).map(done)
            }
            ShareCall::Finish { term, object, len } => self.finish(term, object, len).map(done),
            ShareCall::Save { term, at, keep_from } => self.save(term, at, keep_from).map(done),
            ShareCall::Records { from, most_bytes, wait } => {
                self.records(from, most_bytes, wait).map(ShareReply::Records)
            }
            ShareCall::Checkpoint => self.checkpoint().map(ShareReply::Checkpoint),
            ShareCall::ReadCheckpoint { at, offset, len } => {
                self.read_checkpoint(at, offset, len).map(ShareReply::Bytes)
            }
            ShareCall::Status => Ok(ShareReply::Status(self.status())),
        }
    }
}
