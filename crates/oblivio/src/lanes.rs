//! The lanes of a volume that its passphrase opened.

use crate::disk::Disk;
use crate::error::Result;
use crate::volume::Volume;
use oblivio_volume::{LaneWait, Volume as Blocks};

/// The files of each lane.
pub(crate) fn of_files(volume: &mut Blocks) -> Result<Vec<Option<Volume>>> {
    let lanes = volume.lanes(LaneWait::default()).into_iter().map(|lane| {
        let files = lane.map_or(Ok(None), |lane| lane.files())?;
        Ok(files.map(|(fs, sync)| Volume::lane_over(fs, sync)))
    });
    lanes.collect()
}

/// The disk of each lane.
pub(crate) fn of_disks(volume: &mut Blocks) -> Result<Vec<Option<Disk>>> {
    let lanes = volume.lanes(LaneWait::default()).into_iter().map(|lane| {
        let disk = lane.map_or(Ok(None), |lane| lane.disk())?;
        Ok(disk.map(|(disk, sync)| Disk::lane_over(disk, sync)))
    });
    lanes.collect()
}
