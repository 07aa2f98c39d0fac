//! The planted scribe: the rules of the pyramid in partitions, on places without content.

use super::flaw::Flaw;
use super::table::Table;
use crate::share_audit::record::{AskId, Merge, Shown, Sizes, Spot, TableSizes};
use oblivio_splitmix::SplitMix64;
use std::collections::BTreeMap;

/// An ask, as the scribe opens it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub id: AskId,
    pub block: u64,
    pub write: bool,
}

/// What an ask showed, and what only the scribe knows of it.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub shown: Shown,
    /// Its block was in a table.
    pub hit: bool,
    /// Its block is in a merge's set.
    pub merged: bool,
    /// Its block was asked for by an ask that is not answered.
    pub collides: bool,
    /// Its block exists.
    pub exists: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Stash,
    /// Taken by a merge, from this slot or from the stash.
    Merge(Option<Spot>),
    Table,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    partition: u32,
    stamp: u64,
    at: At,
}

/// A merge under way.
#[derive(Clone, Debug)]
pub(super) struct OpenMerge {
    pub merge: Merge,
    /// Its blocks, each with its stamp then.
    made_of: Vec<(u64, u64)>,
    pub replaced: Vec<u64>,
    /// The asks before it.
    place: u64,
}

/// The scribe's state.
#[derive(Clone, Debug)]
pub(super) struct Scribe {
    pub sizes: Sizes,
    flaw: Option<Flaw>,
    rng: SplitMix64,
    index: BTreeMap<u64, Entry>,
    stash: Vec<BTreeMap<u64, u64>>,
    tables: Vec<Vec<Table>>,
    pub asks: u64,
    turns: u64,
    pub open: Vec<OpenMerge>,
    next_table: u64,
}

/// `many` standard deviations of a count with this mean, rounded up.
fn deviations(many: u32, mean: u32) -> u32 {
    (f64::from(many) * f64::from(mean).sqrt()).ceil() as u32
}

/// The public numbers of a small volume: 2^11 blocks, 16 partitions, 256 asks in the stash.
pub(super) fn sizes() -> Sizes {
    let (log_blocks, log_stash, log_partitions) = (11, 8, 4);
    let (turn_asks, levels) = (1 << (log_stash - log_partitions), log_blocks - 1 - log_stash);
    let taken = turn_asks * 3 / 2;
    let of = |height: u32| {
        let mean = 1 << (log_blocks - log_partitions);
        let base = mean + deviations(10, mean);
        let capacity = if height == levels { base } else { taken << height };
        let reads = turn_asks << height;
        let early_reads = reads + deviations(4, reads);
        // Asks go on while a merge is under way.
        let during = reads + turn_asks;
        let slots = capacity + during + deviations(6, during) + turn_asks;
        TableSizes { capacity, slots, early_reads }
    };
    Sizes {
        log_partitions,
        turn_asks,
        tables: (0..=levels).map(of).collect(),
        slot_bytes: 4160,
        open_turns: 4,
        batch: 64,
    }
}

/// The blocks that may exist.
pub(super) const BLOCKS: u64 = 1 << 11;

