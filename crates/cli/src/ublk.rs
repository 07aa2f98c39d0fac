//! `ublk`: a volume as a block device of this computer, without a client in between.

use crate::args::UblkArgs;
use crate::disk::{self, Opened};
use crate::human;
use crate::recorder::Recorder;
use crate::signals;
use anyhow::Result;
use oblivio_serve::ublk::{self, Options};
use std::time::Duration;

/// Runs `oblivio ublk`.
pub fn run(args: &UblkArgs) -> Result<()> {
    ublk::check_driver()?;
    let serve = &args.serve;
    let Some(store) = disk::begin(serve)? else { return Ok(()) };
    let Opened { disk, pulse, on_request, signals, recorder } = disk::open(serve, store)?;
    let size = human::size(disk.size());
    let options = Options {
        block_size: args.block_size,
        read_only: serve.read_only,
        commit_every: Duration::from_secs(serve.commit_every),
        paced: serve.open.pace.is_some(),
        timeout: Duration::from_secs(serve.timeout),
        on_request: Some(on_request),
        pulse,
    };
    let serving = ublk::serve(disk, options)?;
    let (volume, path) = (serve.volume.display(), serving.path());
    disk::announce(serve, &format!("{volume} is a disk of {size} at {}.", path.display()))?;
    let ended = ublk::until_ended(serving, |ask| signals::forward(signals, ask));
    Recorder::finish_after(recorder, ended.map_err(Into::into))
}
