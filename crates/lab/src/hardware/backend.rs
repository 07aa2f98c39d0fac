//! The back end of the model: paths, the stash and its eviction (Freecursive section 3.1).
//!
//! Everything happens in the order of the hardware, so that the same block lies in the same slot.
//! While bucket k of a path is read, its blocks enter the lowest free slots of the stash, and then
//! the k-th part of the stash is looked through. Each block that is met goes at once to the deepest
//! bucket of the path that has room. The block that is wanted comes last, with its new leaf.

use super::memory::Memory;
use super::secrets::Pads;
use super::shape::{Block, EMPTY, LINE, SLOTS, Shape, Tag};

/// A block outside of the tree.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Its address, as the hardware stores it.
    pub address: u32,
    /// Its leaf.
    pub leaf: u32,
    /// Its MAC; zeros without.
    pub tag: Tag,
    /// Its content.
    pub content: Block,
}

/// Why the port ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A block is not what was written at its count.
    Tampered,
    /// No slot of the stash is free.
    StashFull,
}

/// Paths and the stash.
pub struct Backend {
    shape: Shape,
    pads: Pads,
    /// The memory.
    pub memory: Memory,
    stash: Vec<Option<Held>>,
    /// The next bucket's seed (section 6.4). A bucket with seed 0 was never written.
    seed: u64,
    /// The path in work.
    leaf: u32,
    /// Slots of the stash by the level that their blocks go to.
    placed: Vec<Vec<usize>>,
    /// Slots that were looked at since the path began.
    seen: Vec<bool>,
    wanted: Option<usize>,
    /// Paths read and written.
    pub paths: u64,
    /// The most blocks that a path left in the stash.
    pub stash_peak: usize,
}

impl Backend {
    /// An empty tree.
    pub fn new(shape: Shape, pads: Pads) -> Self {
        Self {
            shape,
            pads,
            memory: Memory::default(),
            stash: vec![None; shape.stash],
            seed: 1,
            leaf: 0,
            placed: Vec::new(),
            seen: Vec::new(),
            wanted: None,
            paths: 0,
            stash_peak: 0,
        }
    }

    /// Reads a path. The wanted block, if it is there.
    ///
    /// # Errors
    /// `StashFull`, once the whole path is read.
    pub fn read_path(&mut self, leaf: u32, address: u32) -> Result<Option<Held>, Fault> {
        let shape = self.shape;
        (self.leaf, self.wanted) = (leaf, None);
        self.placed = vec![Vec::new(); shape.depth as usize + 1];
        self.seen = vec![false; shape.stash];
        let mut fits = true;
        // The circuit reads pairs of slots, so the part after a bucket is a number of pairs.
        let part = 2 * (shape.stash / 2).div_ceil(shape.depth as usize + 1);
        for (level, bucket) in shape.path(leaf).enumerate() {
            for held in self.open(bucket) {
                match self.enter(held) {
                    Ok(slot) => self.meet(slot, address),
                    Err(_) => fits = false,
                }
            }
            for slot in level * part..((level + 1) * part).min(shape.stash) {
                if self.stash[slot].is_some() && !self.seen[slot] {
                    self.meet(slot, address);
                }
            }
        }
        if fits { Ok(self.wanted.and_then(|slot| self.stash[slot])) } else { Err(Fault::StashFull) }
    }

    /// The blocks of a bucket.
    fn open(&mut self, bucket: u64) -> Vec<Held> {
        let mut bytes = self.memory.read(&self.shape, bucket);
        let seed = number(&bytes);
        if seed == 0 {
            return Vec::new();
        }
        self.pads.apply(seed, &mut bytes);
        (0..SLOTS).filter_map(|slot| self.block_of(&bytes, slot)).collect()
    }

