//! The changes in the engine's memory since the last commit, serialized.
//!
//! Writing the whole map for each commit would cost more than the accesses. A delta's size follows
//! from public numbers: the requests and paths, the written buckets, and the bounds of stash,
//! backlog and PLB. Layout in docs/format.md §"Delta".

use super::bitset::SlotId;
use super::bounds::{EMPTY, padded};
use super::changes::DeltaChanges;
use super::frontend::TreeOram;
use super::geometry::Shape;
use super::state::{FIRST_VERSION, LOGGED, MET_DAMAGE, STEPPED_VERSION, VERSION, WINDOW_VERSION};
use super::top_index;
use super::top_log::FoundTop;
use crate::wire::{Reader, Writer};
use crate::{BucketId, EngineError, Level, Result};

/// A delta has a multiple of this many words of liveness bits, besides one per request. The number
/// of discarded blocks shows only in these steps.
const LIVE_BOUND: usize = 1024;
/// Set in the number of a dropped bucket.
const DROPPED: u64 = 1 << 63;
/// With leaf steps, the bits from here on count the slots that the bucket lacks.
const MISSING_SHIFT: u32 = 56;
/// No access counter reaches this. Beyond it, sums would overflow.
const MOST_COUNT: u64 = 1 << 56;

/// Each number once, ascending.
pub(super) fn distinct<T: Copy + Ord>(numbers: &[T]) -> Vec<T> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

impl TreeOram {
    /// Appends the changes since the last [`Self::committed`], after a flush.
    pub fn delta(&self, out: &mut Vec<u8>) {
        let tree = &self.tree;
        let changes = &tree.changes;
        let (entries, written) = (distinct(&changes.entries), distinct(&changes.written));
        let mut out = Writer(out);
        self.write_scalars(&mut out);
        out.words(&[changes.requests, changes.paths, written.len() as u64]);
        for &index in &entries {
            out.words(&[index, self.config.map_format.get(&self.on_chip, index as usize)]);
        }
        for _ in entries.len() as u64..changes.requests {
            out.words(&[EMPTY, 0]);
        }
        let slots = self.config.blocks_per_bucket;
        for &bucket in &written {
            let slot = |slot| tree.geometry.slot_id(bucket, slot);
            let bits = (0..slots).map(|at| u64::from(tree.marks.removed.get(slot(at))));
            let dropped = if tree.marks.present.get(bucket) { 0 } else { DROPPED };
            let missing = (tree.marks.missing.get(bucket) as u64) << MISSING_SHIFT;
            out.words(&[
                bucket.0 | missing | dropped,
                bits.rev().fold(0, |word, bit| word << 1 | bit),
            ]);
        }
        let mut removed = distinct(&changes.removed);
        removed.retain(|&slot| tree.marks.removed.get(slot));
        removed.iter().for_each(|slot| out.u64(slot.0));
        for _ in removed.len() as u64..changes.paths {
            out.u64(EMPTY);
        }
        self.write_live_words(&mut out);
        self.write_residents(&mut out);
        top_index::write(&self.tree, &mut out);
    }

    pub(super) fn write_live_words(&self, out: &mut Writer<'_>) {
        let (live, changes) = (&self.tree.marks.live, &self.tree.changes);
        let words = distinct(&changes.live);
        // Every request and every discarded block changes at most one word, up to the number of
        // words. The delta must not show which of them share one.
        let requests = changes.requests as usize;
        let discarded = changes.discarded.min(self.size.blocks.div_ceil(64)) as usize;
        let others = discarded.max(words.len().saturating_sub(requests));
        let slots = requests + padded(others, LIVE_BOUND);
        out.u64(slots as u64);
        for &at in &words {
            out.words(&[at, live.word(at)]);
        }
        for _ in words.len()..slots {
            out.words(&[EMPTY, 0]);
        }
    }

    pub(super) fn read_live_words(&mut self, input: &mut Reader<'_>) -> Result<()> {
        for _ in 0..input.u64()? {
            let (at, word) = (input.u64()?, input.u64()?);
            if at == EMPTY {
                continue;
            }
            if at >= self.size.blocks.div_ceil(64) {
                return Err(EngineError::State("a liveness bit is out of range"));
            }
            self.tree.marks.live.set_word(at, word);
        }
        self.size.live = self.tree.marks.live.count();
        Ok(())
    }

    /// Records that the current state is durable. The next delta begins here.
    pub fn committed(&mut self) {
        self.tree.changes = DeltaChanges::default();
    }

