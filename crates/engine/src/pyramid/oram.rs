//! The pyramid in partitions: what its one organizer knows, and the rule by which asks show slots.
//!
//! An ask on a block that exists shows the partition of its *label*, wherever the block is: in a
//! table, or in the stash. A fresh partition for a block in the stash would look uniform and is
//! not: a block that is asked often would show fewer of the partitions that had a turn since. Every
//! label is shown exactly once, so the partitions are independent and uniform for every workload.

use super::config::PyramidConfig;
use super::ids::{Home, Name, Partition, Spot, Stamp};
use super::stash::Stash;
use super::table::Table;
use crate::{BlockId, EngineError, Label, Result};
use oblivio_crypto::{Entropy, MasterKey, Prf, Randomness, SealRoot, SeededEntropy, VolumeId};
use std::collections::{BTreeSet, HashMap};

/// The engine's input from the crypto crate.
pub struct PyramidKeys {
    volume: VolumeId,
    root: SealRoot,
    prf: Prf,
    entropy: Box<dyn Entropy>,
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

/// What is known of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Its label since its last ask. Its top bits are its partition.
    pub label: Label,
    /// Its last ask.
    pub stamp: Stamp,
    /// Its slot; none while it is in the stash.
    pub at: Option<Spot>,
}

/// The places of tables.
#[derive(Default)]
pub(super) struct Homes {
    free: BTreeSet<Home>,
    next: u32,
}

impl Homes {
    pub fn take(&mut self) -> Home {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            Home(self.next - 1)
        })
    }

    pub fn give(&mut self, home: Home) {
        self.free.insert(home);
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.next
    }

    /// `count` places, all free.
    pub fn all(count: u32) -> Self {
        Self { free: (0..count).map(Home).collect(), next: count }
    }

    /// Takes a certain place; false if it is not free.
    pub fn take_this(&mut self, home: Home) -> bool {
        self.free.remove(&home)
    }
}

/// The state of a pyramid: its index, its stash and what is known of its tables.
pub struct PyramidOram {
    pub(super) config: PyramidConfig,
    pub(super) volume: VolumeId,
    pub(super) root: SealRoot,
    prf: Prf,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) index: HashMap<Name, Entry>,
    /// By partition, from the highest table to the base.
    pub(super) tables: Vec<Vec<Table>>,
    pub(super) stash: Stash,
    pub(super) homes: Homes,
    pub(super) asks: u64,
    /// Turns so far.
    pub(super) turns: u64,
    /// Partitions that asks read since the last merges.
    pub(super) touched: Vec<Partition>,
    /// The fewest reads that a table of theirs has slots for.
    room: u32,
    /// A round of an earlier session that was shown and not settled.
    pub(super) unsettled: Option<Unsettled>,
    condition: Condition,
}

/// Whether a job may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Idle,
    UnderWay,
    /// An error closed the engine.
    Closed,
}

/// The seed of a round's draws. It is fresh, so two histories that part draw different labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub [u8; 32]);

/// What an ask shows.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// Its partition.
    pub partition: Partition,
    /// One slot of each table of its partition.
    pub spots: Vec<Spot>,
    /// Which of them holds the block, if one does.
    pub real: Option<usize>,
}

/// A round that was shown and not settled.
#[derive(Clone, Debug)]
pub(super) struct Unsettled {
    pub seed: Seed,
    pub asks: Vec<(Name, bool)>,
    pub shown: Vec<Shown>,
}

impl PyramidOram {
    /// An empty one. Nothing is stored at first.
    ///
    /// # Errors
    /// `Invalid` for parameters that cannot work.
    pub fn new(config: PyramidConfig, keys: PyramidKeys) -> Result<Self> {
        config.validate()?;
        let PyramidKeys { volume, root, prf, entropy } = keys;
        Ok(Self {
            config,
            volume,
            root,
            prf,
            entropy,
            index: HashMap::new(),
            tables: (0..config.partitions()).map(|_| Vec::new()).collect(),
            stash: Stash::new(config.partitions()),
            homes: Homes::default(),
            asks: 0,
            turns: 0,
            touched: Vec::new(),
            room: u32::MAX,
            unsettled: None,
            condition: Condition::Idle,
        })
    }

