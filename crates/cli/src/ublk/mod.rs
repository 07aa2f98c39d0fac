//! `ublk`: a volume as a block device of this computer, without a client in between.
//!
//! The kernel's requests go into the queue that a disk over NBD has, and the same server works
//! through it. `session` holds the threads together, `stop` ends it well.

mod session;
mod stop;

use crate::args::UblkArgs;
use crate::exit::{Code, fault, usage};
use crate::human;
use crate::mount::{self, background, log};
use crate::open;
use crate::recorder::Recorder;
use crate::signals;
use anyhow::{Context, Error, Result};
use oblivio_ublk::{CONTROL, Parameters};
use oblivio_volume::disk::Disk;
use session::Options;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Runs `oblivio ublk`.
pub fn run(args: &UblkArgs) -> Result<()> {
    if args.commit_every == 0 || args.timeout == 0 {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    if !Path::new(CONTROL).exists() {
        return Err(not_there());
    }
    let store = open::store(&args.volume)?;
    if args.background && !args.child {
        return background::start();
    }
    let recorder = args.open.trace_out.as_deref().map(Recorder::to_file).transpose()?;
    let (store, pulse) = mount::layers(store);
    let opened = open::volume_over(store, &args.volume, &args.open, recorder.as_ref(), true);
    let (volume, publisher) = opened?;
    // From here on a signal ends the server in good order, not the process.
    let signals = signals::catch()?;
    publisher.describe(&volume.info()?);
    let disk = Disk::open(Box::new(volume)).with_context(|| args.volume.display().to_string())?;
    let size = human::size(disk.size());
    let options = Options {
        parameters: parameters(args, &disk)?,
        commit_every: Duration::from_secs(args.commit_every),
        paced: args.open.pace.is_some(),
        timeout: Duration::from_secs(args.timeout),
        on_request: Some(Arc::new(move |event| publisher.ordinary(event))),
        pulse,
    };
    let serving = session::serve(disk, options)?;
    let path = serving.path();
    let line = format!("{} is a disk of {size} at {}.", args.volume.display(), path.display());
    if args.child {
        let id = std::process::id();
        let line = format!("{line} `kill {id}` ends it.");
        background::up((!args.open.quiet).then_some(line))?;
    } else if !args.open.quiet {
        human::say(format!("{line} Ctrl-C ends it."))?;
    }
    log::ready();
    let ended = stop::until_ended(serving, signals);
    let recorded = recorder.map_or(Ok(()), Recorder::finish);
    ended?;
    recorded
}

/// What the device is to be like.
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
    // What is written costs whole blocks of the volume, so others should know of them.
    let best = u32::try_from(block.next_power_of_two()).unwrap_or(1 << 20).clamp(logical, 1 << 20);
    Ok(Parameters { size, logical_block: logical, best_block: best, read_only: args.read_only })
}

fn not_there() -> Error {
    fault(
        Code::General,
        format!("this system has no {CONTROL}"),
        "Load the driver: modprobe ublk_drv. It comes with Linux 6.0 and later where \
         CONFIG_BLK_DEV_UBLK is set; elsewhere serve the disk with `oblivio nbd`.",
    )
}

/// What the driver or the system answered, with what to do about it.
fn explain(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => not_there(),
        ErrorKind::PermissionDenied => fault(
            Code::General,
            format!("no block device may be added: {error}"),
            "Run it as root. If you are root, io_uring is switched off: see \
             /proc/sys/kernel/io_uring_disabled.",
        ),
        _ => Error::new(error).context("the block device could not be made"),
    }
}
