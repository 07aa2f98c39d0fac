//! A block space in memory for tests: atomic commits, crashes, spontaneous commits, lost blocks.

use oblivio_engine::{Action, BlockOp, BlockOutcome, Lost};
use oblivio_volume::{BlockSpace, Error, ROOT_BYTES, Result};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Default)]
struct Disk {
    block_bytes: usize,
    capacity: u64,
    budget: usize,
    /// Whether [`BlockSpace::exists`] knows nothing.
    vague: bool,
    reserved: u64,
    /// The most ever reserved.
    ids: u64,
    blocks: HashMap<u64, Vec<u8>>,
    root: Vec<u8>,
    /// Former contents of the blocks changed since the last commit.
    undo: HashMap<u64, Option<Vec<u8>>>,
    committed_root: Vec<u8>,
    /// Discarded and not written since; a read of one is the caller's mistake.
    unwanted: HashSet<u64>,
    committed_unwanted: HashSet<u64>,
    /// Lost to damage, until they are replaced or removed.
    lost: HashSet<u64>,
    committed_lost: HashSet<u64>,
    random: u64,
    /// Operations between two spontaneous commits, on average; 0 for none.
    auto_commit: u64,
    /// Accesses left before all fail.
    fail_after: Option<u64>,
    accesses: u64,
    operations: u64,
    changes: u64,
    damage: Damage,
}

/// What is lost, and what an onlooker sees of it.
#[derive(Clone, Default)]
struct Damage {
    /// Lost blocks whose damaged places nobody met yet.
    unmet: BTreeSet<u64>,
    /// Whether any was met since the last question.
    met: bool,
    /// At which access a damaged place is met, and the block that it carries.
    due: Option<(u64, Option<u64>)>,
    /// For each access its operations that wrote, and those that read.
    trace: Option<Vec<(usize, usize)>>,
}

/// A volume in memory. Clones are the same volume, so a test keeps its hold on what it gave to a
/// file system.
#[derive(Clone)]
pub struct MemoryBlocks(Arc<Mutex<Disk>>);

impl MemoryBlocks {
    /// An empty volume.
    pub fn new(block_bytes: usize, capacity: u64, budget: usize) -> Self {
        MemoryBlocks(Arc::new(Mutex::new(Disk {
            block_bytes,
            capacity,
            budget,
            random: 1,
            ..Disk::default()
        })))
    }

