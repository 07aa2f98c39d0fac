//! The disks of a volume's open lanes.

use oblivio_volume::disk::{Disk, size_in};
use oblivio_volume::{LaneSync, LaneWait, OpenLane, Volume};

/// The most lanes that a volume may have.
const MOST: u8 = 2;

/// The disk of an open lane.
pub struct LaneExport {
    pub(super) disk: Disk,
    pub(super) sync: LaneSync,
}

impl LaneExport {
    /// The disk of each lane that the volume's passphrase opened. An empty lane gets one that takes
    /// all of it; one with files has none.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn of(volume: &mut Volume) -> oblivio_volume::Result<Vec<Option<Self>>> {
        let lanes = (0..MOST).map(|number| volume.lane(number, LaneWait::default()));
        lanes.map(|lane| lane.map_or(Ok(None), Self::over)).collect()
    }

    fn over(OpenLane { space, sync }: OpenLane) -> oblivio_volume::Result<Option<Self>> {
        let disk = match space.root() {
            [] => {
                let bytes = space.capacity_blocks() * space.block_bytes() as u64;
                Disk::format(space, bytes)?
            }
            root if size_in(root)?.is_none() => return Ok(None),
            _ => Disk::open(space)?,
        };
        Ok(Some(Self { disk, sync }))
    }
}
