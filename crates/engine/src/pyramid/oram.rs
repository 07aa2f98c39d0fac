//! The pyramid in partitions: what its one organizer knows, and the rule by which asks show slots.
//!
//! An ask on a block that exists shows the partition of its *label*, wherever the block is: in a
//! table, or in the stash. A fresh partition for a block in the stash would look uniform and is
//! not: a block that is asked often would show fewer of the partitions that had a turn since. Every
//! label is shown exactly once, so the partitions are independent and uniform for every workload.
//!
//! Once the slots of a merge are known, an ask that showed one of them would certainly be for a
//! block, and one that showed another would certainly not. So asks show none of them.

use super::config::PyramidConfig;
use super::forgets::Forgets;
use super::homes::Homes;
use super::ids::{Name, Partition, Stamp, TableHome, TableSpot};
use super::open::Merges;
use super::operation::Effect;
use super::shown::{Rounds, Seed, Shown, Source};
use super::stash::Stash;
use super::table::Table;
use crate::{BlockId, EngineError, Label, Result};
use oblivio_crypto::{Entropy, MasterKey, Prf, Randomness, SealRoot, SeededEntropy, VolumeId};
use std::collections::HashMap;

/// The engine's input from the crypto crate.
pub struct PyramidKeys {
    pub(super) volume: VolumeId,
    pub(super) root: SealRoot,
    prf: Prf,
    pub(super) entropy: Box<dyn Entropy>,
}

impl PyramidKeys {
    /// The keys of a volume.
    pub fn of_volume(master: &MasterKey, volume: VolumeId, randomness: &Randomness) -> Self {
        let (root, prf) = (master.table_root(volume), master.label_prf(volume));
        Self { volume, root, prf, entropy: Box::new(randomness.clone()) }
    }

    /// Reproducible keys, **for tests and the lab only**.
    pub fn from_seed(seed: u64) -> Self {
        Self {
            volume: VolumeId([7; 16]),
            root: SealRoot::from_seed(seed),
            prf: Prf::from_seed(seed),
            entropy: Box::new(SeededEntropy::new(seed)),
        }
    }

    /// The same keys with other randomness, as in another session, **for tests and the lab only**.
    #[must_use]
    pub fn with_entropy(self, seed: u64) -> Self {
        Self { entropy: Box::new(SeededEntropy::new(seed)), ..self }
    }
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// In the stash.
    Stash,
    /// With the open merge of its partition, which reads it from this slot; none if it was in the
    /// stash.
    Merge(Option<TableSpot>),
    /// In a table.
    Table(TableSpot),
}

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its label since its last ask. Its top bits are its partition.
    pub label: Label,
    /// Its last ask.
    pub stamp: Stamp,
    pub at: Whereabouts,
}

/// The state of a pyramid: its index, its stash and what is known of its tables.
pub struct PyramidOram {
    pub(super) config: PyramidConfig,
    pub(super) keys: PyramidKeys,
    pub(super) index: HashMap<Name, Entry>,
    /// By partition, from the highest table to the base.
    pub(super) tables: Vec<Vec<Table>>,
    pub(super) stash: Stash,
    pub(super) homes: Homes,
    pub(super) asks: u64,
    /// Turns that were opened so far.
    pub(super) turns: u64,
    pub(super) rounds: Rounds,
    pub(super) merges: Merges,
    pub(super) forgets: Forgets,
    /// Partitions that asks read since the merges that are due were opened.
    pub(super) touched: Vec<Partition>,
    /// The fewest reads that a table has slots for, of those that this round read or that wait for
    /// a merge.
    room: u32,
    /// An error closed it.
    closed: bool,
}

impl PyramidOram {
    /// An empty one. Nothing is stored at first.
    ///
    /// # Errors
    /// `Invalid` for parameters that cannot work.
    pub fn new(config: PyramidConfig, keys: PyramidKeys) -> Result<Self> {
        config.validate()?;
        let partitions = config.partitions();
        Ok(Self {
            config,
            keys,
            index: HashMap::new(),
            tables: (0..partitions).map(|_| Vec::new()).collect(),
            stash: Stash::new(partitions),
            homes: Homes::default(),
            asks: 0,
            turns: 0,
            rounds: Rounds::default(),
            merges: Merges::default(),
            forgets: Forgets::new(partitions),
            touched: Vec::new(),
            room: u32::MAX,
            closed: false,
        })
    }

    /// The parameters.
    pub fn config(&self) -> &PyramidConfig {
        &self.config
    }

    /// Blocks that exist, as of the rounds that were served. Those of a removed owner count until
    /// a merge drops them.
    pub fn live_blocks(&self) -> u64 {
        // The index also has removed ones, until their turn.
        (self.index.len() - self.stash.removed()) as u64
    }

    /// The partition that the next ask on an existing block shows.
    pub fn partition_shown(&self, id: BlockId) -> Option<Partition> {
        let entry = self.index.get(&Name::from(id));
        entry.map(|entry| self.partition_of(entry.label))
    }

