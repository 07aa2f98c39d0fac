//! What a volume in extents reports of itself.

use crate::engine::VolumeInfo;
use crate::sequential::SequentialInfo;

/// Information about a volume in extents.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtentInfo {
    /// The engine's report.
    pub engine: SequentialInfo,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// All extents.
    pub extents: u64,
    /// Those of them that were ever written.
    pub written_extents: u64,
    /// Extents that changed since the last epoch.
    pub changed_extents: u64,
    /// The name of the epoch that this computer stands on.
    pub stands_on: String,
    /// Computers that use the volume, as far as the folder says.
    pub computers: usize,
    /// Histories that were not chosen, and are kept.
    pub kept: Vec<String>,
    /// Whether it is only looked at.
    pub view: bool,
}

impl VolumeInfo {
    /// The report of a volume in extents, if it is one.
    pub fn extents(&self) -> Option<&ExtentInfo> {
        self.report()
    }
}
