//! A merge: a partition's tables down to some height, and blocks of the stash, become one table.

use super::history::{AskedBlock, Merged};
use super::ids::{Height, Name, Partition, Stamp, TableHome, TableSpot};
use super::open::{Blocks, Merge, Progress};
use super::oram::{Entry, PyramidOram, Whereabouts};
use super::schedule::PartitionTurn;
use super::shown::Source;
use super::slot::Held;
use super::stash::Known;
use super::table::{Holds, MergeSet, Table};
use crate::{EngineError, Label, Result};
use oblivio_crypto::{SLOT_OVERHEAD, TableKeys, TableSealer};
use std::collections::HashSet;

/// What a merge read.
#[derive(Default)]
pub(super) struct Gathered {
    /// The blocks, without content if it is lost.
    pub found: Vec<Held>,
    /// The slots that are not what was sealed there.
    pub damaged: Vec<TableSpot>,
}

impl Gathered {
    /// Checks and opens what a merge read: the slots of its sets, one after the other. It gives the
    /// blocks that it takes from them, and the slots that are not what was sealed there: what they
    /// held is lost.
    ///
    /// # Errors
    /// `State` if no such merge reads, or another number of slots.
    pub fn open(oram: &PyramidOram, number: u64, read: &mut [u8]) -> Result<Self> {
        let slot_bytes = oram.config.slot_bytes();
        let reads = |merge: &&Merge| matches!(merge.progress, Progress::Reads);
        let merge = oram.merges.get(number).filter(reads);
        let merge = merge.ok_or(EngineError::State("no such merge is under way"))?;
        if read.len() != merge.spots().count() * slot_bytes {
            return Err(EngineError::State("another number of slots was read"));
        }
        let mut slots = read.chunks_exact_mut(slot_bytes);
        let mut gathered = Self::default();
        for (home, set) in &merge.sets {
            let tables = &oram.tables[merge.partition.0 as usize];
            let Some(table) = tables.iter().find(|table| table.home == *home) else { continue };
            for ((slot, holds), bytes) in set.iter().zip(&mut slots) {
                let spot = TableSpot { home: *home, slot: *slot };
                let opened = PyramidOram::open_slot(&table.keys, spot, *holds, bytes);
                let held = opened.unwrap_or_else(|_| {
                    gathered.damaged.push(spot);
                    let Holds::Block(name) = *holds else { return None };
                    Some(Held { name, content: None })
                });
                // What a settled ask had since is newer.
                gathered.found.extend(held.filter(|it| merge.blocks.coming.contains(&it.name)));
            }
        }
        Ok(gathered)
    }
}

impl PyramidOram {
    /// Opens a merge, of a turn with the blocks that it took from the stash.
    pub(super) fn open_merge(&mut self, turn: PartitionTurn, taken: Option<Vec<Name>>) {
        let PartitionTurn { partition, height } = turn;
        let of_turn = taken.is_some();
        let mut names = taken.unwrap_or_default();
        for name in &names {
            self.set_whereabouts(*name, Whereabouts::Merge(None));
        }
        let sets = self.merge_sets(turn);
        let mut coming = HashSet::new();
        for (home, set) in &sets {
            for &(slot, holds) in set {
                let Holds::Block(name) = holds else { continue };
                let home = *home;
                self.set_whereabouts(name, Whereabouts::Merge(Some(TableSpot { home, slot })));
                coming.insert(name);
                names.push(name);
            }
        }
        names.sort_unstable_by_key(|name| self.index.get(name).map(|entry| entry.stamp));
        let left = names.split_off(names.len().min(self.config.capacity(height) as usize));
        self.merges.push(Merge {
            number: self.merges.next(),
            partition,
            height,
            home: self.homes.take(),
            place: self.asks,
            rounds: self.rounds.next(),
            sets,
            blocks: Blocks { names, left, coming, of_turn },
            progress: Progress::Open,
            again: false,
        });
    }

    fn set_whereabouts(&mut self, name: Name, at: Whereabouts) {
        if let Some(entry) = self.index.get_mut(&name) {
            entry.at = at;
        }
    }

    /// What a merge reads of each table that it replaces.
    pub(super) fn merge_sets(&self, turn: PartitionTurn) -> Vec<(TableHome, MergeSet)> {
        let PartitionTurn { partition, height } = turn;
        let tables = self.tables[partition.0 as usize].iter();
        // A base replaces the old one too.
        let replaced = tables.filter(|table| table.height < height || height == Height::Base);
        let here = |name, spot| {
            let at = self.index.get(&name).map(|entry| entry.at);
            at == Some(Whereabouts::Table(spot)) || at == Some(Whereabouts::Merge(Some(spot)))
        };
        let set =
            |table: &Table| (table.home, table.merge_set(self.config.capacity(table.height), here));
        replaced.map(set).collect()
    }

