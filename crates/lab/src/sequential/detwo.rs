//! DetWoORAM (Roche, Aviv, Choi and Mayberry, "Deterministic, Stash-Free Write-Only ORAM", CCS
//! 2017): the rival.
//!
//! N blocks have their places in the main area; behind it is a holding area of 3 N. Write number i
//! goes to place i modulo 3 N of the holding area, whatever it writes. By turns, round and round,
//! each place of the main area is written anew with what its block holds by then, so that no block
//! is still needed in the holding area when its place there is written again: the storage sees two
//! pointers move. That needs one write of the main area for every third write, and the authors' own
//! code (github.com/dsroche/detworam) does so. The paper's typical setting, and what SqORAM is
//! compared with, is one for every write: two block writes for each. Both are here.
//!
//! What makes it fast here: the map of where each block is, four bytes a block, is in memory and
//! not in a tree on the disk; what was written to the main area is read from there; and writes
//! that came one after the other are stored together, which the storage is free to see, since how
//! many go together does not depend on what they write.
//!
//! It survives no crash: the map would have to be found again from addresses beside the blocks. As
//! those would fit into the 40 bytes of a seal, it costs nothing to leave them out.

use super::area::{Area, BLOCK, Wanted, block_of};
use super::waiting::{Scheme, Waiting, Writes};
use oblivio_engine::BlockAnswer;
use oblivio_store::Store;
use oblivio_volume::{Error, Result};
use std::sync::Arc;

/// Times the main area that the holding area has.
const HOLDING: u64 = 3;
/// In the map: the block is absent.
const ABSENT: u32 = u32::MAX;
/// In the map: the block is in its place in the main area.
const MAIN: u32 = u32::MAX - 1;

/// The disk.
pub type DetWo = Waiting<TwoAreas>;

/// Main and holding area, one behind the other.
pub struct TwoAreas {
    area: Area,
    /// For each block its place in the holding area, [`MAIN`] or [`ABSENT`].
    map: Vec<u32>,
    /// Writes so far.
    written: u64,
    /// The main area is written with every so many writes.
    every: u64,
    /// What is on its way to the main and the holding area; kept, as so much memory costs more to
    /// be had than to be filled.
    main: Vec<u8>,
    held: Vec<u8>,
}

impl DetWo {
    /// An empty disk of so many blocks; a block of the main area is written with every `every`th
    /// write: 1 or 3.
    ///
    /// # Errors
    /// `Invalid` when the holding area is too small for that, or the map's entries are.
    pub fn create(store: Arc<dyn Store>, blocks: u64, every: u64) -> Result<Self> {
        if blocks == 0 || !(1..=HOLDING).contains(&every) {
            let why = format!("{blocks} blocks, one written anew with every {every} writes");
            return Err(Error::Invalid(why));
        }
        if blocks * HOLDING >= u64::from(MAIN) {
            return Err(Error::Invalid(format!(
                "{blocks} blocks; the map has four bytes for each"
            )));
        }
        let area = Area::new(store, blocks * (1 + HOLDING));
        let map = vec![ABSENT; blocks as usize];
        let (main, held) = Default::default();
        Ok(Waiting::new(TwoAreas { area, map, written: 0, every, main, held }))
    }
}

/// `count` numbers from `first` on modulo `all`, as runs: at most two, as `count <= all`.
fn ring(first: u64, count: u64, all: u64) -> [(u64, usize); 2] {
    let (first, count) = (first % all, count.min(all));
    let straight = count.min(all - first);
    [(first, straight as usize), (0, (count - straight) as usize)]
}

impl TwoAreas {
    fn slot(&self, id: u64) -> Option<u64> {
        match self.map[id as usize] {
            ABSENT => None,
            MAIN => Some(id),
            place => Some(self.blocks() + u64::from(place)),
        }
    }

    /// The blocks of the main area that have their turn while so many writes are made.
    fn turns(&self, writes: u64) -> [(u64, usize); 2] {
        let (first, end) =
            (self.written.div_ceil(self.every), (self.written + writes).div_ceil(self.every));
        ring(first, end - first, self.blocks())
    }

    /// Puts into `bytes` what these blocks hold once the writes are made.
    fn gather(&mut self, ids: &[u64], writes: &Writes, bytes: &mut Vec<u8>) -> Result<()> {
        bytes.resize(ids.len() * BLOCK, 0);
        let mut stored = Vec::with_capacity(ids.len());
        for (at, &id) in ids.iter().enumerate() {
            match (writes.newest(id), self.slot(id)) {
                (Some(Some(block)), _) => block_of(bytes, at).copy_from_slice(block),
                (None, Some(slot)) => stored.push(Wanted { at, slot }),
                (Some(None), _) | (None, None) => block_of(bytes, at).fill(0),
            }
        }
        self.area.read_into(&stored, bytes)
    }

    fn note(&mut self, writes: &Writes, renewed: &[u64]) {
        let holding = HOLDING * self.blocks();
        for (place, (id, block)) in (self.written..).zip(writes.all()) {
            let place = (place % holding) as u32;
            self.map[*id as usize] = if block.is_some() { place } else { ABSENT };
        }
        for &id in renewed {
            let entry = &mut self.map[id as usize];
            if *entry != ABSENT {
                *entry = MAIN;
            }
        }
    }
}