    /// The parameters.
    pub fn config(&self) -> &PyramidConfig {
        &self.config
    }

    /// Blocks that exist.
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

    pub(super) fn expect_idle(&self) -> Result<()> {
        match self.condition {
            Condition::Closed => Err(EngineError::Closed),
            Condition::UnderWay => Err(EngineError::Invalid("a job is under way".into())),
            Condition::Idle => Ok(()),
        }
    }

    pub(super) fn begin_job(&mut self) -> Result<()> {
        self.expect_idle()?;
        if self.unsettled.is_some() {
            return Err(EngineError::Invalid("a round waits to be resumed".into()));
        }
        self.condition = Condition::UnderWay;
        Ok(())
    }

    pub(super) fn end_job(&mut self, well: bool) {
        self.condition = if well { Condition::Idle } else { Condition::Closed };
    }

    pub(super) fn expect_open(&self) -> Result<()> {
        if self.condition == Condition::Closed { Err(EngineError::Closed) } else { Ok(()) }
    }

    pub(super) fn draw_seed(&mut self) -> Seed {
        let mut seed = [0; 32];
        self.entropy.fill(&mut seed);
        Seed(seed)
    }

    pub(super) fn partition_of(&self, label: Label) -> Partition {
        Partition(label.leaf(crate::Level(self.config.log_partitions)).0 as u32)
    }

    /// Asks until the next turn.
    pub(super) fn asks_left(&self) -> u64 {
        let next = (self.turns + 1) * u64::from(self.config.turn_asks());
        next.saturating_sub(self.asks)
    }

    /// Begins a round: no table was read in it yet.
    pub(super) fn begin_reads(&mut self) {
        self.touched.clear();
        self.room = u32::MAX;
    }

    /// Whether every table that this round read has slots for `asks` more asks. The others have
    /// them: else they would have been merged early. So a round ends by public numbers, whatever
    /// its next ask is for.
    pub(super) fn has_room(&self, asks: usize) -> bool {
        asks as u64 <= u64::from(self.room)
    }

    /// Shows one slot of each table of the block's partition, and gives the block a new label. The
    /// draws are those of this `place` in the round of `seed`. A block that does not exist stays
    /// so, unless the ask `creates` it. None if a table was read as often as it has slots for: its
    /// partition must be merged first.
    pub(super) fn show(
        &mut self,
        name: Name,
        creates: bool,
        seed: Seed,
        place: u64,
    ) -> Option<Shown> {
        let known = self.index.get(&name).copied();
        let draw = |n| Label(self.prf.of_seed(&seed.0, n));
        let (fresh, absent) = (draw(2 * place), draw(2 * place + 1));
        let partition = self.partition_of(known.map_or(absent, |entry| entry.label));
        let config = self.config;
        let tables = &mut self.tables[partition.0 as usize];
        if tables.iter().any(|table| table.reads >= config.most_reads(table.height)) {
            return None;
        }
        let spots = Vec::with_capacity(tables.len());
        let mut shown = Shown { partition, spots, real: None };
        for table in tables {
            table.reads += 1;
            self.room = self.room.min(config.most_reads(table.height) - table.reads);
            let here = known.and_then(|entry| entry.at).filter(|at| at.home == table.home);
            if here.is_some() {
                shown.real = Some(shown.spots.len());
            }
            let spot =
                here.or_else(|| table.next_empty().map(|slot| Spot { home: table.home, slot }));
            shown.spots.extend(spot);
        }
        self.touched.push(partition);
        self.move_to_stash(name, known, creates, fresh);
        Some(shown)
    }

    /// From now on the block waits in the stash, under its new label.
    fn move_to_stash(&mut self, name: Name, known: Option<Entry>, creates: bool, label: Label) {
        let stamp = Stamp(self.asks);
        self.asks += 1;
        if let Some(Entry { stamp, at: None, label }) = known {
            self.stash.take_out(self.partition_of(label), stamp);
        }
        if known.is_some() || creates {
            self.stash.add(self.partition_of(label), stamp, name);
            self.index.insert(name, Entry { label, stamp, at: None });
        }
    }

    pub(super) fn tampered(home: Home, reason: &'static str) -> EngineError {
        EngineError::TamperedTable { table: home.0, reason }
    }
}
