//! The engine's memory as bytes at rest.
//!
//! Sizes follow from public numbers only: the addressable blocks, the depth, the configuration,
//! and stash and backlog padded to a bound. All numbers are little-endian. Layout (docs/format.md
//! §"Engine state"): fixed fields, position map, present bits, removed bits, backlog, stash, PLB.

use super::backend::Backend;
use super::bitset::BitSet;
use super::bucket_cache::Resident;
use super::config::Recursion;
use super::frontend::TreeOram;
use super::geometry::{EMPTY, buckets_in};
use super::plb::PlbEntry;
use super::position_map::Counts;
use crate::{EngineError, Level, Result};
use oblivio_crypto::{TAG_BYTES, Tag};

/// Blocks to which the stash is padded at rest. More than this many after an eviction is less
/// likely than 2^-80 (docs/decisions/0003-eviction.md); it would show as twice the padding.
pub const STASH_BOUND: usize = 100;
/// Entries to which the backlog of group remaps is padded.
const BACKLOG_BOUND: usize = 512;
const VERSION: u32 = 1;

struct Writer(Vec<u8>);

impl Writer {
    fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    fn words(&mut self, words: &[u64]) {
        for &word in words {
            self.u64(word);
        }
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(EngineError::State("too short"))?;
        self.0 = rest;
        Ok(taken)
    }
    fn u64(&mut self) -> Result<u64> {
        Ok(super::geometry::read_u64(self.bytes(8)?, 0))
    }
    fn words(&mut self, bits: u64) -> Result<Vec<u64>> {
        (0..bits.div_ceil(64)).map(|_| self.u64()).collect()
    }
    fn tag(&mut self) -> Result<Tag> {
        let mut tag = Tag::default();
        tag.0.copy_from_slice(self.bytes(TAG_BYTES)?);
        Ok(tag)
    }
}

/// The least multiple of `bound` that holds `count`, at least `bound`.
fn padded(count: usize, bound: usize) -> usize {
    count.div_ceil(bound).max(1) * bound
}

impl TreeOram {
    /// Everything that is only in memory, once a flush is done; opened again with
    /// [`Self::restore`].
    ///
    /// # Errors
    /// `Invalid` for configurations that are never stored (several trees).
    pub fn checkpoint(&self) -> Result<Vec<u8>> {
        if self.trees.len() != 1 {
            return Err(EngineError::Invalid("several trees are for the lab only".into()));
        }
        let tree = &self.trees[0];
        let mut out = Writer(Vec::with_capacity(self.state_bytes()));
        out.u64(u64::from(VERSION));
        out.words(&[self.blocks, u64::from(tree.depth.0), self.accesses[0], self.turns[0]]);
        out.u64(self.requests);
        out.bytes(&tree.root_tag.0);
        out.u64(self.on_chip.len() as u64);
        out.bytes(&self.on_chip);
        let buckets = buckets_in(tree.depth) + 1;
        out.words(&tree.present.to_words(buckets));
        out.words(&tree.removed.to_words(buckets * self.config.blocks_per_bucket as u64));
        self.write_backlog(&mut out);
        write_stash(tree, &mut out);
        self.write_plb(&mut out);
        Ok(out.0)
    }

    fn state_bytes(&self) -> usize {
        let blocks = STASH_BOUND + self.plb.capacity() + 2;
        self.on_chip.len() + blocks * (self.config.block_bytes + 40) + (64 << 10)
    }

    fn write_backlog(&self, out: &mut Writer) {
        let slots = padded(self.pending.len(), BACKLOG_BOUND);
        out.u64(slots as u64);
        for (&id, counts) in &self.pending {
            out.words(&[id, counts.old, counts.new]);
        }
        for _ in self.pending.len()..slots {
            out.words(&[EMPTY, 0, 0]);
        }
    }

    fn write_plb(&self, out: &mut Writer) {
        let slots = if self.levels > 1 { self.plb.capacity() } else { 0 };
        out.u64(slots as u64);
        let mut written = 0;
        for entry in self.plb.entries() {
            out.words(&[entry.id, entry.count]);
            out.bytes(self.trees[0].pool.get(entry.payload));
            written += 1;
        }
        for _ in written..slots {
            out.words(&[EMPTY, 0]);
            out.0.resize(out.0.len() + self.config.block_bytes, 0);
        }
    }