impl Scheme for TwoAreas {
    fn blocks(&self) -> u64 {
        self.map.len() as u64
    }

    fn exists(&self, id: u64) -> bool {
        self.map[id as usize] != ABSENT
    }

    fn read(&mut self, ids: &[u64]) -> Result<Vec<BlockAnswer>> {
        let slots: Vec<u64> = ids.iter().filter_map(|&id| self.slot(id)).collect();
        let mut found = self.area.read(&slots)?.into_iter();
        Ok(ids.iter().map(|&id| if self.exists(id) { found.next() } else { None }).collect())
    }

    /// What is to be written to the main area is read before any of the holding area is written:
    /// the last turn that a block has before its place there is needed may be among these writes.
    fn write(&mut self, writes: &Writes) -> Result<()> {
        let (blocks, count) = (self.blocks(), writes.all().len() as u64);
        let turns = self.turns(count);
        let renewed: Vec<u64> =
            turns.iter().flat_map(|&(first, count)| first..first + count as u64).collect();
        let (mut main, mut held) = (std::mem::take(&mut self.main), std::mem::take(&mut self.held));
        self.gather(&renewed, writes, &mut main)?;
        held.clear();
        for (_, block) in writes.all() {
            match block {
                Some(block) => held.extend_from_slice(block),
                None => held.resize(held.len() + BLOCK, 0),
            }
        }
        let places = ring(self.written, count, HOLDING * blocks);
        let (first_main, again_main) = main.split_at_mut(turns[0].1 * BLOCK);
        let (first_held, again_held) = held.split_at_mut(places[0].1 * BLOCK);
        let mut runs = vec![
            (turns[0].0, first_main),
            (turns[1].0, again_main),
            (blocks + places[0].0, first_held),
            (blocks + places[1].0, again_held),
        ];
        runs.retain(|(_, data)| !data.is_empty());
        self.area.write(&mut runs)?;
        (self.main, self.held) = (main, held);
        self.note(writes, &renewed);
        self.written += count;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.area.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Rng;
    use oblivio_engine::{Action, BlockId, BlockOp};
    use oblivio_store::record::Op;
    use oblivio_store::{MemoryStore, RecordStore};
    use oblivio_volume::BlockSpace;

    const BLOCKS: u64 = 100;

    /// What the storage sees of so many writes: which places, in which order.
    fn trace(every: u64, writes: u64, seed: u64) -> Vec<(Op, u64, u64)> {
        let store = Arc::new(RecordStore::new(MemoryStore::new()));
        let mut disk = DetWo::create(store.clone(), BLOCKS, every).expect("a disk");
        let mut rng = Rng::new(seed);
        for turn in 0..writes {
            let id = BlockId(if seed == 0 { 7 } else { rng.below(BLOCKS) });
            let action = match rng.below(8) {
                0 => Action::Remove,
                _ => Action::Write(vec![rng.next() as u8; BLOCK]),
            };
            disk.access(vec![BlockOp { id, action }]).expect("memory");
            if turn % 37 == 0 {
                disk.commit().expect("memory");
            }
        }
        disk.commit().expect("memory");
        let seen = store.take().into_iter();
        let writes = seen.filter(|event| matches!(event.op, Op::Write | Op::Sync));
        writes.map(|event| (event.op, event.offset, event.len)).collect()
    }

    #[test]
    fn what_is_written_where_says_nothing() {
        for every in [1, 3] {
            let one = trace(every, 1000, 0);
            assert!(!one.is_empty());
            for seed in 1..4 {
                assert_eq!(trace(every, 1000, seed), one);
            }
        }
    }

    #[test]
    fn two_blocks_are_written_for_each_or_four_for_three() {
        let blocks = |every| {
            let written = trace(every, 900, 1).into_iter().map(|(_, _, len)| len);
            written.sum::<u64>() / (BLOCK as u64 + 40)
        };
        assert_eq!((blocks(1), blocks(3)), (1800, 1200));
    }

    #[test]
    fn a_block_in_anothers_place_is_refused() {
        let store = Arc::new(MemoryStore::new());
        let mut disk = DetWo::create(store.clone(), BLOCKS, 1).expect("a disk");
        let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BLOCK]) };
        disk.access((0..BLOCKS).map(write).collect()).expect("memory");
        disk.commit().expect("memory");
        let mut bytes = vec![0; 2 * BLOCK];
        let at = |offset, buf| oblivio_store::ReadAt { object: "blocks", offset, buf };
        store.read(&mut [at(0, &mut bytes)]).expect("there");
        bytes.rotate_left(BLOCK);
        let write = oblivio_store::WriteAt { object: "blocks", offset: 0, data: &bytes };
        store.write(&[write]).expect("memory");
        let read = disk.access(vec![BlockOp { id: BlockId(1), action: Action::Read }]);
        assert!(matches!(read, Err(Error::Tampered(_))), "{read:?}");
    }
}
