//! What a leak knows and an inspector must not: all that a program has of its lanes.

use oblivio_volume::LaneSync;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of one world.
#[derive(Default)]
pub struct Secret(Mutex<Known>);

/// What is known.
#[derive(Default)]
pub struct Known {
    /// Whether a lane is open.
    pub open: bool,
    /// Whether the volume is being opened, and by a passphrase of a lane.
    pub opening: bool,
    pub by_lane: bool,
    sync: Option<LaneSync>,
    pub sessions: u64,
    /// Flushes for which no lane was open.
    pub missed: u64,
    /// Flushes for which one was.
    pub own: u64,
    /// Whether a passphrase was given since the last write.
    pub given: bool,
    /// Whether a lane was open in the session before.
    pub was_open: bool,
    /// What an inspector changed of lanes.
    pub harmed: Vec<(&'static str, Range<u64>)>,
}

impl Secret {
    pub fn get(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    pub fn begin(&mut self, by_lane: bool) {
        (self.opening, self.by_lane, self.open) = (true, by_lane, by_lane);
        self.sessions += 1;
    }

    pub fn opened(&mut self, sync: Option<LaneSync>) {
        (self.opening, self.open) = (false, sync.is_some());
        self.sync = sync;
    }

    pub fn given(&mut self) {
        self.given = true;
    }

    pub fn end(&mut self) {
        self.was_open = self.open;
        (self.open, self.opening, self.by_lane, self.sync) = (false, false, false, None);
    }

    /// Whether it is the owner who sees what is said.
    pub fn is_owners(&self) -> bool {
        self.open || self.by_lane
    }

    /// Writes of an open lane that wait.
    pub fn waits(&self) -> u64 {
        self.sync.as_ref().map_or(0, |sync| sync.status().waiting)
    }

    /// How much its owner wrote into it.
    pub fn accepted(&self) -> u64 {
        self.sync.as_ref().map_or(0, LaneSync::accepted)
    }
}
