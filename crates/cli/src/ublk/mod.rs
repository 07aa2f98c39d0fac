//! `ublk`: a volume as a block device of this computer, without a client in between.
//!
//! The kernel's requests go into the same queue as those of NBD clients, and the same server works
//! through it. `session` holds the threads together, `stop` ends it well.

mod fault;
mod session;
mod stop;

use crate::args::UblkArgs;
use crate::disk::{self, Opened};
use crate::exit::usage;
use crate::human;
use crate::recorder::Recorder;
use anyhow::Result;
use oblivio_ublk::{CONTROL, Parameters};
use oblivio_volume::disk::Disk;
use session::Options;
use std::path::Path;
use std::time::Duration;

/// Runs `oblivio ublk`.
pub fn run(args: &UblkArgs) -> Result<()> {
    if !Path::new(CONTROL).exists() {
        return Err(fault::not_there());
    }
    let serve = &args.serve;
    let Some(store) = disk::begin(serve)? else { return Ok(()) };
    let Opened { disk, pulse, on_request, signals, recorder } = disk::open(serve, store)?;
    let size = human::size(disk.size());
    let options = Options {
        parameters: parameters(args, &disk)?,
        commit_every: Duration::from_secs(serve.commit_every),
        paced: serve.open.pace.is_some(),
        timeout: Duration::from_secs(serve.timeout),
        on_request: Some(on_request),
        pulse,
    };
    let serving = session::serve(disk, options)?;
    let (volume, path) = (serve.volume.display(), serving.path());
    disk::announce(serve, &format!("{volume} is a disk of {size} at {}.", path.display()))?;
    Recorder::finish_after(recorder, stop::until_ended(serving, signals))
}

/// The device's parameters.
fn parameters(args: &UblkArgs, disk: &Disk) -> Result<Parameters> {
    let (size, block) = (disk.size(), disk.block_bytes());
    let logical = match args.block_size {
        Some(bytes) if !(512..=4096).contains(&bytes) || !bytes.is_power_of_two() => {
            return Err(usage("a block size of that many bytes cannot be", "Use 512 to 4096."));
        }
        Some(bytes) => bytes,
        None => [4096, 2048, 1024]
            .into_iter()
            .find(|&bytes| size % u64::from(bytes) == 0)
            .unwrap_or(512),
    };
    if size % u64::from(logical) != 0 {
        let what = format!("the disk's size is no multiple of {logical} bytes");
        return Err(usage(what, "Use a smaller --block-size, or none."));
    }
    // A write costs whole blocks of the volume, and programs should know their size.
    let best = u32::try_from(block.next_power_of_two()).unwrap_or(1 << 20).clamp(logical, 1 << 20);
    Ok(Parameters {
        size,
        logical_block: logical,
        best_block: best,
        read_only: args.serve.read_only,
    })
}