impl Scribe {
    pub fn new(flaw: Option<Flaw>, seed: u64) -> Self {
        let sizes = sizes();
        let partitions = sizes.partitions() as usize;
        Self {
            sizes,
            flaw,
            rng: SplitMix64::new(seed),
            index: BTreeMap::new(),
            stash: vec![BTreeMap::new(); partitions],
            tables: vec![Vec::new(); partitions],
            asks: 0,
            turns: 0,
            open: Vec::new(),
            next_table: 0,
        }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The asks that may be shown now: to the next turn, and to where the oldest merge under way
    /// must be over.
    pub fn asks_allowed(&self) -> u64 {
        let turn = u64::from(self.sizes.turn_asks);
        let next = if self.has(Flaw::ByStash) { self.asks + 8 } else { (self.turns + 1) * turn };
        let grace = self.sizes.open_turns * turn;
        let until = self.open.iter().map(|open| open.place + grace).min();
        until.unwrap_or(next).min(next).saturating_sub(self.asks)
    }

    /// Shows an ask. `in_flight` says whether its block is asked for by one that is not answered.
    pub fn show(&mut self, ask: &Ask, in_flight: bool) -> Answered {
        let known = self.index.get(&ask.block).copied();
        let absent = self.rng.below(u64::from(self.sizes.partitions())) as u32;
        let mut partition = known.map_or(absent, |entry| entry.partition);
        if self.has(Flaw::FreshPartition) && known.is_some_and(|entry| entry.at == At::Stash) {
            partition = absent;
        }
        let own = known.filter(|entry| entry.at == At::Table).map(|_| ask.block);
        let hit = own.is_some();
        let reads = !(self.has(Flaw::NoDummy) && in_flight);
        let merged = known.and_then(|entry| match entry.at {
            At::Merge(from) => from,
            _ => None,
        });
        let mut spots = Vec::new();
        if reads {
            for table in &mut self.tables[partition as usize] {
                let own = own.filter(|block| table.blocks.contains_key(block));
                let mut spot = table.read(own, self.flaw, &mut self.rng);
                if self.flaw == Some(Flaw::MergeSetSlot) {
                    let there = merged.filter(|merged| merged.table == table.name);
                    spot = there.unwrap_or(spot);
                }
                spots.push(spot);
            }
        }
        self.move_to_stash(ask, known);
        let exists = known.is_some();
        let shown = Shown { ask: ask.id, spots };
        Answered { shown, hit, merged: merged.is_some(), collides: in_flight, exists }
    }

    fn move_to_stash(&mut self, ask: &Ask, known: Option<Entry>) {
        let stamp = self.asks;
        self.asks += 1;
        if let Some(Entry { partition, stamp, at: At::Stash }) = known {
            self.stash[partition as usize].remove(&stamp);
        }
        if known.is_some() || ask.write {
            let partition = self.rng.below(u64::from(self.sizes.partitions())) as u32;
            self.stash[partition as usize].insert(stamp, ask.block);
            self.index.insert(ask.block, Entry { partition, stamp, at: At::Stash });
        }
    }

    /// The next merge that is due, begun.
    pub fn due(&mut self) -> Option<Merge> {
        let crowded = (0..self.sizes.partitions()).find(|&partition| {
            let mut tables = self.tables[partition as usize].iter();
            let sizes = &self.sizes;
            self.is_free(partition)
                && tables.any(|it| it.reads >= sizes.tables[it.height as usize].early_reads)
        });
        if let Some(partition) = crowded {
            return Some(self.begin(partition, self.sizes.base(), 0));
        }
        let next = (self.turns + 1) * u64::from(self.sizes.turn_asks);
        let waiting: usize = self.stash.iter().map(BTreeMap::len).sum();
        let due = match self.flaw {
            Some(Flaw::ByStash) => waiting >= 120,
            _ => self.asks >= next,
        };
        let (partition, height) = self.sizes.turn(self.turns);
        if !due || !self.is_free(partition) {
            return None;
        }
        self.turns += 1;
        if self.has(Flaw::SkippedTurn) && self.stash[partition as usize].is_empty() {
            return None;
        }
        let taken = self.sizes.tables[0].capacity as usize;
        Some(self.begin(partition, height, taken))
    }

    /// Whether no merge of a partition is under way. Else its next one waits.
    pub fn is_free(&self, partition: u32) -> bool {
        self.open.iter().all(|open| open.merge.partition != partition)
    }

    fn begin(&mut self, partition: u32, height: u32, taken: usize) -> Merge {
        let (mut made_of, mut spots, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
        let base = height == self.sizes.base();
        for table in &self.tables[partition as usize] {
            if table.height >= height && !base {
                continue;
            }
            let capacity = self.sizes.tables[table.height as usize].capacity;
            spots.extend(table.merge_set(capacity, None, self.has(Flaw::BlocksOnly)));
            replaced.push(table.name);
            for (&block, &slot) in &table.blocks {
                if let Some(entry) = self.index.get_mut(&block) {
                    entry.at = At::Merge(Some(Spot { table: table.name, slot }));
                    made_of.push((block, entry.stamp));
                }
            }
        }
        for _ in 0..taken {
            let Some((stamp, block)) = self.stash[partition as usize].pop_first() else { break };
            made_of.push((block, stamp));
            if let Some(entry) = self.index.get_mut(&block) {
                entry.at = At::Merge(None);
            }
        }
        let merge = Merge { partition, height, spots };
        self.open.push(OpenMerge { merge: merge.clone(), made_of, replaced, place: self.asks });
        merge
    }

    /// The slots of a merge that begins again.
    pub fn begin_again(&mut self, merge: &Merge) -> Merge {
        if !self.has(Flaw::OtherFillers) {
            return merge.clone();
        }
        let open = self.open.iter().find(|open| open.merge.partition == merge.partition);
        let replaced = open.map(|open| open.replaced.clone()).unwrap_or_default();
        let mut spots = Vec::new();
        for table in &self.tables[merge.partition as usize] {
            if replaced.contains(&table.name) {
                let capacity = self.sizes.tables[table.height as usize].capacity;
                spots.extend(table.merge_set(capacity, Some(&mut self.rng), false));
            }
        }
        Merge { spots, ..*merge }
    }

    /// A batch that is shown again.
    pub fn show_again(&mut self, asks: &mut [Answered]) {
        if !self.has(Flaw::NewSlotOnRetry) {
            return;
        }
        for spot in asks.iter_mut().flat_map(|ask| &mut ask.shown.spots) {
            let mut tables = self.tables.iter_mut().flatten();
            if let Some(table) = tables.find(|table| table.name == spot.table) {
                spot.slot = table.another_empty();
            }
        }
    }

    /// The name of a table that is made now.
    pub fn name_table(&mut self) -> u64 {
        self.next_table += 1;
        self.next_table
    }

    /// Uses a new table; those that it replaces.
    pub fn switch(&mut self, partition: u32, name: u64) -> Vec<u64> {
        let Some(at) = self.open.iter().position(|open| open.merge.partition == partition) else {
            return Vec::new();
        };
        let OpenMerge { merge, mut made_of, replaced, .. } = self.open.remove(at);
        let sizes = self.sizes.tables[merge.height as usize];
        made_of.sort_unstable_by_key(|entry| entry.1);
        let left = made_of.split_off(made_of.len().min(sizes.capacity as usize));
        let asked_since = |index: &BTreeMap<u64, Entry>, block: u64, stamp: u64| {
            index.get(&block).is_none_or(|entry| entry.stamp != stamp)
        };
        for (block, stamp) in left {
            if !asked_since(&self.index, block, stamp) {
                self.index.insert(block, Entry { partition, stamp, at: At::Stash });
                self.stash[partition as usize].insert(stamp, block);
            }
        }
        let made_of: Vec<(u64, bool)> = made_of
            .into_iter()
            .map(|(block, stamp)| (block, !asked_since(&self.index, block, stamp)))
            .collect();
        for (block, _) in made_of.iter().filter(|entry| entry.1) {
            if let Some(entry) = self.index.get_mut(block) {
                entry.at = At::Table;
            }
        }
        let table = Table::new(name, merge.height, &sizes, &made_of, &mut self.rng);
        let tables = &mut self.tables[partition as usize];
        tables.retain(|table| !replaced.contains(&table.name));
        tables.push(table);
        tables.sort_by_key(|table| table.height);
        replaced
    }
}
