//! The second half of a round: blocks go as deep as possible, and the scheduled buckets are sealed.
//! A flush of the bucket cache seals the same way.

use super::{Backend, Candidate, Held, Round, entries, resident};
use crate::tree::block_pool::Payload;
use crate::tree::bucket_cache::{Meta, Resident};
use crate::tree::eviction::next_turn;
use crate::tree::geometry::SlotHeader;
use crate::tree::paths::NONE;
use crate::{Address, BucketId, Extent, Result, SealedBucket};
use oblivio_crypto::Tag;

impl Round {
    /// The last round's buffers are written by now, or their writer holds on to them.
    fn begin_writes(&mut self) {
        self.writes.clear();
        self.spare.give(&mut self.written);
    }

    fn write(&mut self, bucket: BucketId, sealed: Vec<u8>) {
        let extent = Extent { offset: bucket.0, bytes: sealed.len() as u64 };
        self.append(extent, SealedBucket::new(sealed));
    }
}

impl Backend {
    /// Places the blocks and seals the buckets to write back, for [`Round::as_write`].
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn evict(&mut self) -> Result<()> {
        let mut round = std::mem::take(&mut self.round);
        self.place_blocks(&mut round);
        let result = self.write_back(&mut round);
        for candidate in round.candidates.iter().filter(|c| c.header.id != Address::NONE) {
            let payload = self.keep(candidate.held, &round.read_buf);
            let home = self
                .top
                .log
                .as_mut()
                .map_or(0, |log| log.home_of(candidate.home, &candidate.header, payload));
            self.stash.push(Resident { home, ..resident(candidate.header, payload) });
        }
        let result = result.and_then(|()| entries::append(self, &mut round));
        self.round = round;
        self.meters.stash_peak = self.meters.stash_peak.max(self.stash.len() as u64);
        result
    }

    fn write_back(&mut self, round: &mut Round) -> Result<()> {
        round.begin_writes();
        for index in (0..round.union.nodes().len()).rev() {
            let node = round.union.nodes()[index];
            if !node.evict {
                continue;
            }
            let tag = if self.room(node.bucket) == 0 {
                self.prune(node.bucket);
                Tag::default()
            } else if !self.cache.holds(node.bucket) {
                self.fill_stored(round, index)?
            } else {
                self.fill_cached(round, index);
                if !self.is_written(node.bucket) {
                    continue;
                }
                self.seal_cached(round, node.bucket)?
            };
            match node.parent {
                NONE => self.root_tag = tag,
                parent => round.node_tags[parent as usize][node.bucket.side()] = tag,
            }
        }
        Ok(())
    }

    /// Gives each node a list of as many candidates as its bucket has room for, each as deep as
    /// possible. The rest are in no list.
    fn place_blocks(&self, round: &mut Round) {
        round.heads.clear();
        round.heads.resize(round.union.nodes().len(), NONE);
        round.last_heads.clear();
        let top_waits = self.top.is_kept();
        round.last_heads.resize(if top_waits { round.heads.len() } else { 0 }, NONE);
        for index in 0..round.candidates.len() {
            let Candidate { header, of_top, .. } = round.candidates[index];
            if header.id == Address::NONE {
                continue;
            }
            if let Some(node) = round.union.deepest(header.label) {
                // With a pool, blocks from below it come first: all of them have room where they
                // were. So no block gets into the pool without an access.
                let waits = top_waits && of_top;
                let heads = if waits { &mut round.last_heads } else { &mut round.heads };
                round.candidates[index].next = heads[node as usize];
                heads[node as usize] = index as u32;
            }
        }
        for index in (0..round.heads.len()).rev() {
            let node = round.union.nodes()[index];
            if node.evict {
                let room = self.room(node.bucket);
                let parent = node.parent;
                let Round { heads, last_heads, candidates, .. } = round;
                let left = overflow_to_parent(heads, candidates, index, parent, room);
                if top_waits {
                    overflow_to_parent(last_heads, candidates, index, parent, left);
                    join(heads, last_heads, candidates, index);
                }
            }
        }
    }

    /// Whether a rewritten bucket goes to the store at once. A cached one does when its next turn
    /// comes after the next flush. The turns of those below it come no sooner than its own, so a
    /// written bucket is never above a deferred one.
    fn is_written(&self, bucket: BucketId) -> bool {
        match &self.top.log {
            Some(log) => !log.holds(bucket),
            None => {
                !self.cache.holds(bucket)
                    || next_turn(bucket, self.clock.turns) >= self.clock.flush_at
            }
        }
    }

    /// Drops an empty bucket. It then reads as never stored.
    fn prune(&mut self, bucket: BucketId) {
        if self.cache.holds(bucket) {
            *self.cache.meta_mut(bucket) = Meta::default();
        }
        if self.marks.present.get(bucket) {
            self.marks.present.set(bucket, false);
            self.marks.missing.set(bucket, 0);
            self.clear_removed(bucket);
            self.changes.written.push(bucket);
        }
    }

    fn fill_cached(&mut self, round: &mut Round, index: usize) {
        let bucket = round.union.nodes()[index].bucket;
        let (room, kept) = (self.room(bucket), self.top.holds(bucket, true));
        let mut next = round.heads[index];
        while next != NONE {
            let candidate = &mut round.candidates[next as usize];
            let payload = self.keep(candidate.held, &round.read_buf);
            let log = self.top.log.as_mut().filter(|_| kept);
            let home = log.map_or(0, |log| log.home_of(candidate.home, &candidate.header, payload));
            self.cache.push(bucket, Resident { home, ..resident(candidate.header, payload) });
            candidate.header.id = Address::NONE;
            next = candidate.next;
        }
        let meta = self.cache.meta_mut(bucket);
        (meta.child_tags, meta.slots) = (round.node_tags[index], room as u8);
    }

