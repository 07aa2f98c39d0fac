//! Reading blocks from anywhere on the disk: in ascending order, each once, neighbours together.

use super::ids::Slot;
use super::layout::Extent;
use super::map_node::SealedAt;
use super::step::{joined, total};
use super::vault::Vault;
use crate::Result;
use std::collections::BTreeMap;

/// Blocks to read, and their bytes once they are read.
#[derive(Default)]
pub(super) struct BlockReads {
    /// By offset: their slots, how they are sealed, and the order among them.
    blocks: BTreeMap<u64, (Slot, SealedAt, usize)>,
    extents: Vec<Extent>,
    bytes: Vec<u8>,
    block_bytes: usize,
}

impl BlockReads {
    /// The read of these blocks.
    pub fn new(vault: &Vault, wanted: impl Iterator<Item = (Slot, SealedAt)>) -> Self {
        let place = |(slot, sealed)| (vault.layout.slot(slot).offset, (slot, sealed, 0));
        let mut blocks: BTreeMap<_, _> = wanted.map(place).collect();
        for (order, (_, _, at)) in blocks.values_mut().enumerate() {
            *at = order;
        }
        let extents = joined(blocks.values().map(|(slot, _, _)| vault.layout.slot(*slot)));
        let bytes = vec![0; total(&extents)];
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
        for (slot, sealed, at) in self.blocks.values() {
            let from = at * self.block_bytes;
            vault.open_block(*slot, *sealed, &mut self.bytes[from..from + self.block_bytes])?;
        }
        Ok(())
    }

    /// The content of one of them.
    pub fn content(&self, vault: &Vault, slot: Slot) -> Option<&[u8]> {
        let (_, _, at) = self.blocks.get(&vault.layout.slot(slot).offset)?;
        self.bytes.get(at * self.block_bytes..(at + 1) * self.block_bytes)
    }
}
