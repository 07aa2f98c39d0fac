//! The lab's own disks as block spaces: writes are deferred until there are enough for one store
//! call, and reads see deferred writes.
//!
//! They are for comparisons within one process: the key, the root and the map of blocks are in
//! memory only, and such a disk cannot be opened again.

use super::area::{AreaReader, BLOCK};
use super::beside::{Beside, Places, Shared};
use super::writes::Writes;
use oblivio_engine::{Action, BlockAnswer, BlockOp, BlockOutcome};
use oblivio_volume::{BlockReader, BlockSpace, Error, ROOT_BYTES, Result};
use std::ops::Range;
use std::sync::Arc;

/// Limit of the deferred blocks: the store's thread takes writes from 256 KiB on.
pub const ENOUGH: usize = 256;

/// A layout of blocks on a disk.
pub trait Scheme: Send {
    /// The number of blocks that it has room for.
    fn blocks(&self) -> u64;
    /// Whether a block was written.
    fn exists(&self, id: u64) -> bool;
    /// Reads blocks; absent ones are `None`.
    ///
    /// # Errors
    /// `Tampered` if one differs from the last write; those of the store.
    fn read(&mut self, ids: &[u64]) -> Result<Vec<BlockAnswer>>;
    /// Carries out writes, at most as many as there are blocks.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    fn write(&mut self, writes: &Writes) -> Result<()>;
    /// Makes all writes durable.
    ///
    /// # Errors
    /// Those of the store.
    fn sync(&mut self) -> Result<()>;
    /// The places that the next `writes` writes change, except those of the written blocks.
    fn affects(&self, writes: u64) -> Vec<Range<u64>> {
        let _ = writes;
        Vec::new()
    }
    /// The places for other threads, if they can be known without a read.
    fn beside(&self) -> Option<(Arc<dyn Places>, AreaReader)> {
        None
    }
}

/// A scheme and its deferred writes.
pub struct Waiting<S> {
    scheme: S,
    shared: Arc<Shared>,
    enough: usize,
    root: Vec<u8>,
}

impl<S: Scheme> Waiting<S> {
    /// An empty disk.
    pub fn new(scheme: S) -> Self {
        let enough = scheme.blocks().clamp(1, ENOUGH as u64) as usize;
        Self { scheme, shared: Arc::default(), enough, root: Vec::new() }
    }

    fn carry_out(&mut self) -> Result<()> {
        let Some(writes) = self.shared.begin(|count| self.scheme.affects(count))? else {
            return Ok(());
        };
        let result = self.scheme.write(&writes);
        self.shared.end(result.is_err());
        result
    }

    fn read(&mut self, ids: &[u64]) -> Result<Vec<BlockAnswer>> {
        let state = self.shared.state();
        let stored: Vec<u64> =
            ids.iter().copied().filter(|&id| state.newest(id).is_none()).collect();
        drop(state);
        let mut stored = self.scheme.read(&stored)?.into_iter();
        let state = self.shared.state();
        let answer = |&id: &u64| match state.newest(id) {
            Some(waits) => waits.clone(),
            None => stored.next().flatten(),
        };
        Ok(ids.iter().map(answer).collect())
    }

    fn write(&mut self, id: u64, action: Action) -> Result<()> {
        let block = match action {
            Action::Read => return Ok(()),
            Action::Remove => None,
            Action::Write(mut bytes) => {
                bytes.resize(BLOCK, 0);
                Some(bytes)
            }
            patches => {
                let found = self.read(&[id])?.pop().flatten();
                let mut block = found.unwrap_or_else(|| vec![0; BLOCK]);
                patches.write_to(&mut block);
                Some(block)
            }
        };
        let mut state = self.shared.state();
        state.waiting.push(id, block);
        let enough = state.waiting.all().len() >= self.enough;
        drop(state);
        if enough { self.carry_out() } else { Ok(()) }
    }
}