    /// Takes the blocks that a merge read.
    pub(super) fn gather(&mut self, number: u64, found: Vec<Held>) {
        found.into_iter().for_each(|held| self.keep(Some(held)));
        if let Some(merge) = self.merges.get_mut(number) {
            merge.progress = Progress::Read;
        }
    }

    /// Seals the table, in memory. Its keys are fresh each time.
    ///
    /// # Errors
    /// `Invalid` before its slots are there and the rounds before it are served; those of the
    /// sealer.
    pub(super) fn make(&mut self, number: u64) -> Result<Vec<u8>> {
        let merge = self.merges.get(number).filter(|_| self.may_make(number));
        let merge = merge.ok_or_else(|| EngineError::Invalid("a round comes first".into()))?;
        let names = &merge.blocks.names;
        let slots = self.config.slots(merge.height);
        let mut sealer =
            TableSealer::new(&self.keys.root, self.keys.volume, &mut *self.keys.entropy);
        let order = sealer.keys().order(slots);
        let mut block_at: Vec<Option<Name>> = vec![None; slots as usize];
        for (name, slot) in names.iter().zip(&order) {
            block_at[*slot as usize] = Some(*name);
        }
        let slot_bytes = self.config.slot_bytes();
        let mut sealed = vec![0; slots as usize * slot_bytes];
        for (bytes, name) in sealed.chunks_exact_mut(slot_bytes).zip(block_at) {
            let Some(name) = name else {
                sealer.seal_empty(bytes)?;
                continue;
            };
            let entry = self.index.get(&name);
            let (label, stamp) =
                entry.map_or((Label(0), Stamp(0)), |entry| (entry.label, entry.stamp));
            let plain = &mut bytes[..slot_bytes - SLOT_OVERHEAD];
            // One that is absent, or was asked for since, is never read from here.
            let content = self.stash.content(name).map_or(&[][..], |content| content);
            match self.stash.is_lost(name) {
                true => Held::write_lost(name, label, stamp, plain),
                false => Held::write(name, label, stamp, content, plain),
            }
            sealer.seal(bytes)?;
        }
        let table = Table::new(merge.home, merge.height, sealer.into_keys(), &order, names.len());
        let table = Box::new(table.named(names));
        if let Some(merge) = self.merges.get_mut(number) {
            merge.progress = Progress::Made(table);
        }
        Ok(sealed)
    }

    /// Uses a table that is stored, in the place of those that it replaces.
    ///
    /// # Errors
    /// `State` if it was not made.
    pub(super) fn switch(&mut self, number: u64) -> Result<Merged> {
        let merge = self.merges.remove(number);
        let mut merge = merge.ok_or(EngineError::State("no such merge is under way"))?;
        let Progress::Made(table) = std::mem::replace(&mut merge.progress, Progress::Read) else {
            return Err(EngineError::State("a table was not made"));
        };
        let left = self.left_of(&merge).map(|name| self.stash.content(name).cloned()).collect();
        let asked = |(name, mine)| match self.stash.known(name) {
            Known::Content(content) if mine => AskedBlock::Block(content),
            Known::Lost if mine => AskedBlock::Lost,
            _ => AskedBlock::Elsewhere,
        };
        let asked = self.asked_of(&merge).map(asked).collect();
        let merged = Merged { home: merge.home, attempt: table.keys.attempt(), left, asked };
        self.install(merge, *table);
        Ok(merged)
    }