    fn fill_stored(&mut self, round: &mut Round, index: usize) -> Result<Tag> {
        let bucket = round.union.nodes()[index].bucket;
        let slots = self.room(bucket);
        let mut sealed = round.spare.take(self.geometry.bucket_bytes_with(slots));
        let bytes = &mut sealed[..];
        self.geometry.set_child_tags(bytes, &round.node_tags[index]);
        let mut next = round.heads[index];
        for slot in 0..slots {
            let at = self.geometry.payload_at(slots, slot);
            let payload = &mut bytes[at..at + self.geometry.block_bytes];
            if next == NONE {
                // Its content is what a sealed bucket before left in the buffer.
                self.geometry.set_slot(bytes, slot, &SlotHeader::VACANT);
                continue;
            }
            let candidate = &mut round.candidates[next as usize];
            match candidate.held {
                Held::Read(from) => {
                    payload.copy_from_slice(&round.read_buf[from..from + payload.len()]);
                }
                Held::Pool(held) => {
                    payload.copy_from_slice(self.pool.get(held));
                    self.pool.release(held);
                }
            }
            self.geometry.set_slot(bytes, slot, &candidate.header);
            candidate.header.id = Address::NONE;
            next = candidate.next;
        }
        let tag = self.seal(bucket, slots, bytes)?;
        round.write(bucket, sealed);
        Ok(tag)
    }

    fn seal(&mut self, bucket: BucketId, slots: usize, bytes: &mut [u8]) -> Result<Tag> {
        let place = self.place(bucket);
        let tag = self.sealer.seal(&place, bytes)?;
        self.marks.present.set(bucket, true);
        self.marks.missing.set(bucket, self.geometry.blocks_per_bucket - slots);
        self.changes.written.push(bucket);
        self.clear_removed(bucket);
        self.meters.buckets_written += 1;
        self.meters.bytes_moved += bytes.len() as u64;
        self.meters.tag_tree_bytes += bytes.len() as u64;
        Ok(tag)
    }

    pub(in crate::tree) fn clear_removed(&mut self, bucket: BucketId) {
        for slot in 0..self.geometry.blocks_per_bucket {
            self.marks.removed.set(self.geometry.slot_id(bucket, slot), false);
        }
    }

    fn keep(&mut self, held: Held, read_buf: &[u8]) -> Payload {
        match held {
            Held::Pool(payload) => payload,
            Held::Read(at) => self.pool.store(&read_buf[at..at + self.geometry.block_bytes]),
        }
    }

    /// Seals the next dirty cached buckets of `dirty` (descending), at most `most` of them, for
    /// [`Round::as_write`].
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn flush(&mut self, dirty: &mut Vec<BucketId>, most: usize) -> Result<()> {
        let mut round = std::mem::take(&mut self.round);
        round.begin_writes();
        for bucket in dirty.drain(..dirty.len().min(most)) {
            let tag = self.seal_cached(&mut round, bucket)?;
            match bucket.parent() {
                None => self.root_tag = tag,
                Some(parent) => self.cache.meta_mut(parent).child_tags[bucket.side()] = tag,
            }
        }
        self.round = round;
        Ok(())
    }

    /// Seals a cached bucket as the next one to write.
    fn seal_cached(&mut self, round: &mut Round, bucket: BucketId) -> Result<Tag> {
        let slots = usize::from(self.cache.meta_mut(bucket).slots);
        let mut sealed = round.spare.take(self.geometry.bucket_bytes_with(slots));
        self.copy_cached(bucket, slots, &mut sealed);
        let tag = self.seal(bucket, slots, &mut sealed)?;
        round.write(bucket, sealed);
        Ok(tag)
    }

    fn copy_cached(&mut self, bucket: BucketId, slots: usize, bytes: &mut [u8]) {
        let meta = self.cache.meta_mut(bucket);
        meta.dirty = false;
        self.geometry.set_child_tags(bytes, &meta.child_tags);
        let blocks = self.cache.blocks_mut(bucket);
        for slot in 0..slots {
            let at = self.geometry.payload_at(slots, slot);
            let payload = &mut bytes[at..at + self.geometry.block_bytes];
            let header = match blocks.get_mut(slot) {
                None => SlotHeader::VACANT,
                Some(block) => {
                    payload.copy_from_slice(self.pool.get(block.payload));
                    block.slot = slot as u8;
                    block.header
                }
            };
            self.geometry.set_slot(bytes, slot, &header);
        }
    }
}

/// Leaves at most `slots` candidates in the list of a node, and hands the rest to its parent. Gives
/// the slots left.
fn overflow_to_parent(
    heads: &mut [u32],
    candidates: &mut [Candidate],
    index: usize,
    parent: u32,
    slots: usize,
) -> usize {
    let (mut last, mut next) = (NONE, heads[index]);
    for taken in 0..slots {
        if next == NONE {
            return slots - taken;
        }
        last = next;
        next = candidates[next as usize].next;
    }
    match last {
        NONE => heads[index] = NONE,
        last => candidates[last as usize].next = NONE,
    }
    while next != NONE {
        let following = candidates[next as usize].next;
        if parent != NONE {
            candidates[next as usize].next = heads[parent as usize];
            heads[parent as usize] = next;
        }
        next = following;
    }
    0
}

/// Appends a node's list of `first` to the one of `last`, and makes that the node's.
fn join(first: &mut [u32], last: &[u32], candidates: &mut [Candidate], index: usize) {
    let mut end = last[index];
    if end == NONE {
        return;
    }
    while candidates[end as usize].next != NONE {
        end = candidates[end as usize].next;
    }
    candidates[end as usize].next = first[index];
    first[index] = last[index];
}