    /// A volume of its own that holds the same.
    #[must_use]
    pub fn copy(&self) -> Self {
        MemoryBlocks(Arc::new(Mutex::new(self.disk().clone())))
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volume for a file system.
    pub fn boxed(&self) -> Box<dyn BlockSpace> {
        let root = self.disk().root.clone();
        Box::new(Mounted { volume: self.clone(), root })
    }

    /// Goes back to the last commit.
    pub fn crash(&self) {
        let mut disk = self.disk();
        for (id, before) in std::mem::take(&mut disk.undo) {
            match before {
                Some(content) => disk.blocks.insert(id, content),
                None => disk.blocks.remove(&id),
            };
        }
        disk.root = disk.committed_root.clone();
        disk.unwanted = disk.committed_unwanted.clone();
        disk.lost = disk.committed_lost.clone();
        disk.reserved = 0;
    }

    /// What is lost is there again.
    pub fn mend(&self) {
        let mut disk = self.disk();
        disk.lost.clear();
        disk.committed_lost.clear();
        disk.damage.unmet.clear();
    }

    /// The access after `accesses` more meets a damaged place, whatever it wants. If that carries a
    /// block, it is lost.
    pub fn damage_in(&self, accesses: u64, block: Option<u64>) {
        let mut disk = self.disk();
        disk.damage.due = Some((disk.accesses + accesses, block));
    }

    /// From now on notes for each access how many operations wrote, and how many read; gives those
    /// noted so far.
    pub fn trace(&self) -> Vec<(usize, usize)> {
        self.disk().damage.trace.replace(Vec::new()).unwrap_or_default()
    }

    /// From now on commits before one in `one_in` operations at random; 0 for never.
    pub fn auto_commit(&self, seed: u64, one_in: u64) {
        let mut disk = self.disk();
        disk.random = seed | 1;
        disk.auto_commit = one_in;
    }

    /// Fails all accesses after `accesses` more; `None` for never.
    pub fn fail_after(&self, accesses: Option<u64>) {
        self.disk().fail_after = accesses;
    }

    /// From now on it says of each block that it may exist, and keeps what is discarded, as a
    /// sequential volume does.
    pub fn be_vague(&self) {
        let mut disk = self.disk();
        disk.vague = true;
        disk.unwanted.clear();
        disk.committed_unwanted.clear();
    }

    /// Sets the capacity for the next opening; no block behind it is in use.
    pub fn set_capacity(&self, blocks: u64) {
        let mut disk = self.disk();
        (disk.capacity, disk.ids) = (blocks, disk.ids.min(blocks));
    }

    /// Sets the limit for the next opening, as a restored old header would.
    pub fn set_limit(&self, blocks: u64) {
        self.disk().capacity = blocks;
    }

    /// One above the last present block.
    pub fn end(&self) -> u64 {
        self.disk().blocks.keys().max().map_or(0, |last| last + 1)
    }

    /// Loses what these blocks hold, as damage does: they exist still, and nothing reads them.
    pub fn lose(&self, blocks: impl IntoIterator<Item = u64>) {
        let mut disk = self.disk();
        for block in
            blocks.into_iter().filter(|block| disk.blocks.contains_key(block)).collect::<Vec<_>>()
        {
            disk.lost.insert(block);
            disk.committed_lost.insert(block);
            disk.damage.unmet.insert(block);
        }
    }

    /// How many blocks are lost.
    pub fn lost(&self) -> usize {
        self.disk().lost.len()
    }

    /// The blocks that hold these bytes, ascending: from their front on, or anywhere.
    pub fn blocks_with(&self, bytes: &[u8], at_front: bool) -> Vec<u64> {
        let has = |content: &[u8]| match at_front {
            true => content.starts_with(bytes),
            false => content.windows(bytes.len()).any(|part| part == bytes),
        };
        let disk = self.disk();
        let found = disk.blocks.iter().filter(|(_, content)| has(content));
        let mut found: Vec<u64> = found.map(|(&id, _)| id).collect();
        found.sort_unstable();
        found
    }

    /// Calls of `access` so far, and operations in them.
    pub fn counts(&self) -> (u64, u64) {
        let disk = self.disk();
        (disk.accesses, disk.operations)
    }

    /// Blocks that were written, removed or discarded so far, and new roots.
    pub fn changes(&self) -> u64 {
        self.disk().changes
    }

    /// Whether a block is present.
    pub fn holds(&self, block: u64) -> bool {
        self.disk().blocks.contains_key(&block)
    }

    /// How many blocks are present.
    pub fn present(&self) -> u64 {
        self.disk().blocks.len() as u64
    }
}

impl Disk {
    /// As in a tree volume.
    fn most_ids(&self) -> u64 {
        match self.ids > self.capacity {
            true => self.ids + self.ids / 16 + 1024,
            false => self.capacity,
        }
    }

    fn commit(&mut self) {
        self.undo.clear();
        self.committed_root = self.root.clone();
        self.committed_unwanted = self.unwanted.clone();
        self.committed_lost = self.lost.clone();
    }

    fn maybe_commit(&mut self) {
        if self.auto_commit == 0 {
            return;
        }
        // xorshift64: any sequence that a seed repeats will do.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        if self.random.is_multiple_of(self.auto_commit) {
            self.commit();
        }
    }

    /// Meets the damage that is due at this access.
    fn meet(&mut self) {
        if let Some((_, block)) = self.damage.due.take_if(|(at, _)| *at <= self.accesses) {
            self.damage.met = true;
            self.lost.extend(block);
        }
    }

    fn change(&mut self, id: u64, content: Option<Vec<u8>>) {
        self.changes += 1;
        self.lost.remove(&id);
        let before = match content {
            Some(content) => self.blocks.insert(id, content),
            None => self.blocks.remove(&id),
        };
        self.undo.entry(id).or_insert(before);
    }

