//! The first half of a round: it checks and opens the read buckets, and gathers the blocks that may
//! move, the wanted ones among them.

use super::{Backend, Candidate, Held, Round, resident};
use crate::tree::bitset::SlotId;
use crate::tree::block_pool::BlockPool;
use crate::tree::bucket_cache::Resident;
use crate::tree::doubt::{BucketProof, CurrentLabels};
use crate::tree::geometry::SlotHeader;
use crate::tree::paths::NONE;
use crate::{Address, BlockId, BucketId, EngineError, Label, Result};
use oblivio_crypto::{Tag, tag_of};
use std::ops::Range;

impl Round {
    /// Whether a block is the newest version of itself, and the first copy of it in this round.
    /// Copies come from old buckets; all that have a block's current label are on its path.
    fn is_current(
        &self,
        header: &SlotHeader,
        met_damage: bool,
        labels: Option<&CurrentLabels<'_>>,
    ) -> bool {
        match wanted_by(&self.wants, header.id) {
            Some((access, label)) => label == header.label && self.found[access] == NONE,
            None => !met_damage || !labels.is_some_and(|labels| labels.refute(header)),
        }
    }

    /// Adds a block that was lost, in the place of what stands for it.
    fn put_back(&mut self, header: SlotHeader, content: &[u8], pool: &mut BlockPool) {
        let there = self.candidates.iter_mut().find(|it| it.header.id == header.id);
        match there {
            Some(there) if there.header.lost => {
                there.header.lost = false;
                match there.held {
                    Held::Read(at) => {
                        self.read_buf[at..at + content.len()].copy_from_slice(content);
                    }
                    Held::Pool(payload) => pool.get_mut(payload).copy_from_slice(content),
                }
            }
            Some(_) => {}
            None => {
                let held = Held::Pool(pool.store(content));
                self.candidates.push(Candidate::new(header, held));
            }
        }
    }
}

impl Backend {
    /// Checks and opens the read buckets and gathers their blocks. What is damaged gives nothing.
    /// `labels` are those that blocks must have, if anybody knows. With them, the blocks of `back`
    /// are put back.
    ///
    /// # Errors
    /// In a strict tree, `Tampered` names the first bucket that differs from the last one written.
    pub fn absorb(
        &mut self,
        labels: Option<&CurrentLabels<'_>>,
        back: &[(BlockId, Vec<u8>)],
    ) -> Result<()> {
        let mut round = std::mem::take(&mut self.round);
        let result = self.absorb_round(&mut round, labels);
        for (id, content) in back.iter().filter(|(id, _)| self.marks.live.get(*id)) {
            if let Some(header) = labels.and_then(|labels| labels.header(*id)) {
                round.put_back(header, content, &mut self.pool);
            }
        }
        self.round = round;
        result
    }

    fn absorb_round(
        &mut self,
        round: &mut Round,
        labels: Option<&CurrentLabels<'_>>,
    ) -> Result<()> {
        round.candidates.clear();
        let mut stash = std::mem::take(&mut self.stash);
        for block in stash.drain(..) {
            self.gather(round, block, labels, true);
        }
        self.stash = stash;
        round.node_tags.clear();
        round.node_tags.resize(round.union.nodes().len(), [Tag::default(); 2]);
        let (mut reads, mut at) = (0, 0);
        for index in 0..round.union.nodes().len() {
            if round.read_nodes.get(reads) == Some(&(index as u32)) {
                let len = round.reads[reads].bytes as usize;
                self.absorb_read(round, index, at..at + len, labels)?;
                (reads, at) = (reads + 1, at + len);
            } else if self.cache.holds(round.union.nodes()[index].bucket) {
                self.absorb_cached(round, index, labels);
            }
        }
        Ok(())
    }

