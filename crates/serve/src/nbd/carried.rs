//! Flushes of a lane's disk, which are answered once the volume has carried what they cover.

use super::request::{DiskAnswer, DiskSlot, errno_of};
use crate::log;
use crate::threads::spawn;
use oblivio_volume::LaneSync;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How long a flush waits for the volume.
const LANE_WAIT: Duration = Duration::from_secs(60);

/// What was accepted until now, and who waits for it.
type Awaited = (u64, Vec<DiskSlot>);

/// Answers flushes once the volume has carried what they cover.
pub(super) struct Carried {
    sync: LaneSync,
    tell: Sender<Awaited>,
}

impl Carried {
    /// On a thread of its own, which ends with this.
    pub fn start(sync: LaneSync) -> io::Result<Self> {
        let (tell, awaited) = channel();
        let carried = sync.clone();
        spawn("flush", move || answer(&carried, &awaited))?;
        Ok(Self { sync, tell })
    }

    /// Answers these once all is durable that was accepted before.
    pub fn answer(&self, waiting: Vec<DiskSlot>) {
        // Without its thread nobody waits, and the queue answers that the disk has ended.
        let _ = self.tell.send((self.sync.accepted(), waiting));
    }
}

fn answer(sync: &LaneSync, awaited: &Receiver<Awaited>) {
    log::hush();
    while let Ok((accepted, waiting)) = awaited.recv() {
        let carried = sync.wait(accepted, LANE_WAIT).map_err(|error| errno_of(&error));
        for slot in waiting {
            slot.answer(carried.map(|()| DiskAnswer::Done));
        }
    }
}
