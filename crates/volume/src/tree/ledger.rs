//! The ledger: the engine, its buckets, and what makes them durable. It knows no policy.
//!
//! A commit writes buckets (to free slots) and the sealed state (a delta on the logs of both
//! checkpoints, and now and then a new checkpoint in place of the older one). Once all of that is
//! durable it writes the commit record, twice. Until a record is durable, a crash leaves the
//! previous commit, whole. Each record of the journal is an act of this
//! computer: it is durable, then noted; only then may an answer follow from it, and a read but for
//! a few (see `record_sync`).

use crate::around::reads_any;
use crate::core::{self, Limit};
use crate::damage::DamagedPlace;
use crate::environment::Environment;
use crate::header::HEADER_OBJECTS;
use crate::records::commit::{COMMIT_OBJECTS, COMMITS_BYTES, CommitSlots, FoundCommit};
use crate::records::journal::{Journal, PAGE};
use crate::records::record::{Record, intent, parse, resize, sync};
use crate::records::state::{LoadedState, STATE_OBJECT, StateLog};
use crate::records::writes::Writes;
use crate::tree::account::TreeAccount;
use crate::tree::header::{config, slot_align, with_limit};
use crate::tree::record_sync::{MOST_UNSYNCED, RecordSync};
use crate::tree::slab::{Slab, SlotTable, read_top};
use crate::tree::state::{ChangedSlots, Parts, begin};
use crate::trust::{Act, Keep, LogMark, MOST_ROWS, Trust, beside_damage};
use crate::{Opening, Result};
use oblivio_crypto::Sealer;
use oblivio_engine::tree::{Intent, TopControl, TopView, TreeOram, buckets_in};
use oblivio_store::Store;
use std::sync::Arc;

/// The engine and everything of it in the store.
pub struct TreeLedger {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: TreeOram,
    pub(crate) slab: Slab,
    pub(crate) journal: Journal,
    pub(crate) state: StateLog,
    commits: CommitSlots,
    pub(crate) trust: Trust,
    /// The caller's bytes beside the blocks.
    pub(crate) root: Vec<u8>,
    pub(crate) limit: Limit,
    /// Copies of commit record and state that were damaged.
    pub(crate) damaged: Vec<DamagedPlace>,
    /// One that is no damage if a session did not end well.
    remains: Option<DamagedPlace>,
    environment: Environment,
    pub(crate) records: RecordSync,
}

impl TreeLedger {
    /// Of an engine that holds nothing yet.
    pub(crate) fn new(
        opening: &Opening<'_, Arc<dyn Store>>,
        engine: TreeOram,
        trust: Trust,
    ) -> Self {
        let Opening { store, header, master, options, .. } = opening;
        let volume = header.volume();
        let environment = options.environment.clone();
        let randomness = &environment.randomness;
        let sealer = |root| Sealer::new(root, Box::new(randomness.clone()));
        Self {
            slab: Slab::of(&engine, slot_align(&header.parameters())),
            journal: Journal::new(volume, sealer(master.intent_root(volume))),
            state: StateLog::new(volume, sealer(master.state_root(volume))),
            commits: CommitSlots::new(volume, sealer(master.commit_root(volume))),
            records: RecordSync::new(store, trust.notes(), &environment, false),
            trust,
            store: Arc::clone(store),
            engine,
            root: Vec::new(),
            limit: Limit::of(header, master),
            damaged: Vec::new(),
            remains: None,
            environment,
        }
    }

    /// Lets records run ahead of syncs, or not. The journal is empty, and noted.
    pub fn records_run_ahead(&mut self, ahead: bool) {
        let notes = self.trust.notes();
        self.records = RecordSync::new(&self.store, notes, &self.environment, ahead);
    }