    fn serve(&mut self, op: BlockOp) -> Result<BlockOutcome> {
        let (id, size) = (op.id.0, self.block_bytes);
        if id >= self.reserved {
            return Err(Error::Invalid(format!("block {id} is not reserved")));
        }
        match op.action {
            Action::Read => assert!(!self.unwanted.contains(&id), "block {id} was discarded"),
            _ => drop(self.unwanted.remove(&id)),
        }
        self.damage.met |= self.damage.unmet.remove(&id);
        if self.lost.contains(&id) && !op.action.replaces(size) {
            return Ok(Err(Lost));
        }
        match op.action {
            Action::Read => return Ok(Ok(self.blocks.get(&id).cloned())),
            Action::Write(mut content) => {
                if content.len() > size {
                    return Err(Error::Invalid("a write longer than a block".into()));
                }
                content.resize(size, 0);
                self.change(id, Some(content));
            }
            Action::Patch { offset, bytes } => {
                if offset + bytes.len() > size {
                    return Err(Error::Invalid("a patch beyond a block".into()));
                }
                let mut content = self.blocks.get(&id).cloned().unwrap_or(vec![0; size]);
                content[offset..offset + bytes.len()].copy_from_slice(&bytes);
                self.change(id, Some(content));
            }
            Action::Patches(patches) => {
                let mut content = self.blocks.get(&id).cloned().unwrap_or(vec![0; size]);
                for (offset, bytes) in patches {
                    content[offset..offset + bytes.len()].copy_from_slice(&bytes);
                }
                self.change(id, Some(content));
            }
            Action::Remove => self.change(id, None),
        }
        Ok(Ok(None))
    }
}

/// The volume with a copy of its root, since [`BlockSpace::root`] returns a reference.
struct Mounted {
    volume: MemoryBlocks,
    root: Vec<u8>,
}

impl BlockSpace for Mounted {
    oblivio_volume::lacks!(padding, idling, ending, readers);

    fn block_bytes(&self) -> usize {
        self.volume.disk().block_bytes
    }

    fn capacity_blocks(&self) -> u64 {
        self.volume.disk().capacity
    }

    fn reserve(&mut self, blocks: u64) -> Result<()> {
        let mut disk = self.volume.disk();
        if blocks > disk.most_ids() {
            return Err(Error::Full("beyond the declared capacity".into()));
        }
        disk.reserved = disk.reserved.max(blocks);
        disk.ids = disk.ids.max(blocks);
        Ok(())
    }

    fn addressable_blocks(&self) -> u64 {
        self.volume.disk().most_ids()
    }

    fn can_resize(&self) -> bool {
        true
    }

    fn set_capacity(&mut self, blocks: u64) -> Result<()> {
        self.volume.disk().capacity = blocks;
        Ok(())
    }

    fn room(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<()> {
        self.access(ops).map(drop)
    }

    fn met_damage(&mut self) -> bool {
        std::mem::take(&mut self.volume.disk().damage.met)
    }

    fn erase(&mut self, ids: &[u64]) -> Result<()> {
        self.defer(oblivio_volume::block::removals(ids))
    }

    fn erases_cheaply(&self) -> bool {
        false
    }

    fn present(&self, ids: Range<u64>) -> Result<Vec<bool>> {
        Ok(ids.map(|id| self.volume.holds(id)).collect())
    }

    fn exists(&self, id: u64) -> bool {
        let vague = self.volume.disk().vague;
        vague || self.volume.holds(id)
    }

    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        let mut disk = self.volume.disk();
        if let Some(left) = &mut disk.fail_after {
            if *left == 0 {
                return Err(Error::Store(oblivio_store::StoreError::Busy));
            }
            *left -= 1;
        }
        disk.accesses += 1;
        disk.operations += ops.len() as u64;
        let reads = ops.iter().filter(|op| op.action == Action::Read).count();
        disk.damage.trace.iter_mut().for_each(|trace| trace.push((ops.len() - reads, reads)));
        disk.meet();
        ops.into_iter()
            .map(|op| {
                disk.maybe_commit();
                disk.serve(op)
            })
            .collect()
    }

    fn root(&self) -> &[u8] {
        &self.root
    }

    fn set_root(&mut self, root: &[u8]) {
        assert!(root.len() <= ROOT_BYTES, "the root is too long");
        self.root = root.to_vec();
        let mut disk = self.volume.disk();
        disk.root = root.to_vec();
        disk.changes += 1;
    }

    fn commit(&mut self) -> Result<()> {
        let mut disk = self.volume.disk();
        if disk.fail_after == Some(0) {
            return Err(Error::Store(oblivio_store::StoreError::Busy));
        }
        disk.commit();
        Ok(())
    }

    fn discard(&mut self, ids: &[u64]) -> Result<()> {
        let mut disk = self.volume.disk();
        if disk.vague {
            return Ok(());
        }
        for &id in ids {
            disk.change(id, None);
            disk.unwanted.insert(id);
        }
        Ok(())
    }

    fn cache_budget(&self) -> usize {
        self.volume.disk().budget
    }
}
