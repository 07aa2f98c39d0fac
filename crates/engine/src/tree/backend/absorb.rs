//! The first half of a round: it checks and opens the read buckets, and gathers the blocks that may
//! move, the wanted ones among them.

use super::{Backend, Candidate, Held, Round, resident};
use crate::tree::bitset::SlotId;
use crate::tree::bucket_cache::Resident;
use crate::tree::paths::NONE;
use crate::{Address, BucketId, Result};
use oblivio_crypto::{Tag, tag_of};
use std::ops::Range;

impl Backend {
    /// Checks and opens the read buckets and gathers their blocks.
    ///
    /// # Errors
    /// `Tampered` names the first bucket that differs from the last one written.
    pub fn absorb(&mut self) -> Result<()> {
        let mut round = std::mem::take(&mut self.round);
        let result = self.absorb_round(&mut round);
        self.round = round;
        result
    }

    fn absorb_round(&mut self, round: &mut Round) -> Result<()> {
        round.candidates.clear();
        let mut stash = std::mem::take(&mut self.stash);
        for block in stash.drain(..) {
            self.gather(round, block);
        }
        self.stash = stash;
        round.node_tags.clear();
        round.node_tags.resize(round.union.nodes().len(), [Tag::default(); 2]);
        let (mut reads, mut at) = (0, 0);
        for index in 0..round.union.nodes().len() {
            if round.read_nodes.get(reads) == Some(&(index as u32)) {
                let len = round.reads[reads].bytes as usize;
                self.absorb_read(round, index, at..at + len)?;
                (reads, at) = (reads + 1, at + len);
            } else if self.cache.holds(round.union.nodes()[index].bucket) {
                self.absorb_cached(round, index);
            }
        }
        Ok(())
    }

    /// Absorbs a bucket from this part of the read.
    fn absorb_read(&mut self, round: &mut Round, index: usize, part: Range<usize>) -> Result<()> {
        let node = round.union.nodes()[index];
        let expected = match node.parent {
            NONE => self.root_tag,
            parent => round.node_tags[parent as usize][node.bucket.side()],
        };
        let slots = self.stored_slots(node.bucket);
        let bytes = &mut round.read_buf[part.clone()];
        if self.geometry.tag_tree && tag_of(bytes) != Some(expected) {
            return Err(self.tampered(node.bucket, "it is not the version written last"));
        }
        self.meters.tag_tree_bytes += bytes.len() as u64;
        round.node_tags[index] = self.open_bucket(node.bucket, bytes)?;
        let cached = self.cache.holds(node.bucket);
        if cached {
            let meta = self.cache.meta_mut(node.bucket);
            meta.loaded = true;
            meta.child_tags = round.node_tags[index];
            meta.dirty = node.evict;
        }
        for slot in 0..slots {
            let header = self.geometry.slot(&round.read_buf[part.clone()], slot);
            let slot_id = self.geometry.slot_id(node.bucket, slot);
            if header.id == Address::NONE || self.marks.removed.get(slot_id) {
                continue;
            }
            let payload = part.start + self.geometry.payload_at(slots, slot);
            let wanted = wanted_by(&round.wants, header.id);
            if node.evict || wanted.is_some() {
                if !node.evict {
                    self.note_removed(slot_id);
                }
                if self.is_dead(header.id) {
                    continue;
                }
                if let Some(access) = wanted {
                    round.found[access] = round.candidates.len() as u32;
                }
                let held = Held::Read(payload);
                round.candidates.push(Candidate { header, held, next: NONE });
            } else if cached {
                // Dead or not: the cache must match the stored bucket until it is rewritten.
                // Otherwise the stored copy would come back when the cached bucket is dropped.
                let bytes = &round.read_buf[payload..payload + self.geometry.block_bytes];
                let block =
                    Resident { slot: slot as u8, ..resident(header, self.pool.store(bytes)) };
                self.cache.push(node.bucket, block);
            }
        }
        Ok(())
    }

    /// Opens a bucket in place and returns its children's tags.
    pub(in crate::tree) fn open_bucket(
        &mut self,
        bucket: BucketId,
        bytes: &mut [u8],
    ) -> Result<[Tag; 2]> {
        let place = self.place(bucket);
        if self.sealer.open(&place, bytes).is_err() {
            return Err(self.tampered(bucket, "its seal does not open"));
        }
        Ok(self.geometry.child_tags(bytes))
    }

    fn absorb_cached(&mut self, round: &mut Round, index: usize) {
        let node = round.union.nodes()[index];
        let bucket = node.bucket;
        let meta = self.cache.meta_mut(bucket);
        meta.loaded = true;
        meta.dirty |= node.evict;
        let stored = !meta.dirty;
        round.node_tags[index] = meta.child_tags;
        let mut at = 0;
        while let Some(block) = self.cache.blocks(bucket).get(at) {
            if !node.evict && wanted_by(&round.wants, block.header.id).is_none() {
                at += 1;
                continue;
            }
            let block = self.cache.remove(bucket, at);
            self.gather(round, block);
            if stored {
                self.note_removed(self.geometry.slot_id(bucket, usize::from(block.slot)));
            }
        }
    }

    /// Whether this block's content is no longer wanted. Map blocks are always wanted.
    pub(in crate::tree) fn is_dead(&self, id: Address) -> bool {
        id.data().is_some_and(|id| !self.marks.live.get(id))
    }

    /// Makes a block in memory a candidate, or drops it when it is dead.
    fn gather(&mut self, round: &mut Round, block: Resident) {
        if self.is_dead(block.header.id) {
            self.pool.release(block.payload);
            return;
        }
        if let Some(access) = wanted_by(&round.wants, block.header.id) {
            round.found[access] = round.candidates.len() as u32;
        }
        let (header, held) = (block.header, Held::Pool(block.payload));
        round.candidates.push(Candidate { header, held, next: NONE });
    }

    /// Records that a block was removed from a stored bucket that is not rewritten now.
    fn note_removed(&mut self, slot: SlotId) {
        self.marks.removed.set(slot, true);
        self.changes.removed.push(slot);
    }
}

fn wanted_by(wants: &[(Address, u32)], id: Address) -> Option<usize> {
    match wants {
        [] => None,
        [(want, access)] => (*want == id).then_some(*access as usize),
        _ => {
            let at = wants.binary_search_by_key(&id, |want| want.0).ok()?;
            Some(wants[at].1 as usize)
        }
    }
}
