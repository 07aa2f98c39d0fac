//! What is in an open lane, ready to be served.

use super::tally::LaneTally;
use crate::mount::adopt_root;
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{LaneSync, LaneWait, OpenLane, Result, Volume};
use std::time::{Duration, SystemTime};

/// The disk of an open lane, or its files.
pub struct LaneMedium<M> {
    pub(crate) medium: M,
    pub(crate) tally: LaneTally,
}

impl LaneMedium<Disk> {
    /// The disk of each lane that the volume's passphrase opened. One with files has none.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn disks(volume: &mut Volume, read_only: bool) -> Result<Vec<Option<Self>>> {
        each(volume, (LaneWait::default(), read_only), OpenLane::disk, |_| Ok(()))
    }
}

impl LaneMedium<FileSystem> {
    /// The files of each lane that the volume's passphrase opened. One with a disk has none. A
    /// write that finds no room in memory waits for nobody: the kernel writes back the volume's
    /// files behind it.
    ///
    /// # Errors
    /// Those of the volume.
    pub fn files(volume: &mut Volume, read_only: bool) -> Result<Vec<Option<Self>>> {
        let wait = LaneWait { time: Duration::ZERO, ..LaneWait::default() };
        each(volume, (wait, read_only), OpenLane::files, |fs| {
            fs.set_clock(Box::new(|| SystemTime::now().into()));
            match read_only {
                true => Ok(()),
                false => adopt_root(fs).and_then(|()| fs.commit()),
            }
        })
    }
}

/// What is in each open lane. A new lane stays empty if nothing is to be written.
fn each<M>(
    volume: &mut Volume,
    (wait, read_only): (LaneWait, bool),
    content: impl Fn(OpenLane) -> Result<Option<(M, LaneSync)>>,
    ready: impl Fn(&M) -> Result<()>,
) -> Result<Vec<Option<LaneMedium<M>>>> {
    let lanes = volume.lanes(wait).into_iter();
    let content = |lane: Option<OpenLane>| {
        let used = lane.filter(|lane| !read_only || !lane.space.root().is_empty());
        let Some((medium, sync)) = used.map_or(Ok(None), &content)? else { return Ok(None) };
        ready(&medium)?;
        Ok(Some(LaneMedium { medium, tally: LaneTally::unused(sync) }))
    };
    lanes.map(content).collect()
}
