//! What a sequential engine reports of itself.

use crate::engine::VolumeInfo;
use oblivio_engine::sequential::SequentialConfig;

/// Information about a sequential engine. Only the two counts at the end ever change.
#[derive(Clone, Debug, PartialEq)]
pub struct SequentialInfo {
    /// The engine's parameters, from the header.
    pub parameters: SequentialConfig,
    /// The fan-outs of the levels, from the top.
    pub fan_outs: Vec<u64>,
    /// Bytes of one half of the write queue.
    pub queue_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of all levels.
    pub disk_bytes: u64,
    /// Bytes written to the levels for each byte of user data, once all are in use.
    pub written_per_byte: f64,
    /// Whether the access time map is in the ORAM.
    pub map_on_disk: bool,
    /// Flushes so far; an observer of the disk can count them.
    pub flushes: u64,
    /// Writes so far, padding included.
    pub writes: u64,
}

impl VolumeInfo {
    /// The report of a sequential engine, if the volume is on one.
    pub fn sequential(&self) -> Option<&SequentialInfo> {
        self.report()
    }
}
