//! Reads of blocks from anywhere on the disk: in ascending order, each once, neighbours joined.

use super::extents::{joined, read, total};
use super::ids::GenerationSlot;
use super::map_node::SealedAt;
use super::vault::{DamagedExtent, Vault, Wanted};
use crate::work::{Outcome, WorkPart};
use crate::{Extent, Result, Step};
use oblivio_crypto::Opener;

/// Blocks to read, and their bytes after the read.
pub(super) struct BlockReads {
    /// In order of offset.
    blocks: Vec<Wanted>,
    extents: Vec<Extent>,
    bytes: Vec<u8>,
    block_bytes: usize,
    opener: Opener,
    /// One per part that opens blocks; empty until the parts are handed out.
    outcomes: Vec<Outcome>,
    /// Which of the blocks did not open.
    damaged: Vec<bool>,
}

impl BlockReads {
    /// A read of these blocks into `bytes`, which it overwrites completely.
    pub fn new(
        vault: &Vault,
        wanted: impl Iterator<Item = (GenerationSlot, SealedAt)>,
        mut bytes: Vec<u8>,
    ) -> Self {
        let mut blocks: Vec<_> = wanted.map(|(slot, sealed)| vault.wanted(slot, sealed)).collect();
        blocks.sort_unstable_by_key(|block| block.place.index);
        blocks.dedup_by_key(|block| block.place.index);
        let block_bytes = vault.block_bytes;
        let extent =
            |block: &Wanted| Extent { offset: block.place.index, bytes: block_bytes as u64 };
        let extents = joined(blocks.iter().map(extent));
        bytes.resize(total(&extents), 0);
        let (opener, outcomes) = (vault.opener.clone(), Vec::new());
        let damaged = vec![false; blocks.len()];
        Self { blocks, extents, bytes, block_bytes, opener, outcomes, damaged }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The read.
    pub fn as_step(&mut self) -> Step<'_> {
        read(&self.extents, &mut self.bytes)
    }

    /// The work of opening the blocks after the read, in at most `count` parts. Empty if it was
    /// handed out before.
    pub fn parts(&mut self, count: usize) -> Vec<WorkPart<'_>> {
        if !self.outcomes.is_empty() || self.blocks.is_empty() {
            return Vec::new();
        }
        let each = self.blocks.len().div_ceil(count.max(1));
        self.outcomes.resize_with(self.blocks.len().div_ceil(each), Outcome::default);
        let blocks = self.blocks.chunks(each);
        let bytes = self.bytes.chunks_mut(each * self.block_bytes);
        let work = blocks.zip(bytes).zip(self.damaged.chunks_mut(each));
        let part = |(((blocks, bytes), damaged), outcome)| {
            let opens = Opens { opener: &self.opener, blocks, bytes, damaged };
            WorkPart::new(|| opens.run(), outcome)
        };
        work.zip(&mut self.outcomes).map(part).collect()
    }

    /// All the blocks. Opens those that are not yet open.
    pub fn opened(mut self) -> Result<OpenBlocks> {
        self.parts(1).into_iter().for_each(WorkPart::run);
        Outcome::of_all(self.outcomes)?;
        let offsets = self.blocks.iter().map(|block| block.place.index).collect();
        let Self { bytes, block_bytes, damaged, .. } = self;
        Ok(OpenBlocks { offsets, bytes, block_bytes, damaged })
    }
}

/// The places of these blocks, in ascending order, neighbours joined.
pub(super) fn places(vault: &Vault, wanted: Vec<(GenerationSlot, SealedAt)>) -> Vec<Extent> {
    let mut slots: Vec<_> = wanted.iter().map(|&(slot, _)| vault.layout.slot(slot)).collect();
    slots.sort_unstable();
    slots.dedup();
    joined(slots)
}

/// A part of the blocks, to open in place.
struct Opens<'a> {
    opener: &'a Opener,
    blocks: &'a [Wanted],
    bytes: &'a mut [u8],
    damaged: &'a mut [bool],
}

impl Opens<'_> {
    fn run(self) -> Result<()> {
        let mut opening = self.opener.begin();
        let block_bytes = self.bytes.len() / self.blocks.len();
        let bytes = self.bytes.chunks_mut(block_bytes);
        for ((block, data), damaged) in self.blocks.iter().zip(bytes).zip(self.damaged) {
            let Wanted { place, index, sealed } = block;
            let opened = opening.open(&sealed.mark, *index, place, &sealed.tag, data);
            if opened.is_err() {
                // What does not open gives nothing.
                data.fill(0);
                *damaged = true;
            }
        }
        Ok(())
    }
}

/// Blocks after reading and opening.
#[derive(Default)]
pub(super) struct OpenBlocks {
    /// Ascending.
    offsets: Vec<u64>,
    pub bytes: Vec<u8>,
    block_bytes: usize,
    /// Which of them did not open.
    damaged: Vec<bool>,
}

impl OpenBlocks {
    /// The byte range of the block at this offset of the disk; none if it did not open.
    pub fn find(&self, offset: u64) -> Option<std::ops::Range<usize>> {
        let at = self.offsets.binary_search(&offset).ok().filter(|at| !self.damaged[*at])?;
        let from = at * self.block_bytes;
        Some(from..from + self.block_bytes)
    }

    /// The content of the block at this offset of the disk; none if it did not open.
    pub fn content(&self, offset: u64) -> Option<&[u8]> {
        self.bytes.get(self.find(offset)?)
    }

    /// The places of those that did not open.
    pub fn damage(&self) -> impl Iterator<Item = DamagedExtent> + use<'_> {
        let places = self.offsets.iter().zip(&self.damaged).filter(|(_, damaged)| **damaged);
        places.map(|(&offset, _)| {
            let extent = Extent { offset, bytes: self.block_bytes as u64 };
            (extent, "it is not the block written last")
        })
    }
}
