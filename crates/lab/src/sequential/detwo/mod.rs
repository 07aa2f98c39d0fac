//! DetWoORAM (Roche, Aviv, Choi and Mayberry, "Deterministic, Stash-Free Write-Only ORAM", CCS
//! 2017): the rival.
//!
//! N blocks have their places in the main area; behind it is a holding area of 3 N. Write number i
//! goes to place i modulo 3 N of the holding area, whatever it writes. In turn, round and round,
//! each place of the main area is rewritten with its block's current content. So no block is still
//! needed in the holding area when its place there is rewritten: the storage sees two pointers
//! move. That needs one write of the main area for every third write, and the authors' own code
//! (github.com/dsroche/detworam) does so. The paper's typical setting, with which SqORAM is
//! compared, is one for every write: two block writes for each. Both are here.
//!
//! The map of block places stands in memory, four bytes a block ([`map`]), or on the disk, as
//! published ([`nodes`]): ours is measured beside the one that keeps its map the same way.
//!
//! As published, a read reads the block in the main area first and then, unless it is the newest
//! version, the one in the holding area. Each write reads the main area, for a bit that
//! distinguishes the two ([`Reads::Compared`]). Both reads can be saved, because the number of
//! writes shows what was renewed ([`Reads::Known`]): this is measured too, and as the faster rival.
//!
//! It has one more speed-up here: consecutive writes are stored together. The storage may see that:
//! how many go together does not depend on what they write.
//!
//! **A flush** writes the deferred blocks and syncs: two blocks for each one written, where ours
//! appends 64 KiB to its log. It does not survive **a crash**. Recovery would have to find the map,
//! or its part outside the disk, from addresses and numbers beside the blocks, as ours finds its
//! access times: some twelve bytes more in a seal of 40, and nothing for a flush. But a block of
//! the main area torn during its renewal is lost unless it is also in the holding area: the main
//! area would have to move by a little with each round, as our last level does. None of this would
//! take much time, so the omission changes no comparison. It also takes an old block in its old
//! place for a new one, which ours notices; that too is in its favour.

mod areas;
mod clock;
mod map;
mod nodes;
#[cfg(test)]
mod tests;

use super::waiting::Waiting;
use areas::TwoAreas;
use map::Memory;
use nodes::Nodes;
use oblivio_store::Store;
use oblivio_volume::Result;
use std::sync::Arc;

pub use areas::{Areas, Reads};
pub use nodes::Shape;

const OBJECT: &str = "blocks";

/// The disk with its map in memory.
pub type DetWo = Waiting<TwoAreas<Memory>>;
/// The disk with its map on the disk.
pub type DetWoMap = Waiting<TwoAreas<Nodes>>;

impl DetWo {
    /// An empty disk.
    ///
    /// # Errors
    /// `Invalid` if the holding area or the map's entries are too small.
    pub fn create(store: Arc<dyn Store>, areas: Areas) -> Result<Self> {
        let areas = Areas { reads: Reads::Known, ..areas };
        let map = Memory::new(areas.blocks);
        Ok(Waiting::new(TwoAreas::create(store, OBJECT, areas, map)?))
    }
}

impl DetWoMap {
    /// An empty disk.
    ///
    /// # Errors
    /// As [`DetWo::create`].
    pub fn create(store: Arc<dyn Store>, areas: Areas, shape: Shape) -> Result<Self> {
        let map = Nodes::create(store.clone(), areas, shape)?;
        Ok(Waiting::new(TwoAreas::create(store, OBJECT, areas, map)?))
    }
}