    /// Repeats the switch of an earlier session, which stored its table.
    ///
    /// # Errors
    /// `State` if it does not follow from the events before it.
    pub(super) fn repeat_merge(&mut self, merged: Merged) -> Result<()> {
        let number = self.merges.at_home(merged.home);
        let merge = number.and_then(|number| self.merges.remove(number));
        let merge = merge.ok_or(EngineError::State("no such merge was open"))?;
        if self.rounds.served() < merge.rounds {
            return Err(EngineError::State("a round before a merge was not settled"));
        }
        let left: Vec<Name> = self.left_of(&merge).collect();
        let asked: Vec<_> = self.asked_of(&merge).collect();
        if merged.left.len() != left.len() || merged.asked.len() != asked.len() {
            return Err(EngineError::State("a merge left another number of blocks"));
        }
        let mut contents: Vec<_> = left.into_iter().zip(merged.left).collect();
        for ((name, mine), asked) in asked.into_iter().zip(merged.asked) {
            let content = match asked {
                // One of its blocks without content was removed, as the rounds before it say.
                AskedBlock::Elsewhere => continue,
                AskedBlock::Block(content) => Some(content),
                AskedBlock::Lost => None,
            };
            if !mine {
                return Err(EngineError::State("a merge had another block"));
            }
            contents.push((name, content));
        }
        let lengths = contents.iter().filter_map(|(_, content)| content.as_ref().map(Vec::len));
        if lengths.into_iter().any(|len| len != self.config.block_bytes) {
            return Err(EngineError::State("a block has another length"));
        }
        contents.into_iter().for_each(|(name, content)| self.stash.keep(name, content));
        let keys = TableKeys::new(&self.keys.root, self.keys.volume, merged.attempt);
        let order = keys.order(self.config.slots(merge.height));
        let names = &merge.blocks.names;
        let table = Table::new(merge.home, merge.height, keys, &order, names.len()).named(names);
        self.install(merge, table);
        Ok(())
    }

    /// The blocks of a merge that go back to the stash.
    fn left_of<'a>(&'a self, merge: &'a Merge) -> impl Iterator<Item = Name> + 'a {
        let stays = |name: &&Name| self.is_with(merge, **name) && !self.is_dropped(**name);
        merge.blocks.left.iter().filter(stays).copied()
    }

    /// The asks of rounds under way that showed the partition of a merge since its place, and
    /// whether the content of their block comes from it. How many there are is public.
    fn asked_of<'a>(&'a self, merge: &'a Merge) -> impl Iterator<Item = (Name, bool)> + 'a {
        let rounds = self.rounds.iter().filter(|round| round.number >= merge.rounds);
        let asks = rounds.flat_map(|round| round.asks.iter().zip(&round.shown));
        let mine = asks.filter(|(_, shown)| shown.partition == merge.partition);
        mine.map(|((name, _), shown)| (*name, shown.source == Source::Merge(merge.number)))
    }

    /// Whether a block was not asked for since the merge was opened.
    fn is_with(&self, merge: &Merge, name: Name) -> bool {
        self.index.get(&name).is_some_and(|entry| {
            let here = self.partition_of(entry.label) == merge.partition;
            here && matches!(entry.at, Whereabouts::Merge(_))
        })
    }

    /// Whether a merge drops a block that it has: it is absent, or its owner was removed.
    fn is_dropped(&self, name: Name) -> bool {
        let entry = self.index.get(&name);
        let removed = entry.is_none_or(|entry| self.forgets.applies(name, entry.stamp));
        removed || self.stash.is_absent(name)
    }

    fn install(&mut self, merge: Merge, table: Table) {
        let Merge { partition, height, place, .. } = merge;
        let placed =
            table.blocks().map(|(name, slot)| (name, Some(TableSpot { home: table.home, slot })));
        let back = merge.blocks.left.iter().map(|&name| (name, None));
        for (name, spot) in placed.chain(back).collect::<Vec<_>>() {
            if self.is_with(&merge, name) {
                self.put_down(name, partition, spot);
            }
        }
        let replaced = merge.replaced();
        let tables = &mut self.tables[partition.0 as usize];
        tables.retain(|table| !replaced.contains(&table.home));
        let at = tables.partition_point(|other| other.height < height);
        tables.insert(at, table);
        self.homes.leave(self.rounds.next(), replaced);
        self.homes.served(self.rounds.served());
        if height == Height::Base {
            self.forgets.based(partition, place);
            self.close_forgets();
        }
        self.touched.push(partition);
        self.open_due();
    }

    /// Leaves a block of a merge in its new table, or in the stash.
    fn put_down(&mut self, name: Name, partition: Partition, spot: Option<TableSpot>) {
        if self.is_dropped(name) {
            self.index.remove(&name);
            self.stash.clear(name);
            return;
        }
        let Some(entry) = self.index.get_mut(&name) else { return };
        match spot {
            Some(spot) => {
                entry.at = Whereabouts::Table(spot);
                self.stash.clear(name);
            }
            None => {
                entry.at = Whereabouts::Stash;
                self.stash.add(partition, entry.stamp, name);
            }
        }
    }