    /// Blocks in the stash now, and the most so far.
    pub fn stash_blocks(&self) -> (usize, usize) {
        (self.stash.len(), self.stash.peak())
    }

    /// Slots of all tables.
    pub fn stored_slots(&self) -> u64 {
        let tables = self.tables.iter().flatten();
        tables.map(|table| u64::from(self.config.slots(table.height))).sum()
    }

    /// Closes it if this went wrong: what it holds is not to be relied on.
    pub(super) fn close_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        self.closed |= result.is_err();
        result
    }

    pub(super) fn expect_open(&self) -> Result<()> {
        if self.closed { Err(EngineError::Closed) } else { Ok(()) }
    }

    pub(super) fn draw_seed(&mut self) -> Seed {
        let mut seed = [0; 32];
        self.keys.entropy.fill(&mut seed);
        Seed(seed)
    }

    pub(super) fn partition_of(&self, label: Label) -> Partition {
        Partition(label.leaf(crate::Level(self.config.log_partitions)).0 as u32)
    }

    /// Reads that a table has slots for.
    fn left(config: &PyramidConfig, table: &Table) -> u32 {
        config.most_reads(table.height).saturating_sub(table.reads)
    }

    /// Begins a round: no table was read in it yet. Those of a partition whose merge is open may
    /// have few slots left; all others would have been merged early.
    pub(super) fn begin_reads(&mut self) {
        let waiting = self.merges.iter().flat_map(|merge| &self.tables[merge.partition.0 as usize]);
        let room = waiting.map(|table| Self::left(&self.config, table)).min();
        self.room = room.unwrap_or(u32::MAX);
    }

    /// Whether every table has slots for `asks` more asks. So a round ends by public numbers,
    /// whatever its next ask is for.
    pub(super) fn has_room(&self, asks: usize) -> bool {
        asks as u64 <= u64::from(self.room)
    }

    /// Shows one slot of each table of the block's partition, and gives the block a new label. The
    /// draws are those of this `place` in the round of `seed`. A block that does not exist stays
    /// so, unless the ask creates it. None if a table was read as often as it has slots for: its
    /// partition must be merged first.
    pub(super) fn show(
        &mut self,
        name: Name,
        effect: Effect,
        seed: Seed,
        place: u64,
    ) -> Option<Shown> {
        let known = self.index.get(&name).copied();
        let draw = |n| Label(self.keys.prf.of_seed(&seed.0, n));
        let (fresh, absent) = (draw(2 * place), draw(2 * place + 1));
        let partition = self.partition_of(known.map_or(absent, |entry| entry.label));
        let config = &self.config;
        let tables = &mut self.tables[partition.0 as usize];
        if tables.iter().any(|table| Self::left(config, table) == 0) {
            return None;
        }
        let (mut spots, mut keys) = (Vec::with_capacity(tables.len()), Vec::new());
        let mut source = self.merge_source(partition, known);
        let tables = &mut self.tables[partition.0 as usize];
        for table in tables {
            let home = table.home;
            let here = known.and_then(|entry| match entry.at {
                Whereabouts::Table(at) if at.home == home => Some(at.slot),
                _ => None,
            });
            if here.is_some() {
                source = Source::Slot(spots.len());
            }
            let slot = table.read(here)?;
            spots.push(TableSpot { home, slot });
            keys.push(table.keys.clone());
            self.room = self.room.min(Self::left(&self.config, table));
        }
        self.touched.push(partition);
        let (stamp, before) = (Stamp(self.asks), known.map(|entry| entry.stamp));
        self.move_to_stash(name, known, effect, fresh);
        Some(Shown { partition, spots, keys, source, stamp, before, aged: false })
    }

    /// A block that its partition's merge reads is asked for: the merge has its content.
    fn merge_source(&self, partition: Partition, known: Option<Entry>) -> Source {
        let from_table = known.is_some_and(|entry| matches!(entry.at, Whereabouts::Merge(Some(_))));
        let merge = self.merges.of_partition(partition).filter(|_| from_table);
        merge.map_or(Source::Memory, |merge| Source::Merge(merge.number))
    }

    /// From now on the block waits in the stash, under its new label.
    fn move_to_stash(&mut self, name: Name, known: Option<Entry>, effect: Effect, label: Label) {
        let stamp = Stamp(self.asks);
        self.asks += 1;
        match known {
            Some(Entry { stamp, at: Whereabouts::Stash, label }) => {
                self.stash.take_out(self.partition_of(label), stamp);
            }
            None if effect == Effect::Creates => self.stash.remove(name),
            None => return,
            Some(_) => {}
        }
        self.stash.add(self.partition_of(label), stamp, name);
        self.index.insert(name, Entry { label, stamp, at: Whereabouts::Stash });
    }

    pub(super) fn tampered(home: TableHome, reason: &'static str) -> EngineError {
        EngineError::TamperedTable { table: home.0, reason }
    }
}
