//! What a caller has of a lane, whatever the engine of the volume that carries it.

use crate::Result;
use crate::block::BlockSpace;
use crate::disk::{Disk, size_in};
use crate::fs::FileSystem;
use oblivio_crypto::{MasterKey, Randomness};
use std::sync::Arc;
use std::time::Duration;

/// The keys of a lane that a passphrase opened.
pub struct LaneMaster {
    /// Which one, counted from 0.
    pub(crate) lane: u8,
    /// Its master key.
    pub(crate) master: MasterKey,
    /// Those of the volume and of the lanes before it.
    pub(crate) before: Vec<MasterKey>,
}

impl LaneMaster {
    /// Fresh keys of a lane beside a volume and lanes with these.
    pub(crate) fn generate(lane: u8, before: Vec<MasterKey>, randomness: &Randomness) -> Self {
        Self { lane, master: MasterKey::generate(&mut randomness.clone()), before }
    }

    /// The volume's own key.
    pub(crate) fn volume(&self) -> Option<&MasterKey> {
        self.before.first()
    }
}

/// How much may wait for acts of the volume.
#[derive(Clone, Copy, Debug)]
pub struct LaneWait {
    /// Bytes of writes that may wait.
    pub memory_bytes: usize,
    /// How long a writer waits who finds no room for more.
    pub time: Duration,
}

/// An open lane: what is in it, and when that is durable.
pub struct OpenLane {
    /// Its blocks.
    pub space: Box<dyn BlockSpace>,
    /// Tells when they are durable.
    pub sync: LaneSync,
}

/// The most lanes of a volume.
pub const MOST_LANES: u8 = 2;

impl OpenLane {
    /// Its files; an empty lane gets some. `None` if it holds a disk.
    ///
    /// # Errors
    /// Those of the lane.
    pub fn files(self) -> Result<Option<(FileSystem, LaneSync)>> {
        let Self { space, sync } = self;
        let fs = match space.root() {
            [] => FileSystem::format(space)?,
            root if size_in(root)?.is_some() => return Ok(None),
            _ => FileSystem::open(space)?,
        };
        Ok(Some((fs, sync)))
    }

    /// Its disk; an empty lane gets one that takes all of it. `None` if it holds files.
    ///
    /// # Errors
    /// Those of the lane.
    pub fn disk(self) -> Result<Option<(Disk, LaneSync)>> {
        let Self { space, sync } = self;
        let disk = match space.root() {
            [] => {
                let bytes = space.capacity_blocks() * space.block_bytes() as u64;
                Disk::format(space, bytes)?
            }
            root if size_in(root)?.is_none() => return Ok(None),
            _ => Disk::open(space)?,
        };
        Ok(Some((disk, sync)))
    }
}

impl Default for LaneWait {
    fn default() -> Self {
        Self { time: Duration::from_secs(60), memory_bytes: 128 << 20 }
    }
}

/// What only the passphrase of a lane tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStatus {
    /// Its capacity in bytes.
    pub bytes: u64,
    /// Writes that wait in memory until the volume is written.
    pub waiting: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
    /// About how much must be written to the volume until all of them are durable.
    pub carried_by_bytes: u64,
    /// What may be written to the volume while the lane is shut, before it loses anything.
    pub grace_left_bytes: u64,
    /// The same of a lane that was always open.
    pub grace_bytes: u64,
}

/// What a volume does for a lane.
pub(crate) trait CarriesLane: Send + Sync {
    /// As [`LaneSync::accepted`].
    fn accepted(&self) -> u64;

    /// As [`LaneSync::wait`].
    fn wait(&self, accepted: u64, time: Duration) -> Result<()>;

    /// As [`LaneSync::status`].
    fn status(&self) -> LaneStatus;
}

/// Tells when what was written into a lane is durable. Clones are the same.
#[derive(Clone)]
pub struct LaneSync(Arc<dyn CarriesLane>);

impl LaneSync {
    /// Of a lane.
    pub(crate) fn of(lane: Arc<dyn CarriesLane>) -> Self {
        Self(lane)
    }

    /// How much the lane took in so far: for [`Self::wait`].
    pub fn accepted(&self) -> u64 {
        self.0.accepted()
    }

    /// Waits until all that was taken in before is durable. That takes acts of the volume; nothing
    /// here causes one.
    ///
    /// # Errors
    /// `Full` if that time passes before: what waits is kept, unless the volume was closed.
    /// `Closed` if the lane failed.
    pub fn wait(&self, accepted: u64, time: Duration) -> Result<()> {
        self.0.wait(accepted, time)
    }

    /// What is to be said of the lane.
    pub fn status(&self) -> LaneStatus {
        self.0.status()
    }
}