    /// Absorbs a bucket from this part of the read.
    fn absorb_read(
        &mut self,
        round: &mut Round,
        index: usize,
        part: Range<usize>,
        labels: Option<&CurrentLabels<'_>>,
    ) -> Result<()> {
        let node = round.union.nodes()[index];
        let expected = match node.parent {
            NONE => self.root_tag,
            parent => round.node_tags[parent as usize][node.bucket.side()],
        };
        let slots = self.stored_slots(node.bucket);
        let bytes = &mut round.read_buf[part.clone()];
        self.meters.tag_tree_bytes += bytes.len() as u64;
        let proof = self.prove(node.bucket, expected, bytes)?;
        if proof == BucketProof::Newest {
            // Those of any other bucket prove nothing about its children.
            round.node_tags[index] = self.geometry.child_tags(bytes);
        }
        let cached = self.cache.holds(node.bucket);
        let of_top = self.top.holds(node.bucket, cached);
        if cached {
            let meta = self.cache.meta_mut(node.bucket);
            meta.loaded = true;
            meta.child_tags = round.node_tags[index];
            meta.dirty = node.evict;
        }
        if !proof.is_useful(labels) {
            return Ok(());
        }
        for slot in 0..slots {
            let header = self.geometry.slot(&round.read_buf[part.clone()], slot);
            let slot_id = self.geometry.slot_id(node.bucket, slot);
            let removed = self.marks.removed.get(slot_id) && proof != BucketProof::Old;
            if header.id == Address::NONE || removed {
                continue;
            }
            let payload = part.start + self.geometry.payload_at(slots, slot);
            let wanted = wanted_by(&round.wants, header.id);
            if node.evict || wanted.is_some() {
                if !round.is_current(&header, self.marks.met_damage, labels) {
                    continue;
                }
                if !node.evict {
                    self.note_removed(slot_id);
                }
                if self.is_dead(header.id) {
                    continue;
                }
                if let Some((access, _)) = wanted {
                    round.found[access] = round.candidates.len() as u32;
                }
                let held = Held::Read(payload);
                let home = self.top.home(of_top, slot_id);
                round.candidates.push(Candidate { of_top, home, ..Candidate::new(header, held) });
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

    /// Opens a bucket in place and says how far it is proved. Damage is noted.
    ///
    /// # Errors
    /// In a strict tree, `Tampered` for anything but the newest version.
    pub(in crate::tree) fn prove(
        &mut self,
        bucket: BucketId,
        expected: Tag,
        bytes: &mut [u8],
    ) -> Result<BucketProof> {
        let newest = !self.geometry.tag_tree || tag_of(bytes) == Some(expected);
        let opens = self.sealer.open(&self.place(bucket), bytes).is_ok();
        let proof = match (newest, opens) {
            (true, true) => BucketProof::Newest,
            (false, true) if expected == Tag::default() => BucketProof::Own,
            (false, true) => BucketProof::Old,
            (_, false) => BucketProof::None,
        };
        if let Some(reason) = proof.why_not().filter(|_| self.geometry.is_strict()) {
            return Err(EngineError::Tampered { bucket, reason });
        }
        self.marks.met_damage |= proof != BucketProof::Newest;
        self.damaged_now |= proof.why_not().is_some();
        Ok(proof)
    }

    fn absorb_cached(
        &mut self,
        round: &mut Round,
        index: usize,
        labels: Option<&CurrentLabels<'_>>,
    ) {
        let node = round.union.nodes()[index];
        let bucket = node.bucket;
        let of_top = self.top.holds(bucket, true);
        let meta = self.cache.meta_mut(bucket);
        meta.loaded = true;
        let was_dirty = meta.dirty;
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
            let slot_id = self.geometry.slot_id(bucket, usize::from(block.slot));
            // Its slot, as long as the stored version is current.
            let home = if was_dirty { block.home } else { self.top.home(of_top, slot_id) };
            self.gather(round, Resident { home, ..block }, labels, of_top);
            if stored {
                self.note_removed(slot_id);
            }
        }
    }

    /// Whether this block's content is no longer wanted. Map blocks are always wanted.
    pub(in crate::tree) fn is_dead(&self, id: Address) -> bool {
        id.data().is_some_and(|id| !self.marks.live.get(id))
    }

    /// Makes a block in memory a candidate, or drops it when it is dead or an old copy.
    fn gather(
        &mut self,
        round: &mut Round,
        block: Resident,
        labels: Option<&CurrentLabels<'_>>,
        of_top: bool,
    ) {
        let current = round.is_current(&block.header, self.marks.met_damage, labels);
        if self.is_dead(block.header.id) || !current {
            self.pool.release(block.payload);
            return;
        }
        if let Some((access, _)) = wanted_by(&round.wants, block.header.id) {
            round.found[access] = round.candidates.len() as u32;
        }
        let (header, held) = (block.header, Held::Pool(block.payload));
        let home = block.home;
        round.candidates.push(Candidate { of_top, home, ..Candidate::new(header, held) });
    }

    /// Records that a block was removed from a stored bucket that is not rewritten now.
    fn note_removed(&mut self, slot: SlotId) {
        self.marks.removed.set(slot, true);
        self.changes.removed.push(slot);
    }
}

/// The access that wants a block, and the label at which it does.
fn wanted_by(wants: &[(Address, Label, u32)], id: Address) -> Option<(usize, Label)> {
    let (_, label, access) = match wants {
        [] => return None,
        [one] => one,
        _ => &wants[wants.binary_search_by_key(&id, |want| want.0).ok()?],
    };
    (wants.len() > 1 || wants[0].0 == id).then_some((*access as usize, *label))
}
