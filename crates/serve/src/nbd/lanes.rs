//! The disks of a volume's open lanes, each with a server of its own, and how these end.
//!
//! Nothing is said of a lane in a log, which stays.

use super::lane_export::LaneExport;
use super::negotiation::Export;
use super::request::DiskQueue;
use super::server::{DiskOptions, start_lane};
use crate::error::Result;
use crate::server::Running;
use oblivio_volume::LaneSync;
use std::sync::Arc;
use std::time::Duration;

/// The disk of a lane, served.
pub(super) struct ServedLane {
    pub export: Export,
    pub queue: Arc<DiskQueue>,
    server: Running,
    sync: LaneSync,
}

impl ServedLane {
    /// Starts its server.
    pub fn start(lane: LaneExport, options: &DiskOptions) -> Result<Self> {
        let export = Export::of(&lane.disk, options.read_only);
        let sync = lane.sync.clone();
        let (queue, server) = start_lane(lane, options)?;
        Ok(Self { export, queue, server, sync })
    }
}

/// The same once its server has ended: all that was written is accepted.
pub(super) struct EndedLane {
    ended: Result<()>,
    sync: LaneSync,
    accepted: u64,
}

impl EndedLane {
    /// Waits for the end.
    pub fn of(lane: ServedLane) -> Self {
        let ended = lane.server.wait();
        Self { ended, accepted: lane.sync.accepted(), sync: lane.sync }
    }

    /// Once the volume has ended too: refuses to say that all went well if it did not carry
    /// everything.
    pub fn expect(self) -> Result<()> {
        self.ended?;
        Ok(self.sync.wait(self.accepted, Duration::ZERO)?)
    }
}
