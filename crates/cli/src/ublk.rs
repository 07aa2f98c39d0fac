//! `ublk`: a volume as a block device of this computer, without a client in between.

use crate::args::UblkArgs;
use crate::disk::{self, OpenedDisk};
use crate::human;
use crate::others;
use crate::recorder::Recorder;
use crate::signals;
use anyhow::Result;
use oblivio_serve::ublk;

/// Runs `oblivio ublk`.
pub fn run(args: &UblkArgs) -> Result<()> {
    ublk::check_driver()?;
    let serve = &args.serve;
    let Some(store) = disk::begin(serve)? else { return Ok(()) };
    // A lane is no device of the kernel, which would log its name.
    let OpenedDisk { disk, options, signals, recorder, .. } = disk::open(serve, store)?;
    let size = human::size(disk.size());
    let serving = ublk::serve(disk, args.block_size, options)?;
    let (volume, path) = (serve.volume.display(), serving.path());
    disk::announce(serve, &format!("{volume} is a disk of {size} at {}.", path.display()))?;
    let ended = ublk::until_ended(serving, |ask| signals::forward(signals, ask));
    Recorder::finish_after(recorder, ended.map_err(Into::into).and_then(|()| others::handed_over()))
}
