//! The write queue (§5.1), in two halves: the front collects the writes of a turn; each flush
//! writes a bucket of the sorted back to level 0.

use crate::BlockId;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The queue. `P` is the content of a present block.
#[derive(Clone, Debug)]
pub struct WriteQueue<P> {
    front: BTreeMap<BlockId, Option<P>>,
    back: BTreeMap<BlockId, Option<P>>,
    /// The last block of the back that was written to level 0.
    drained: Option<BlockId>,
}

impl<P> Default for WriteQueue<P> {
    fn default() -> Self {
        Self { front: BTreeMap::new(), back: BTreeMap::new(), drained: None }
    }
}

impl<P> WriteQueue<P> {
    /// Puts a block into the front; `None` makes it absent.
    pub fn push(&mut self, block: BlockId, content: Option<P>) {
        self.front.insert(block, content);
    }

    /// Puts a block into the back, after a restart.
    pub fn push_back(&mut self, block: BlockId, content: Option<P>) {
        self.back.insert(block, content);
    }

    /// The block in the front.
    pub fn front(&self, block: BlockId) -> Option<&Option<P>> {
        self.front.get(&block)
    }

    /// The block in the back.
    pub fn back(&self, block: BlockId) -> Option<&Option<P>> {
        self.back.get(&block)
    }

    /// The next block for level 0, and whether it is present.
    pub fn drain_next(&mut self) -> Option<(BlockId, bool)> {
        let from = self.drained.map_or(Bound::Unbounded, Bound::Excluded);
        let (block, content) = self.back.range((from, Bound::Unbounded)).next()?;
        self.drained = Some(*block);
        Some((*block, content.is_some()))
    }

    /// Skips the blocks of the back that were written to level 0 before a restart.
    pub fn skip_drained(&mut self, blocks: u64) {
        let drained = self.back.keys().take(usize::try_from(blocks).unwrap_or(usize::MAX)).last();
        self.drained = drained.copied();
    }

    /// Whether everything in the back was written to level 0.
    pub fn is_drained(&self) -> bool {
        self.back.last_key_value().map(|(block, _)| *block) == self.drained
    }

    /// Ends a turn: the front becomes the back; the old back is on the disk.
    pub fn turn(&mut self) {
        self.back = std::mem::take(&mut self.front);
        self.drained = None;
    }

    /// Blocks in memory.
    pub fn len(&self) -> usize {
        self.front.len() + self.back.len()
    }

    /// Whether nothing is in memory.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