    /// Loads the newest commit and its state.
    pub fn load(&mut self) -> Result<()> {
        let (found, loaded) = self.read_newest()?;
        let record = found.record;
        self.damaged = found.damaged;
        let (mut table, mut computers) = (SlotTable::default(), None);
        match loaded.may_be_remains {
            true => self.remains = loaded.damaged,
            false => self.damaged.extend(loaded.damaged),
        }
        for (index, plain) in loaded.plains.iter().enumerate() {
            let parts = match index {
                0 => Parts::of_checkpoint(plain)?,
                _ => Parts::of_delta(plain)?,
            };
            self.root = parts.root.to_vec();
            computers = parts.table;
            match index {
                0 => self.engine.restore(parts.engine),
                _ => self.engine.apply_delta(parts.engine),
            }?;
            table.apply(&parts.slots, buckets_in(self.engine.depth()))?;
        }
        let judged = self.trust.judge_commit(record.epoch(), record.digest(), computers);
        let beside = found.newer_may_be_damaged;
        judged.map_err(|error| beside_damage(error, beside, COMMIT_OBJECTS[0]))?;
        let missing = |bucket| self.engine.missing_slots(bucket);
        self.slab.restore(table, missing, &self.store.list()?)?;
        if let Some(found) = TopControl::of(&mut self.engine).find()? {
            self.damaged.extend(read_top(&mut self.slab, &*self.store, &mut self.engine, found)?);
        }
        self.journal.restart(record.epoch(), &record.digest());
        Ok(())
    }

    /// Reads the newest commit record and its state. A place that cannot be read is no outage while
    /// there is a second copy of it, so a layer that repeats what fails is to repeat nothing yet.
    fn read_newest(&mut self) -> Result<(FoundCommit, LoadedState)> {
        let (repeats, store) = (self.slab.repeats().clone(), Arc::clone(&self.store));
        repeats.at_first(|| reads_any(&*store, &HEADER_OBJECTS), || self.try_to_read())
    }

    fn try_to_read(&mut self) -> Result<(FoundCommit, LoadedState)> {
        let found = self.commits.read(&*self.store)?;
        let loaded = self.state.load(&*self.store, found.record)?;
        Ok((found, loaded))
    }

    /// Compares the copies of commit record and state with what was written; gives what differs.
    pub fn inspect(&mut self) -> Result<Vec<DamagedPlace>> {
        let Self { store, slab, state, commits, .. } = self;
        let (store, record) = (&**store, *state.record());
        let other = || slab.reads_any(store) || reads_any(store, &HEADER_OBJECTS);
        let inspect = || commits.inspect(store, &record);
        let mut damaged = slab.repeats().inspect(COMMIT_OBJECTS[0], other, inspect)?;
        let inspect = || state.inspect(store);
        damaged.extend(slab.repeats().inspect(STATE_OBJECT, other, inspect)?);
        Ok(damaged)
    }

    /// Bytes that [`Self::inspect`] reads, about.
    pub fn small_bytes(&self) -> u64 {
        let record = self.state.record();
        let pairs = [Some(record.first()), record.second()].into_iter().flatten();
        let state: u64 = pairs.map(|pair| pair.state_bytes() + pair.log_bytes()).sum();
        COMMITS_BYTES + state
    }

    /// Reads the journal, checks it against what this computer knows of it, and begins the session.
    pub fn load_journal(&mut self) -> Result<Vec<(Option<Act>, Record)>> {
        let mut check = self.trust.log_check();
        let records = self.journal.load(&*self.store, &mut check, parse)?;
        check.finish(0, self.journal.mark().end)?;
        records.iter().filter_map(|(act, _)| *act).for_each(|act| self.trust.absorb(act));
        let newest = records.last().and_then(|(act, _)| *act);
        self.trust.begin(self.journal.mark(), newest)?;
        // The next commit makes it whole in either case.
        let ended_well = records.is_empty() && TopView::of(&self.engine).rule().is_none();
        self.damaged.extend(self.remains.take().filter(|_| ended_well));
        Ok(records)
    }

