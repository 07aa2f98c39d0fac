//! The disks of a volume's open lanes.

use oblivio_volume::disk::Disk;
use oblivio_volume::{LaneSync, LaneWait, OpenLane, Result, Volume};

/// The disk of an open lane.
pub struct LaneExport {
    pub(super) disk: Disk,
    pub(super) sync: LaneSync,
}

impl LaneExport {
    /// The disk of each lane that the volume's passphrase opened. One with files has none.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn of(volume: &mut Volume) -> Result<Vec<Option<Self>>> {
        let lanes = volume.lanes(LaneWait::default()).into_iter();
        lanes.map(|lane| Ok(lane.map_or(Ok(None), OpenLane::disk)?.map(Self::over))).collect()
    }

    fn over((disk, sync): (Disk, LaneSync)) -> Self {
        Self { disk, sync }
    }
}
