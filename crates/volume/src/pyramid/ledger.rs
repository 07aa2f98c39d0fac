//! The ledger: the engine, its tables, and what makes them durable. It knows no policy.
//!
//! A commit writes the sealed state, then the commit record, each durable before the next. Until
//! the record is durable, a crash leaves the previous commit, whole: no table of it was written
//! over. Each record of the journal is an act of this computer: it is durable, then noted; only
//! then may a read or an answer follow from it.

use super::header::config;
use super::journal::{Merge, Merges, Record, intent, parse, sync};
use super::places::{Place, Places, table_bytes};
use super::policy::LEAST_SYNC;
use super::state::{Parts, begin};
use super::tables::Tables;
use crate::header::Header;
use crate::records::commit::{COMMIT_OBJECT, read_commit, write_commit};
use crate::records::deferred::Writes;
use crate::records::journal::{Journal, PAGE};
use crate::records::state::StateLog;
use crate::trust::{Keep, LogMark, Trust, beside_damage};
use crate::{Error, Opening, Result};
use oblivio_crypto::{Sealer, VolumeId};
use oblivio_engine::pyramid::{Height, Home, MergeJob, PyramidKeys, PyramidOram, RoundJob, Seed};
use oblivio_engine::{BlockId, Job, carry_out};
use oblivio_store::Store;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The engine and everything of it in the store.
pub(super) struct Ledger {
    pub store: Arc<dyn Store>,
    pub header: Header,
    pub engine: PyramidOram,
    pub trust: Trust,
    /// The caller's bytes beside the blocks.
    pub root: Vec<u8>,
    volume: VolumeId,
    places: Places,
    journal: Journal,
    state: StateLog,
    commit_sealer: Sealer,
    /// Merges since the last record.
    merges: Merges,
    /// Asks at the last commit.
    committed_asks: u64,
}

impl Ledger {
    /// Of an engine that holds nothing yet.
    pub fn new(opening: &Opening<'_>, trust: Trust) -> Result<Self> {
        let Opening { store, header, master, options } = opening;
        let (volume, config) = (header.volume(), config(&header.parameters()));
        let randomness = &options.environment.randomness;
        let sealer = |root| Sealer::new(root, Box::new(randomness.clone()));
        let keys = PyramidKeys::of_volume(master, volume, randomness);
        Ok(Self {
            engine: PyramidOram::new(config, keys)?,
            places: Places::new(&config),
            journal: Journal::new(volume, sealer(master.intent_root(volume))),
            state: StateLog::new(volume, sealer(master.state_root(volume))),
            commit_sealer: sealer(master.commit_root(volume)),
            trust,
            store: Arc::clone(store),
            header: (*header).clone(),
            volume,
            root: Vec::new(),
            merges: Merges::default(),
            committed_asks: 0,
        })
    }

    /// Loads the newest commit and its state.
    pub fn load(&mut self) -> Result<()> {
        let (record, damaged) = read_commit(&*self.store, &mut self.commit_sealer, self.volume)?;
        let plains = self.state.load(&*self.store, record)?;
        let [plain] = &plains[..] else {
            return Err(Error::Tampered("a pyramid's state has no deltas".into()));
        };
        let parts = Parts::of(plain)?;
        let judged = self.trust.judge_commit(record.epoch(), record.digest(), Some(parts.table));
        judged.map_err(|error| beside_damage(error, damaged, COMMIT_OBJECT))?;
        self.root = parts.root.to_vec();
        self.engine.restore(parts.engine)?;
        for stored in parts.places {
            let (home, place) = stored.get();
            self.places.take_this(home, place)?;
        }
        self.expect_places()?;
        self.committed_asks = self.engine.asks();
        self.journal.restart(record.epoch(), &record.digest());
        Ok(())
    }

    /// Every table must have one place, of its length.
    fn expect_places(&mut self) -> Result<()> {
        let config = self.engine.config();
        let tables: Vec<_> = self.engine.tables().collect();
        let fits =
            |home, height| self.places.table_bytes(home) == Some(table_bytes(config, height));
        match tables.iter().all(|table| fits(table.home, table.height)) {
            true => Ok(()),
            false => Err(Error::Tampered("a table has no place of its length".into())),
        }
    }

    /// Reads the journal, checks it against what this computer knows of it, and begins the session.
    pub fn load_journal(&mut self) -> Result<Vec<Record>> {
        let mut check = self.trust.log_check();
        let block_bytes = self.engine.config().block_bytes;
        let parse = |plain: &[u8], check: &mut _| parse(plain, block_bytes, check);
        let records = self.journal.load(&*self.store, &mut check, parse)?;
        check.finish(0, self.journal.mark().end)?;
        records.iter().for_each(|(act, _)| self.trust.absorb(*act));
        let newest = records.last().map(|(act, _)| *act);
        self.trust.begin(self.journal.mark(), newest)?;
        Ok(records.into_iter().map(|(_, record)| record).collect())
    }