    /// Takes up the state that [`Self::checkpoint`] gave; the engine must be new and made with
    /// the same configuration (memory for the cache may differ).
    ///
    /// # Errors
    /// `State` when the bytes are not such a state.
    pub fn restore(&mut self, state: &[u8]) -> Result<()> {
        if self.trees.len() != 1 {
            return Err(EngineError::Invalid("several trees are for the lab only".into()));
        }
        let mut input = Reader(state);
        if input.u64()? != u64::from(VERSION) {
            return Err(EngineError::State("unknown version"));
        }
        let blocks = input.u64()?;
        let depth = input.u64()?;
        if blocks < self.blocks || blocks > self.config.capacity || depth > 40 {
            return Err(EngineError::State("blocks or depth out of range"));
        }
        self.grow(blocks)?;
        if u64::from(self.trees[0].depth.0) > depth {
            return Err(EngineError::State("the tree is too shallow for its blocks"));
        }
        self.trees[0].depth = Level(depth as u32);
        (self.accesses[0], self.turns[0]) = (input.u64()?, input.u64()?);
        self.requests = input.u64()?;
        self.trees[0].root_tag = input.tag()?;
        if input.u64()? != self.on_chip.len() as u64 {
            return Err(EngineError::State("the position map has another size"));
        }
        let map = input.bytes(self.on_chip.len())?;
        self.on_chip.copy_from_slice(map);
        let buckets = buckets_in(Level(depth as u32)) + 1;
        let slots = buckets * self.config.blocks_per_bucket as u64;
        self.trees[0].present = BitSet::from_words(input.words(buckets)?);
        self.trees[0].removed = BitSet::from_words(input.words(slots)?);
        self.read_backlog(&mut input)?;
        read_stash(&mut self.trees[0], &mut input)?;
        self.read_plb(&mut input)?;
        if input.0.is_empty() { Ok(()) } else { Err(EngineError::State("too long")) }
    }

    fn read_backlog(&mut self, input: &mut Reader<'_>) -> Result<()> {
        for _ in 0..input.u64()? {
            let (id, old, new) = (input.u64()?, input.u64()?, input.u64()?);
            if id != EMPTY {
                self.pending.insert(id, Counts { old, new });
            }
        }
        Ok(())
    }

    fn read_plb(&mut self, input: &mut Reader<'_>) -> Result<()> {
        let slots = input.u64()?;
        let expected = match self.config.recursion {
            Recursion::Unified { .. } if self.levels > 1 => self.plb.capacity() as u64,
            _ => 0,
        };
        if slots != expected {
            return Err(EngineError::State("the PLB has another size"));
        }
        for _ in 0..slots {
            let (id, count) = (input.u64()?, input.u64()?);
            let content = input.bytes(self.config.block_bytes)?;
            if id != EMPTY {
                let payload = self.trees[0].pool.store(content);
                if self.plb.insert(PlbEntry::new(id, count, payload)).is_some() {
                    return Err(EngineError::State("a PLB set is too full"));
                }
            }
        }
        Ok(())
    }
}

fn write_stash(tree: &Backend, out: &mut Writer) {
    let slots = padded(tree.stash.len(), STASH_BOUND);
    out.u64(slots as u64);
    for block in &tree.stash {
        out.words(&[block.id, block.label]);
        out.bytes(&block.mac.0);
        out.bytes(tree.pool.get(block.payload));
    }
    let slot_bytes = 16 + TAG_BYTES + tree.geometry.block_bytes;
    for _ in tree.stash.len()..slots {
        out.u64(EMPTY);
        out.0.resize(out.0.len() + slot_bytes - 8, 0);
    }
}

fn read_stash(tree: &mut Backend, input: &mut Reader<'_>) -> Result<()> {
    for _ in 0..input.u64()? {
        let (id, label, mac) = (input.u64()?, input.u64()?, input.tag()?);
        let content = input.bytes(tree.geometry.block_bytes)?;
        if id != EMPTY {
            let payload = tree.pool.store(content);
            tree.stash.push(Resident { id, label, mac, payload });
        }
    }
    Ok(())
}
