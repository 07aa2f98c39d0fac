//! What a tree in windows reports of itself.

use crate::engine::VolumeInfo;
use oblivio_engine::tree::{TreeConfig, Windows};

/// Information about a tree in windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    /// The engine's parameters.
    pub config: TreeConfig,
    /// The rule of its windows.
    pub rule: Windows,
    /// Blocks addressable now.
    pub addressable_blocks: u64,
    /// Blocks that the tree is sized for now.
    pub size_class: u64,
    /// The level of the leaves.
    pub depth: u32,
    /// Slots of the leaves' buckets.
    pub leaf_slots: usize,
    /// Windows so far.
    pub windows: u64,
    /// The number of this session.
    pub session: u64,
    /// Whether the session before said that it was done: if not, it crashed, or it was taken over.
    pub released: bool,
}

impl VolumeInfo {
    /// The report of a tree in windows, if the volume is on one.
    pub fn windows(&self) -> Option<&WindowInfo> {
        self.report()
    }
}
