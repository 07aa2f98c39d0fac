//! The engine's memory, serialized.
//!
//! Sizes follow from public numbers only: the addressable blocks, the depth, the configuration, and
//! stash and backlog padded to a bound. All numbers are little-endian. Layout (docs/format.md
//! §"Engine state"): fixed fields, position map, liveness bits, present bits, removed bits,
//! backlog, stash, PLB.

use super::backend::Backend;
use super::bitset::BitSet;
use super::bounds::{EMPTY, STASH_BOUND, padded};
use super::bucket_cache::Resident;
use super::frontend::TreeOram;
use super::geometry::{SlotHeader, buckets_in};
use super::plb::PlbEntry;
use super::position_map::CountChange;
use super::short_leaves::{Missing, PLANES};
use super::top_index;
use crate::wire::{Reader, Writer};
use crate::{Address, BucketId, EngineError, Label, Result};
use oblivio_crypto::TAG_BYTES;

/// The padding of the backlog of group remaps, in entries.
const BACKLOG_BOUND: usize = 512;
/// For trees with windows.
pub(super) const WINDOW_VERSION: u64 = 4;
/// For trees with leaf steps.
pub(super) const STEPPED_VERSION: u64 = 3;
/// For all other trees.
pub(super) const VERSION: u64 = 2;
/// Still readable: states without size class and liveness.
pub(super) const FIRST_VERSION: u64 = 1;

/// Set in the version while the top of the tree is in a log.
pub(super) const LOGGED: u64 = 1 << 33;
/// Set in the version once damage was met: who does not know of it would take a lost block for one
/// that was never written.
pub(super) const MET_DAMAGE: u64 = 1 << 32;

impl TreeOram {
    /// Appends everything that is only in memory, after a flush. [`Self::restore`] reads it.
    pub fn checkpoint(&self, out: &mut Vec<u8>) {
        let tree = &self.tree;
        out.reserve(self.state_bytes());
        let mut out = Writer(out);
        self.write_scalars(&mut out);
        out.u64(self.on_chip.len() as u64);
        out.bytes(&self.on_chip);
        out.words(&tree.marks.live.to_words(self.size.blocks));
        let buckets = buckets_in(tree.leaves.depth) + 1;
        out.words(&tree.marks.present.to_words(buckets));
        out.words(&tree.marks.removed.to_words(buckets * self.config.blocks_per_bucket as u64));
        if self.config.leaf_steps {
            out.words(&tree.marks.missing.to_words(buckets));
        }
        self.write_residents(&mut out);
        top_index::write(&self.tree, &mut out);
    }

    /// The small state that is only in memory: the backlog, the stash and the PLB, each padded.
    pub(super) fn write_residents(&self, out: &mut Writer<'_>) {
        self.write_backlog(out);
        write_stash(&self.tree, out);
        self.write_plb(out);
    }

    /// Replaces backlog, stash and PLB with those of [`Self::write_residents`].
    pub(super) fn read_residents(&mut self, input: &mut Reader<'_>) -> Result<()> {
        self.pending.clear();
        for entry in self.plb.clear() {
            self.tree.pool.release(entry.payload);
        }
        for block in std::mem::take(&mut self.tree.stash) {
            self.tree.pool.release(block.payload);
        }
        self.read_backlog(input)?;
        read_stash(&mut self.tree, input)?;
        self.read_plb(input)
    }

    /// The approximate size of a checkpoint in bytes.
    pub fn state_bytes(&self) -> usize {
        let blocks = STASH_BOUND + self.plb.capacity() + 2;
        let slots =
            buckets_in(self.tree.leaves.depth) as usize * (self.config.blocks_per_bucket + 3);
        let bits = slots / 8 + self.size.blocks as usize / 8;
        self.on_chip.len() + bits + blocks * (self.config.block_bytes + 40) + (64 << 10)
    }

    pub(super) fn write_backlog(&self, out: &mut Writer<'_>) {
        let slots = padded(self.pending.len(), BACKLOG_BOUND);
        out.u64(slots as u64);
        for (&id, counts) in &self.pending {
            out.words(&[id.0, counts.old, counts.new]);
        }
        for _ in self.pending.len()..slots {
            out.words(&[EMPTY, 0, 0]);
        }
    }

    fn plb_slots(&self) -> usize {
        if self.levels > 1 { self.plb.capacity() } else { 0 }
    }

