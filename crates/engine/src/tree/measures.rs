//! The costs and the memory of an engine so far.

use super::frontend::TreeOram;
use super::meters::Meters;

impl TreeOram {
    /// Memory of the cached buckets now, in bytes.
    pub fn cache_bytes(&self) -> usize {
        let tree = &self.tree;
        tree.cache.known_bytes() + tree.cache.held() * self.config.block_bytes
    }

    /// Blocks in the stash now.
    pub fn stash_blocks(&self) -> usize {
        self.tree.stash.len()
    }

    /// The counters so far.
    pub fn meters(&self) -> Meters {
        Meters { pmmac_bytes: self.pmmac.bytes, ..self.tree.meters }
    }

    /// Bytes of memory that the engine holds.
    pub fn memory_bytes(&self) -> usize {
        self.on_chip.len() + self.tree.memory_bytes()
    }
}