    fn block_of(&self, bytes: &[u8], slot: usize) -> Option<Held> {
        let header = number(&bytes[16 + 8 * slot..]);
        let address = header as u32;
        if address == EMPTY {
            return None;
        }
        let leaf = (header >> 32) as u32 & ((1 << self.shape.depth) - 1);
        let tag = if self.shape.macs { &bytes[LINE + 16 * slot..][..16] } else { &[0; 16][..] };
        let content = &bytes[self.first_block() + LINE * slot..][..LINE];
        let (tag, content) = (tag.try_into().expect("16"), content.try_into().expect("64"));
        Some(Held { address, leaf, tag, content })
    }

    fn first_block(&self) -> usize {
        (self.shape.bucket_lines() - SLOTS) * LINE
    }

    /// Puts a block into the lowest free slot.
    fn enter(&mut self, held: Held) -> Result<usize, Fault> {
        let slot = self.stash.iter().position(Option::is_none).ok_or(Fault::StashFull)?;
        self.stash[slot] = Some(held);
        Ok(slot)
    }

    /// Finds a place for the block in a slot, unless it is the first with the wanted address.
    fn meet(&mut self, slot: usize, wanted: u32) {
        self.seen[slot] = true;
        let Some(held) = self.stash[slot] else { return };
        if held.address == wanted && self.wanted.is_none() {
            self.wanted = Some(slot);
        } else {
            self.place(slot, held.leaf);
        }
    }

    /// To the deepest bucket that has room; if none has, the block stays.
    fn place(&mut self, slot: usize, leaf: u32) {
        let deepest = self.shape.common(leaf, self.leaf) as usize;
        let room = self.placed[..=deepest].iter_mut().rev().find(|bucket| bucket.len() < SLOTS);
        if let Some(bucket) = room {
            bucket.push(slot);
        }
    }

    /// Takes the wanted block out (read-remove, section 4.2.2).
    pub fn remove(&mut self) {
        if let Some(slot) = self.wanted.take() {
            self.stash[slot] = None;
        }
    }

    /// Puts the wanted block back as it is now, or adds it.
    ///
    /// # Errors
    /// `StashFull`.
    pub fn put_back(&mut self, held: Held) -> Result<(), Fault> {
        let slot = match self.wanted {
            Some(slot) => slot,
            None => self.enter(held)?,
        };
        self.stash[slot] = Some(held);
        self.place(slot, held.leaf);
        Ok(())
    }

    /// Adds a block without a path (append, section 4.2.2).
    ///
    /// # Errors
    /// `StashFull`.
    pub fn append(&mut self, held: Held) -> Result<(), Fault> {
        self.enter(held).map(drop)
    }

    /// Blocks in the stash.
    pub fn held(&self) -> usize {
        self.stash.iter().flatten().count()
    }

    /// Writes the path, each bucket under a new seed.
    pub fn write_path(&mut self) {
        for (level, bucket) in self.shape.path(self.leaf).enumerate() {
            let bytes = self.seal(level);
            self.memory.write(bucket, bytes);
        }
        self.paths += 1;
        self.stash_peak = self.stash_peak.max(self.held());
    }

    fn seal(&mut self, level: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.shape.bucket_lines() * LINE];
        bytes[..8].copy_from_slice(&self.seed.to_le_bytes());
        for slot in 0..SLOTS {
            let from = self.placed[level].get(slot);
            let held = from.and_then(|&from| self.stash[from].take());
            let header = held
                .map_or(u64::from(EMPTY), |it| u64::from(it.leaf) << 32 | u64::from(it.address));
            bytes[16 + 8 * slot..][..8].copy_from_slice(&header.to_le_bytes());
            let Some(held) = held else { continue };
            if self.shape.macs {
                bytes[LINE + 16 * slot..][..16].copy_from_slice(&held.tag);
            }
            let at = self.first_block() + LINE * slot;
            bytes[at..at + LINE].copy_from_slice(&held.content);
        }
        self.pads.apply(self.seed, &mut bytes);
        self.seed += 1;
        bytes
    }
}

/// The first 8 bytes as a number.
fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes"))
}