    /// Closes the removals of owners that are in no table any more. What they removed and still
    /// waits, or was shown and not served, is marked.
    fn close_forgets(&mut self) {
        if !self.forgets.some_done() {
            return;
        }
        let waiting = self.stash.iter().map(|(_, name)| name);
        let merging = self
            .merges
            .iter()
            .flat_map(|merge| merge.blocks.names.iter().chain(&merge.blocks.left).copied());
        for name in waiting.chain(merging).collect::<Vec<_>>() {
            let entry = self.index.get(&name);
            let outside = |entry: &&Entry| !matches!(entry.at, Whereabouts::Table(_));
            let entry = entry.filter(outside);
            if entry.is_some_and(|entry| self.forgets.applies(name, entry.stamp)) {
                self.stash.remove(name);
            }
        }
        for round in self.rounds.iter_mut() {
            for ((name, _), shown) in round.asks.iter().zip(&mut round.shown) {
                let applies = |before| self.forgets.applies(*name, before);
                shown.aged |= shown.before.is_some_and(applies);
            }
        }
        self.forgets.close_done();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid::config::PyramidConfig;
    use crate::pyramid::operation::Effect;
    use crate::pyramid::oram::PyramidKeys;
    use crate::pyramid::round::WITHIN_TABLE;
    use crate::{Action, BlockId, BlockOp, Carrier, Read, Write};
    use std::collections::BTreeMap;

    /// Tables in memory, by their places.
    #[derive(Default)]
    struct Tables(BTreeMap<u64, Vec<u8>>);

    impl Carrier for Tables {
        type Error = EngineError;

        fn read(&mut self, mut read: Read<'_>) -> Result<()> {
            for (extent, part) in read.parts() {
                let at = (extent.offset & ((1 << WITHIN_TABLE) - 1)) as usize;
                let table = &self.0[&(extent.offset >> WITHIN_TABLE)];
                part.copy_from_slice(&table[at..at + part.len()]);
            }
            Ok(())
        }

        fn write(&mut self, write: Write<'_>) -> Result<()> {
            for piece in write.parts() {
                self.0.insert(piece.extent.offset >> WITHIN_TABLE, piece.data.to_vec());
            }
            Ok(())
        }
    }

    fn empty(config: PyramidConfig) -> PyramidOram {
        PyramidOram::new(config, PyramidKeys::from_seed(1)).expect("sound")
    }

    fn op(id: u64, action: Action) -> Vec<BlockOp> {
        vec![BlockOp { id: BlockId(id), action }]
    }

    /// Removes all blocks of numbers from `first` on.
    fn forget(oram: &mut PyramidOram, first: u64) {
        let asks = vec![(Name::from(BlockId(first)), Effect::Forgets)];
        let round = oram.show_round(asks, &[1]).expect("nothing is under way").clone();
        oram.serve_forget(round.asks[0].0, &round.shown[0]);
        oram.settle(|_| true).expect("it is under way");
    }

    #[test]
    fn a_removed_owner_is_gone_at_once_and_its_blocks_after_all_bases_were_merged() {
        let config = PyramidConfig::new(64, 1 << 8, 64 << 6);
        let (mut oram, mut tables) = (empty(config), Tables::default());
        let mut access =
            |oram: &mut PyramidOram, ops| oram.access(&mut tables, ops).expect("sound");
        for id in 0..200 {
            access(&mut oram, op(id, Action::Write(vec![id as u8; 64])));
        }
        forget(&mut oram, 100);
        access(&mut oram, op(150, Action::Write(vec![7; 64])));
        assert_eq!(access(&mut oram, op(150, Action::Read)), [Some(vec![7; 64])], "written since");
        assert_eq!(access(&mut oram, op(160, Action::Read)), [None], "asked for later");
        // What a later session knows is the same, removals among it.
        let (mut state, mut again) = (Vec::new(), Vec::new());
        oram.checkpoint(&mut state).expect("no round is under way");
        let mut other = empty(config);
        other.restore(&state).expect("as it was written");
        other.checkpoint(&mut again).expect("no round is under way");
        assert!(state == again && other.forgets.len() == 1);
        let mut oram = other;
        // Two base cycles of other asks.
        for ask in 0..512 {
            access(&mut oram, op(ask % 100, Action::Read));
        }
        assert_eq!((oram.live_blocks(), oram.forgets.len()), (101, 0));
        for id in 0..200 {
            let left = (id < 100).then(|| vec![id as u8; 64]);
            let left = if id == 150 { Some(vec![7; 64]) } else { left };
            assert_eq!(access(&mut oram, op(id, Action::Read)), [left], "block {id}");
        }
    }
}
