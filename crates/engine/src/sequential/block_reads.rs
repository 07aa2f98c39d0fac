//! Reading blocks from anywhere on the disk: in ascending order, each once, neighbours together.

use super::ids::Slot;
use super::layout::Extent;
use super::map_node::SealedAt;
use super::step::{joined, total};
use super::vault::Vault;
use crate::Result;

/// A block to read.
#[derive(Clone, Copy)]
struct Wanted {
    offset: u64,
    slot: Slot,
    sealed: SealedAt,
}

/// Blocks to read, and their bytes once they are read.
#[derive(Default)]
pub(super) struct BlockReads {
    /// By offset.
    blocks: Vec<Wanted>,
    extents: Vec<Extent>,
    bytes: Vec<u8>,
    block_bytes: usize,
}

impl BlockReads {
    /// The read of these blocks.
    pub fn new(vault: &mut Vault, wanted: impl Iterator<Item = (Slot, SealedAt)>) -> Self {
        let layout = &vault.layout;
        let place = |(slot, sealed)| Wanted { offset: layout.slot(slot).offset, slot, sealed };
        let mut blocks: Vec<_> = wanted.map(place).collect();
        blocks.sort_unstable_by_key(|block| block.offset);
        blocks.dedup_by_key(|block| block.offset);
        let extents = joined(blocks.iter().map(|block| layout.slot(block.slot)));
        // What was in the buffer before is read over.
        let mut bytes = std::mem::take(&mut vault.spare);
        bytes.resize(total(&extents), 0);
        let block_bytes = bytes.len() / blocks.len().max(1);
        Self { blocks, extents, bytes, block_bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// What is to be read, and where to.
    pub fn parts(&mut self) -> (&[Extent], &mut [u8]) {
        (&self.extents, &mut self.bytes)
    }

    /// Opens all of them, once they are read.
    pub fn open(&mut self, vault: &mut Vault) -> Result<()> {
        for (block, bytes) in self.blocks.iter().zip(self.bytes.chunks_mut(self.block_bytes)) {
            vault.open_block(block.slot, block.sealed, bytes)?;
        }
        Ok(())
    }

    /// The content of one of them.
    pub fn content(&self, vault: &Vault, slot: Slot) -> Option<&[u8]> {
        let offset = vault.layout.slot(slot).offset;
        let at = self.blocks.binary_search_by_key(&offset, |block| block.offset).ok()?;
        self.bytes.get(at * self.block_bytes..(at + 1) * self.block_bytes)
    }

    /// Leaves the buffer to the next one.
    pub fn end(self, vault: &mut Vault) {
        vault.spare = self.bytes;
    }
}