    fn write_plb(&self, out: &mut Writer<'_>) {
        let slots = self.plb_slots();
        out.u64(slots as u64);
        let mut written = 0;
        for entry in self.plb.entries() {
            out.words(&[entry.id.0, entry.count]);
            out.bytes(self.tree.pool.get(entry.payload));
            written += 1;
        }
        for _ in written..slots {
            out.words(&[EMPTY, 0]);
            out.zeros(self.config.block_bytes);
        }
    }

    /// Loads the state of [`Self::checkpoint`]. The engine must be new and have the same
    /// configuration; only the cache memory may differ.
    ///
    /// # Errors
    /// `State` when the bytes are not such a state.
    pub fn restore(&mut self, state: &[u8]) -> Result<()> {
        let mut input = Reader(state);
        let version = self.read_scalars(&mut input)?;
        if input.u64()? != self.on_chip.len() as u64 {
            return Err(EngineError::State("the position map has another size"));
        }
        let map = input.bytes(self.on_chip.len())?;
        self.on_chip.copy_from_slice(map);
        if version == FIRST_VERSION {
            self.assume_live(0);
        } else {
            self.tree.marks.live = BitSet::from_words(input.words(self.size.blocks)?);
            self.size.live = self.tree.marks.live.count();
        }
        let buckets = buckets_in(self.tree.leaves.depth) + 1;
        let slots = buckets * self.config.blocks_per_bucket as u64;
        self.tree.marks.present = BitSet::from_words(input.words(buckets)?);
        self.tree.marks.removed = BitSet::from_words(input.words(slots)?);
        if self.config.leaf_steps {
            let bits = buckets.div_ceil(64) * 64 * PLANES as u64;
            self.tree.marks.missing = Missing::from_words(input.words(bits)?);
            self.check_missing(buckets)?;
        }
        self.read_residents(&mut input)?;
        if self.tree.top.found.is_some() {
            self.tree.top.found = Some(top_index::read(&self.tree, &mut input)?);
        }
        if input.0.is_empty() { Ok(()) } else { Err(EngineError::State("too long")) }
    }

    /// Checks that every bucket has a slot.
    fn check_missing(&self, buckets: u64) -> Result<()> {
        let full = self.config.blocks_per_bucket;
        match (0..buckets).all(|bucket| self.tree.marks.missing.get(BucketId(bucket)) < full) {
            true => Ok(()),
            false => Err(EngineError::State("a bucket has no slots")),
        }
    }

    pub(super) fn read_backlog(&mut self, input: &mut Reader<'_>) -> Result<()> {
        for _ in 0..input.u64()? {
            let (id, old, new) = (input.u64()?, input.u64()?, input.u64()?);
            if id != EMPTY {
                self.pending.insert(Address(id), CountChange { old, new });
            }
        }
        Ok(())
    }

    fn read_plb(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let slots = input.u64()?;
        if slots != self.plb_slots() as u64 {
            return Err(EngineError::State("the PLB has another size"));
        }
        for _ in 0..slots {
            let (id, count) = (input.u64()?, input.u64()?);
            let content = input.bytes(self.config.block_bytes)?;
            if id != EMPTY {
                let payload = self.tree.pool.store(content);
                if self.plb.insert(PlbEntry::new(Address(id), count, payload)).is_some() {
                    return Err(EngineError::State("a PLB set is too full"));
                }
            }
        }
        Ok(())
    }
}

fn write_stash(tree: &Backend, out: &mut Writer<'_>) {
    let slots = padded(tree.stash.len(), STASH_BOUND);
    out.u64(slots as u64);
    for block in &tree.stash {
        out.words(&[block.header.stored_id(), block.header.label.0]);
        out.bytes(&block.header.mac.0);
        out.bytes(tree.pool.get(block.payload));
    }
    let slot_bytes = 16 + TAG_BYTES + tree.geometry.block_bytes;
    for _ in tree.stash.len()..slots {
        out.u64(EMPTY);
        out.zeros(slot_bytes - 8);
    }
}

fn read_stash(tree: &mut Backend, input: &mut Reader<'_>) -> Result<()> {
    for _ in 0..input.u64()? {
        let (id, label, mac) = (input.u64()?, Label(input.u64()?), input.tag()?);
        let content = input.bytes(tree.geometry.block_bytes)?;
        if id != EMPTY {
            let payload = tree.pool.store(content);
            let header = SlotHeader::of(id, label, mac);
            tree.stash.push(Resident { header, payload, slot: 0, home: 0 });
        }
    }
    Ok(())
}
