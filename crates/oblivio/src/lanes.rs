//! The lanes of a volume that its passphrase opened.

use crate::disk::Disk;
use crate::error::Result;
use crate::volume::Volume;
use oblivio_volume::disk::{Disk as InnerDisk, size_in};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{LaneWait, OpenLane, Volume as Blocks};

/// The most lanes that a volume may have.
const MOST: u8 = 2;

/// The files of each lane; an empty lane gets some.
pub(crate) fn of_files(volume: &mut Blocks) -> Result<Vec<Option<Volume>>> {
    each(volume, |OpenLane { space, sync }| {
        let fs = match space.root() {
            [] => FileSystem::format(space)?,
            root if size_in(root)?.is_some() => return Ok(None),
            _ => FileSystem::open(space)?,
        };
        Ok(Some(Volume::lane_over(fs, sync)))
    })
}

/// The disk of each lane; an empty lane gets one that takes all of it.
pub(crate) fn of_disks(volume: &mut Blocks) -> Result<Vec<Option<Disk>>> {
    each(volume, |OpenLane { space, sync }| {
        let disk = match space.root() {
            [] => {
                let bytes = space.capacity_blocks() * space.block_bytes() as u64;
                InnerDisk::format(space, bytes)?
            }
            root if size_in(root)?.is_none() => return Ok(None),
            _ => InnerDisk::open(space)?,
        };
        Ok(Some(Disk::lane_over(disk, sync)))
    })
}

fn each<T>(
    volume: &mut Blocks,
    open: impl Fn(OpenLane) -> Result<Option<T>>,
) -> Result<Vec<Option<T>>> {
    let lanes = (0..MOST).map(|number| volume.lane(number, LaneWait::default()));
    lanes.map(|lane| lane.map_or(Ok(None), &open)).collect()
}