impl<S: Scheme + 'static> BlockSpace for Waiting<S> {
    oblivio_volume::lacks!(resizing, deferring, padding, idling, ending);

    fn block_bytes(&self) -> usize {
        BLOCK
    }

    fn capacity_blocks(&self) -> u64 {
        self.scheme.blocks()
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        match blocks <= self.scheme.blocks() {
            true => Ok(()),
            false => Err(Error::Full(format!("the disk has {} blocks", self.scheme.blocks()))),
        }
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        let blocks = self.scheme.blocks();
        if let Some(op) = ops.iter().find(|op| op.id.0 >= blocks || op.action.end() > BLOCK) {
            return Err(Error::Invalid(format!("block {} of {blocks} of {BLOCK}", op.id.0)));
        }
        let mut answers = Vec::with_capacity(ops.len());
        let mut reads = Vec::new();
        for op in ops {
            if op.action == Action::Read {
                reads.push(op.id.0);
                continue;
            }
            answers.extend(self.read(&std::mem::take(&mut reads))?);
            self.write(op.id.0, op.action)?;
            answers.push(None);
        }
        answers.extend(self.read(&reads)?);
        Ok(answers.into_iter().map(Ok).collect())
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        debug_assert!(root.len() <= ROOT_BYTES, "the caller keeps to ROOT_BYTES");
        self.root = root.to_vec();
    }

    fn commit(&mut self) -> Result<()> {
        self.carry_out()?;
        self.scheme.sync()
    }

    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        Ok(ids.map(|id| self.exists(id)).collect())
    }

    fn exists(&self, id: u64) -> bool {
        let waits = self.shared.state().newest(id).map(Option::is_some);
        waits.unwrap_or_else(|| self.scheme.exists(id))
    }

    fn cache_budget(&self) -> usize {
        0
    }

    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        let found = self.scheme.beside()?;
        Some(Arc::new(Beside::new(Arc::clone(&self.shared), found, self.scheme.blocks())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequential::detwo::{Areas, DetWo, DetWoMap, Reads, Shape};
    use crate::sequential::plain::Plain;
    use oblivio_engine::BlockId;
    use oblivio_store::MemoryStore;
    use proptest::prelude::*;
    use std::collections::HashMap;

    #[derive(Clone, Debug)]
    enum Act {
        Write(u64, u8),
        Patch(u64, usize, u8),
        Erase(u64, u64),
        Remove(u64),
        Read(Vec<u64>),
        Commit,
    }

    fn act(blocks: u64) -> impl Strategy<Value = Act> {
        let id = 0..blocks;
        prop_oneof![
            12 => (id.clone(), any::<u8>()).prop_map(|(id, byte)| Act::Write(id, byte)),
            3 => (id.clone(), 0..BLOCK - 100, any::<u8>()).prop_map(|(id, at, byte)| Act::Patch(id, at, byte)),
            1 => (id.clone(), 1..9u64).prop_map(|(id, count)| Act::Erase(id, count)),
            1 => id.clone().prop_map(Act::Remove),
            4 => prop::collection::vec(id, 1..20).prop_map(Act::Read),
            2 => Just(Act::Commit),
        ]
    }

    fn case() -> impl Strategy<Value = (u64, Vec<Act>)> {
        (1u64..40)
            .prop_flat_map(|blocks| (Just(blocks), prop::collection::vec(act(blocks), 1..400)))
    }

    fn check(disk: &mut dyn BlockSpace, blocks: u64, acts: &[Act]) -> Result<()> {
        let mut model: HashMap<u64, Vec<u8>> = HashMap::new();
        let read = |id: &u64| BlockOp { id: BlockId(*id), action: Action::Read };
        for act in acts {
            match act {
                Act::Write(id, byte) => {
                    let action = Action::Write(vec![*byte; BLOCK - 7]);
                    disk.defer(vec![BlockOp { id: BlockId(*id), action }])?;
                    model.insert(*id, [vec![*byte; BLOCK - 7], vec![0; 7]].concat());
                }
                Act::Patch(id, offset, byte) => {
                    let action = Action::Patch { offset: *offset, bytes: vec![*byte; 99] };
                    disk.defer(vec![BlockOp { id: BlockId(*id), action }])?;
                    let block = model.entry(*id).or_insert_with(|| vec![0; BLOCK]);
                    block[*offset..offset + 99].fill(*byte);
                }
                Act::Erase(id, count) => {
                    let ids: Vec<u64> = (*id..blocks.min(id + count)).collect();
                    disk.erase(&ids)?;
                    ids.iter().for_each(|id| drop(model.remove(id)));
                }
                Act::Remove(id) => {
                    disk.defer(vec![BlockOp { id: BlockId(*id), action: Action::Remove }])?;
                    model.remove(id);
                }
                Act::Read(ids) => {
                    let found = disk.access(ids.iter().map(read).collect())?;
                    let wanted: Vec<_> = ids.iter().map(|id| model.get(id).cloned()).collect();
                    assert_eq!(found, wanted);
                }
                Act::Commit => disk.commit()?,
            }
        }
        let ids: Vec<u64> = (0..blocks).collect();
        for _ in 0..2 {
            let found = disk.access(ids.iter().map(read).collect())?;
            assert_eq!(found, ids.iter().map(|id| model.get(id).cloned()).collect::<Vec<_>>());
            assert!(ids.iter().all(|id| disk.exists(*id) == model.contains_key(id)));
            disk.commit()?;
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn each_is_a_disk((blocks, acts) in case()) {
            let store = || Arc::new(MemoryStore::new());
            let mut disks: Vec<Box<dyn BlockSpace>> = vec![Box::new(Plain::create(store(), blocks))];
            for every in [1, 2, 3] {
                let areas = Areas { blocks, every, reads: Reads::Known };
                disks.push(Box::new(DetWo::create(store(), areas).expect("a disk")));
                for (fan_out, step, cached) in [(1024, 16, 64), (5, 2, 2), (3, 7, 1)] {
                    let shape = Shape { fan_out, step, cached };
                    for reads in [Reads::Known, Reads::Compared] {
                        if reads == Reads::Known && every > 1 {
                            // Blocks this few are not renewed in time for the number of writes to
                            // show it.
                            continue;
                        }
                        let areas = Areas { reads, ..areas };
                        let disk = DetWoMap::create(store(), areas, shape).expect("a disk");
                        disks.push(Box::new(disk));
                    }
                }
            }
            for disk in &mut disks {
                let done = check(&mut **disk, blocks, &acts);
                prop_assert!(done.is_ok(), "{done:?}");
            }
        }
    }

    #[test]
    fn what_is_no_block_is_refused() {
        let mut disk = Plain::create(Arc::new(MemoryStore::new()), 4);
        let op = |id, bytes| BlockOp { id: BlockId(id), action: Action::Write(vec![1; bytes]) };
        for op in [op(4, 1), op(0, BLOCK + 1)] {
            assert!(matches!(disk.access(vec![op]), Err(Error::Invalid(_))));
        }
        assert!(matches!(disk.reserve(5), Err(Error::Full(_))));
    }
}