    /// Applies a delta to its base state.
    ///
    /// # Errors
    /// `State` when the bytes are not such a delta.
    pub fn apply_delta(&mut self, delta: &[u8]) -> Result<()> {
        let mut input = Reader(delta);
        let known = self.size.blocks;
        let version = self.read_scalars(&mut input)?;
        let (requests, paths, written) = (input.u64()?, input.u64()?, input.u64()?);
        let entries = self.config.blocks_by_level(self.size.blocks)[self.levels - 1];
        for _ in 0..requests {
            let (index, count) = (input.u64()?, input.u64()?);
            if index == EMPTY {
                continue;
            }
            if index >= entries {
                return Err(EngineError::State("a map entry is out of range"));
            }
            self.config.map_format.set(&mut self.on_chip, index as usize, count);
        }
        let slots = self.config.blocks_per_bucket as u64;
        let buckets = super::geometry::buckets_in(self.tree.leaves.depth);
        for _ in 0..written {
            let (bucket, bits) = (input.u64()?, input.u64()?);
            let stored = bucket & DROPPED == 0;
            let bucket = bucket & !DROPPED;
            let missing = (bucket >> MISSING_SHIFT) as usize;
            let most = if self.config.leaf_steps { self.config.blocks_per_bucket } else { 1 };
            if missing >= most {
                return Err(EngineError::State("a bucket has no slots"));
            }
            let bucket = bucket & ((1 << MISSING_SHIFT) - 1);
            // A dropped bucket may have been deeper than the current tree, which has no record of
            // it.
            if bucket == 0 || stored && bucket > buckets {
                return Err(EngineError::State("a bucket is out of range"));
            }
            if bucket > buckets {
                continue;
            }
            let bucket = BucketId(bucket);
            self.tree.marks.present.set(bucket, stored);
            self.tree.marks.missing.set(bucket, missing);
            for slot in 0..slots as usize {
                let id = self.tree.geometry.slot_id(bucket, slot);
                self.tree.marks.removed.set(id, bits >> slot & 1 == 1);
            }
        }
        for _ in 0..paths {
            let slot = input.u64()?;
            if slot == EMPTY {
                continue;
            }
            if slot / slots > buckets {
                return Err(EngineError::State("a slot is out of range"));
            }
            self.tree.marks.removed.set(SlotId(slot), true);
        }
        match version {
            FIRST_VERSION => self.assume_live(known),
            _ => self.read_live_words(&mut input)?,
        }
        self.read_residents(&mut input)?;
        if self.tree.top.found.is_some() {
            self.tree.top.found = Some(top_index::read(&self.tree, &mut input)?);
        }
        if input.0.is_empty() { Ok(()) } else { Err(EngineError::State("too long")) }
    }

    /// The version of states and deltas.
    fn state_version(&self) -> u64 {
        match self.windows() {
            Some(_) => WINDOW_VERSION,
            None if self.config.leaf_steps => STEPPED_VERSION,
            None => VERSION,
        }
    }

    /// The numbers at the start of every state and delta.
    pub(super) fn write_scalars(&self, out: &mut Writer<'_>) {
        let tree = &self.tree;
        let damage = if tree.marks.met_damage { MET_DAMAGE } else { 0 };
        let logged = if tree.top.log.is_some() { LOGGED } else { 0 };
        out.u64(self.state_version() | damage | logged);
        out.words(&[
            self.size.blocks,
            self.size.class,
            u64::from(tree.leaves.depth.0),
            self.size.swept,
        ]);
        if self.config.leaf_steps {
            out.u64(tree.leaves.leaf_slots as u64);
        }
        out.words(&[self.schedule.accesses, self.schedule.turns, self.tree.meters.requests]);
        out.bytes(&tree.root_tag.0);
    }

    /// Returns the version. In the first version, a tree was as deep as its ids need, and no bits
    /// said which blocks exist.
    pub(super) fn read_scalars(&mut self, input: &mut Reader<'_>) -> Result<u64> {
        let word = input.u64()?;
        let version = word & !(MET_DAMAGE | LOGGED);
        self.tree.marks.met_damage = word & MET_DAMAGE != 0;
        self.tree.top.found = (word & LOGGED != 0).then(FoundTop::default);
        let known = match version {
            FIRST_VERSION => !self.config.pmmac && self.state_version() == VERSION,
            _ => version == self.state_version(),
        };
        if !known {
            return Err(EngineError::State("unknown version"));
        }
        let first = version == FIRST_VERSION;
        let blocks = input.u64()?;
        let class = if first { blocks } else { input.u64()? };
        let allowed = self.allow(blocks.max(class));
        if blocks < self.size.blocks || class == 0 || allowed.is_err() {
            return Err(EngineError::State("blocks out of range"));
        }
        self.size.class = class;
        self.grow(blocks)?;
        let depth = input.u64()?;
        let swept = if first { 0 } else { input.u64()? };
        let full = self.config.blocks_per_bucket as u64;
        let leaf_slots = if self.config.leaf_steps { input.u64()? } else { full };
        self.take_shape(depth, leaf_slots, swept)?;
        (self.schedule.accesses, self.schedule.turns) = (input.u64()?, input.u64()?);
        self.tree.meters.requests = input.u64()?;
        if [self.schedule.accesses, self.schedule.turns, self.tree.meters.requests]
            .iter()
            .any(|&count| count > MOST_COUNT)
        {
            return Err(EngineError::State("a counter is out of range"));
        }
        self.tree.root_tag = input.tag()?;
        Ok(version)
    }

    /// Sets the shape. The tree may have shrunk: it forgets the buckets of a dropped level.
    fn take_shape(&mut self, depth: u64, leaf_slots: u64, swept: u64) -> Result<()> {
        self.size.floor = self.config.shape_for_live(self.size.class, self.size.blocks);
        let deepest = self.config.depth(self.config.capacity);
        let full = self.config.blocks_per_bucket as u64;
        if depth > u64::from(deepest.0) || !(1..=full).contains(&leaf_slots) {
            return Err(EngineError::State("the depth is out of range"));
        }
        let shape = Shape { depth: Level(depth as u32), leaf_slots: leaf_slots as usize };
        if shape < self.size.floor {
            return Err(EngineError::State("the depth is out of range"));
        }
        if swept >= 1 << depth || swept > 0 && shape == self.size.floor {
            return Err(EngineError::State("the shrinking is out of range"));
        }
        let tree = &mut self.tree;
        (tree.leaves.depth, tree.leaves.leaf_slots) = (shape.depth, shape.leaf_slots);
        tree.forget_from(BucketId(super::geometry::buckets_in(shape.depth) + 1));
        self.size.swept = swept;
        Ok(())
    }
}