    /// Makes the engine's state current. Everything of it is flushed, or in the log of its top.
    pub fn commit(&mut self) -> Result<()> {
        self.slab.forget(&self.engine.dropped());
        self.records.settle()?;
        let current = *self.state.record();
        let table = self.trust.commit_act(current.epoch() + 1)?.to_bytes(MOST_ROWS);
        let checkpoint = self.state.wants_checkpoint().then(|| {
            let mut out = begin(&self.root, &table, ChangedSlots::All(Box::new(self.slab.table())));
            self.engine.checkpoint(&mut out);
            out
        });
        // Without a commit before it there is nothing that a delta would change.
        let delta = (current.epoch() > 0).then(|| {
            let mut out = begin(&self.root, &table, ChangedSlots::Changed(self.slab.changes()));
            self.engine.delta(&mut out);
            out
        });
        let (record, written) = self.state.write(&*self.store, delta, checkpoint)?;
        let together = [self.slab.fresh_objects(), written].concat();
        self.store.sync(&together)?;
        self.trust.refuse_overtaken()?;
        self.commits.write(&*self.store, &current, &record)?;
        self.state.committed(record);
        self.engine.committed();
        self.slab.committed();
        match TopView::of(&self.engine).rule() {
            Some((_, entries)) => self.slab.top.committed(entries.start),
            None => self.slab.top.give_back(&*self.store)?,
        }
        let (epoch, digest) = (record.epoch(), record.digest());
        self.journal.restart(epoch, &digest);
        self.trust.committed(epoch, digest, LogMark::default(), Keep::Durable)?;
        self.records.restart();
        Ok(())
    }

    /// Records the intent of a batch or a round of maintenance.
    pub fn record_intent(&mut self, of: &Intent) -> Result<()> {
        let (act, ahead) = self.next_record()?;
        let many = of.ids.len() > MOST_UNSYNCED;
        self.append((act, ahead), intent(act, ahead, of), 0, (of.ids.len(), many))
    }

    /// Records writes and the root, in the size class of `least` bytes or a larger one; gives the
    /// record's length.
    pub fn record_sync(&mut self, writes: &Writes, least: usize) -> Result<u64> {
        let before = self.journal.bytes();
        let (act, ahead) = self.next_record()?;
        let record = sync(act, ahead, &self.root, writes);
        // Room for the frame, the seal and a root of any length: `least` counts writes only.
        self.append((act, ahead), record, least + PAGE, (0, true))?;
        Ok(self.journal.bytes() - before)
    }

    /// The act that the next record is, and up to where the journal is durable, if it may run
    /// ahead.
    fn next_record(&mut self) -> Result<(Act, Option<u64>)> {
        Ok((self.trust.act()?, self.records.ahead_of()))
    }

    /// Appends a record, of [`Self::next_record`], which announces this number of accesses. It is
    /// durable on return if records do not run ahead, or if `wait`.
    fn append(
        &mut self,
        (act, ahead): (Act, Option<u64>),
        record: Vec<u8>,
        least: usize,
        (accesses, wait): (usize, bool),
    ) -> Result<()> {
        let store = &*self.store;
        let durable = match ahead {
            Some(_) => self.journal.append_ahead(store, record, least)?,
            None => self.journal.append(store, record, least).map(|()| true)?,
        };
        self.records.wrote((self.journal.mark(), act), accesses as u64, (durable, wait))
    }

    /// Bytes of a bucket with all its slots.
    pub fn bucket_bytes(&self) -> u64 {
        self.engine.config().geometry().bucket_bytes() as u64
    }
}

impl core::Ledger for TreeLedger {
    type Account = TreeAccount;

    fn engine(&self) -> &TreeOram {
        &self.engine
    }

    fn engine_mut(&mut self) -> &mut TreeOram {
        &mut self.engine
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: Vec<u8>) {
        self.root = root;
    }

    fn limit(&self) -> u64 {
        config(&self.limit.parameters()).capacity
    }

    /// Stored data stays where it is.
    fn set_limit(&mut self, blocks: u64) -> Result<()> {
        let parameters = with_limit(&self.limit.parameters(), blocks, self.engine.capacity())?;
        self.limit.replace(&*self.store, &parameters)
    }

    fn record_resize(&mut self, blocks: u64, class: u64) -> Result<()> {
        let (act, ahead) = self.next_record()?;
        self.append((act, ahead), resize(act, ahead, blocks, class), 0, (0, true))
    }

    fn judged<T>(&mut self, result: Result<T>) -> Result<T> {
        result
    }

    /// Nobody else waits for this one: the store is locked.
    fn give_up(&mut self) {}
}
