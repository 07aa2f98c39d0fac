//! Blocks that cannot be read in a generation that is still being written. Those whose newest copy
//! comes there are in danger; a newer copy of the others is elsewhere.

use super::SealedAt;
use super::ids::Generation;
use super::pages::Pages;
use super::placement::Placement;
use super::time_pages::Times;
use crate::{BlockId, BlockOutcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// Pages of access times in memory at once.
const PAGES: u64 = 64;

/// No page of access times.
pub(super) const NO_PAGES: BTreeMap<BlockId, Vec<u8>> = BTreeMap::new();

/// Addresses of blocks that cannot be read in a generation, if it has them.
pub(super) struct Suspected {
    pub generation: Generation,
    pub blocks: Range<u64>,
}

impl Suspected {
    pub fn one(generation: Generation, block: BlockId) -> Self {
        Self { generation, blocks: block.0..block.0 + 1 }
    }

    /// Takes a part off the front, whose access times are in few pages.
    fn take_part(&mut self, pages: &Pages) -> Range<u64> {
        let Range { start, end } = self.blocks;
        let few = match pages.count {
            0 => end,
            _ if start >= pages.first => end,
            _ => pages.first.min((start / pages.times_per_page + PAGES) * pages.times_per_page),
        };
        self.blocks.start = few.min(end);
        start..self.blocks.start
    }
}

/// Suspected blocks, and those of them that are found to be in danger.
#[derive(Default)]
pub(super) struct Suspects {
    waiting: VecDeque<Suspected>,
    pages: BTreeMap<BlockId, Vec<u8>>,
    seen: BTreeSet<BlockId>,
    found: Vec<BlockId>,
}

impl Suspects {
    pub fn extend(&mut self, suspected: impl IntoIterator<Item = Suspected>) {
        self.waiting.extend(suspected);
    }

    /// Finds out which of the suspected blocks are in danger. Otherwise returns the pages of access
    /// times that it needs first.
    pub fn sift(&mut self, placement: &Placement<SealedAt, Vec<u8>>) -> Vec<BlockId> {
        let pages = placement.schedule().pages();
        while let Some(mut suspected) = self.waiting.pop_front() {
            let before = suspected.blocks.clone();
            let part = suspected.take_part(&pages);
            let timed = part.start.min(pages.first)..part.end.min(pages.first);
            let needed: BTreeSet<BlockId> = match pages.count {
                0 => BTreeSet::new(),
                _ => timed.map(|block| pages.of(BlockId(block))).collect(),
            };
            if !needed.iter().all(|page| self.pages.contains_key(page)) {
                self.waiting.push_front(Suspected { blocks: before, ..suspected });
                return needed.into_iter().collect();
            }
            let generation = suspected.generation;
            for block in part.map(BlockId) {
                if placement.may_come_to(generation, block, &self.pages) {
                    self.add(placement, block, generation);
                }
            }
            if !suspected.blocks.is_empty() {
                self.waiting.push_front(suspected);
            }
        }
        Vec::new()
    }

    /// Takes in the pages that it needs, in place of those before.
    pub fn take_pages(&mut self, pages: Vec<BlockId>, contents: Vec<BlockOutcome>, bytes: usize) {
        let content = |content: BlockOutcome| match content {
            Ok(content) => content.unwrap_or_else(|| vec![0; bytes]),
            Err(_) => Times::lost_page(bytes),
        };
        self.pages = pages.into_iter().zip(contents.into_iter().map(content)).collect();
    }

    /// The blocks found so far.
    pub fn take_found(&mut self) -> Vec<BlockId> {
        std::mem::take(&mut self.found)
    }

    /// Notes a block in danger. A page of access times is saved by its next turn, if that comes in
    /// time. Otherwise all blocks are in danger whose times are in it.
    fn add(
        &mut self,
        placement: &Placement<SealedAt, Vec<u8>>,
        block: BlockId,
        generation: Generation,
    ) {
        let (schedule, pages) = (placement.schedule(), placement.schedule().pages());
        let blocks = if block.0 < schedule.blocks() {
            block.0..block.0 + 1
        } else {
            let due = pages.next_due(block, placement.flush());
            let in_time = schedule.turn(due) < schedule.complete(generation);
            if in_time { 0..0 } else { pages.blocks(block) }
        };
        let new = blocks.map(BlockId).filter(|block| self.seen.insert(*block));
        self.found.extend(new);
    }
}