    /// Makes the engine's state current. Nothing of it may wait.
    pub fn commit(&mut self) -> Result<()> {
        let live: BTreeSet<Home> = self.engine.tables().map(|table| table.home).collect();
        let places = self.places.keep_only(&live);
        let table = self.trust.commit_act(self.state.record().epoch() + 1)?;
        let mut out = begin(&self.root, table, &places);
        self.engine.checkpoint(&mut out)?;
        let record = self.state.write_checkpoint(&*self.store, out)?;
        self.trust.refuse_overtaken()?;
        write_commit(&*self.store, &mut self.commit_sealer, self.volume, &record)?;
        self.state.committed(record);
        self.places.committed();
        self.merges.clear();
        self.committed_asks = self.engine.asks();
        let (epoch, digest) = (record.epoch(), record.digest());
        self.journal.restart(epoch, &digest);
        self.trust.committed(epoch, digest, LogMark::default(), Keep::Durable)
    }

    /// Ends a session that committed everything.
    pub fn end(&mut self) -> Result<()> {
        self.journal.clear(&*self.store)?;
        self.trust.end()
    }

    /// Records a round before it reads.
    pub fn record_intent(&mut self, seed: Seed, writes: bool, ids: &[BlockId]) -> Result<()> {
        let act = self.trust.act()?;
        self.append(intent(act, &self.merges, (seed, writes, ids)), 0)
    }

    /// Records writes and the root.
    pub fn record_sync(&mut self, writes: &Writes) -> Result<()> {
        let act = self.trust.act()?;
        let (record, merges) = sync(act, &self.merges, &self.root, writes);
        // Room for a root of any length, so that the length counts writes only.
        let least = writes.bytes().len().max(LEAST_SYNC) + PAGE + merges;
        self.append(record, least)
    }

    fn append(&mut self, record: Vec<u8>, least: usize) -> Result<()> {
        self.journal.append(&*self.store, record, least)?;
        self.merges.clear();
        let act = self.trust.last_act();
        self.trust.logged(self.journal.mark(), Some(act))
    }

    /// Carries out a round that is recorded.
    pub fn run_round(&mut self, round: &mut RoundJob) -> Result<()> {
        self.run(round).map(drop)
    }

    /// Carries out a merge. The next record has it: a crash before that leaves a table that nothing
    /// refers to, and the same merge to do.
    pub fn run_merge(&mut self, merge: &mut MergeJob) -> Result<()> {
        let written = self.run(merge)?;
        let (Some((home, place)), Some(merged)) = (written, merge.merged().cloned()) else {
            return Err(Error::Closed("a merge wrote no table".into()));
        };
        let base = self.engine.tables().any(|it| it.home == home && it.height == Height::Base);
        let block_bytes = self.engine.config().block_bytes;
        self.merges.add(&Merge { place, merged }, base, block_bytes)
    }

    fn run<J: Job<Engine = PyramidOram>>(&mut self, job: &mut J) -> Result<Option<(Home, Place)>> {
        let mut tables = Tables::new(&*self.store, &mut self.places);
        carry_out(job, &mut self.engine, &mut tables)?;
        Ok(tables.written)
    }

    /// Notes the place of a table that an earlier session recorded.
    pub fn place_again(&mut self, home: Home, place: Place) -> Result<()> {
        self.places.take_this(home, place)?;
        self.expect_places()
    }

    /// Reads and checks a table.
    pub fn check_table(&mut self, home: Home) -> Result<()> {
        let length = self.places.table_bytes(home).unwrap_or(0);
        let mut slots = vec![0; length as usize];
        let begin = u64::from(home.0) << oblivio_engine::pyramid::WITHIN_TABLE;
        let (object, offset) = self.places.find(begin)?;
        self.store.read(&mut [oblivio_store::ReadAt { object, offset, buf: &mut slots }])?;
        Ok(self.engine.check_table(home, &mut slots)?)
    }

    /// Where a table lies: its object, and its range there.
    pub fn place_of(&self, home: Home) -> Option<(String, Range<u64>)> {
        let length = self.places.table_bytes(home)?;
        let (object, offset) =
            self.places.find(u64::from(home.0) << oblivio_engine::pyramid::WITHIN_TABLE).ok()?;
        Some((object.to_owned(), offset..offset + length))
    }

    /// The number of the last commit.
    pub fn epoch(&self) -> u64 {
        self.state.record().epoch()
    }

    /// Bytes of records since the last commit.
    pub fn journal_bytes(&self) -> u64 {
        self.journal.bytes()
    }

    /// Bytes of a sealed state.
    pub fn state_bytes(&self) -> u64 {
        self.state.record().state_bytes()
    }

    /// Asks since the last commit.
    pub fn asks_since(&self) -> u64 {
        self.engine.asks() - self.committed_asks
    }

    /// Bytes of the tables' places.
    pub fn table_bytes(&self) -> u64 {
        self.places.bytes()
    }
}
