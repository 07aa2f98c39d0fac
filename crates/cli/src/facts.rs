//! Facts of a volume with either engine, and the row for one.

use crate::human::say;
use anyhow::Result;
use oblivio_volume::VolumeInfo;
use oblivio_volume::fs::Usage;
use std::fmt::Display;

/// What a volume is used for.
pub enum Holds {
    Files(Usage),
    /// A disk of this many bytes.
    Disk(u64),
}

/// The most bytes that it may hold.
pub fn capacity(info: &VolumeInfo) -> u64 {
    info.capacity_blocks.saturating_mul(info.block_bytes as u64)
}

/// Bytes of the blocks that files take.
pub fn used(usage: &Usage) -> u64 {
    (usage.data_blocks + usage.metadata_blocks) * usage.block_bytes
}

/// Bytes of a disk that take space; `None` where the whole disk always does.
pub fn disk_used(info: &VolumeInfo, size: u64) -> Option<u64> {
    let live = info.live_blocks?;
    Some(live.saturating_mul(info.block_bytes as u64).min(size))
}

/// Prints one fact.
pub fn row(name: &str, value: impl Display) -> Result<()> {
    say(format!("  {name:<14}{value}"))
}
