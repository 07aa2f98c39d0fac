//! What a pyramid reports of itself.

use crate::engine::VolumeInfo;
use oblivio_engine::pyramid::PyramidConfig;

/// Information about a pyramid engine. All but `live_blocks` and `stash_blocks` is public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PyramidInfo {
    /// The parameters, from the header.
    pub config: PyramidConfig,
    /// Asks so far.
    pub asks: u64,
    /// Blocks that exist, without writes that wait.
    pub live_blocks: u64,
    /// Blocks in the stash.
    pub stash_blocks: usize,
    /// Slots of all live tables.
    pub table_slots: u64,
    /// Bytes of the tables' places.
    pub table_bytes: u64,
    /// The most that these may become.
    pub most_table_bytes: u64,
    /// Bytes that an ask reads on the average, once all tables are there.
    pub read_per_ask: u64,
    /// Bytes that it writes.
    pub written_per_ask: u64,
}

impl VolumeInfo {
    /// The report of a pyramid engine, if the volume is on one.
    pub fn pyramid(&self) -> Option<&PyramidInfo> {
        self.report()
    }
}
