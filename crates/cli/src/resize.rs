//! `resize`: a new limit for a volume.

use crate::args::ResizeArgs;
use crate::exit::{Code, fault, usage};
use crate::human::{self, say, say_json};
use crate::open::{self, OpenSession};
use anyhow::{Context, Result};
use oblivio_volume::read_header;

/// The old limit, the new one, and the lowest possible, in bytes.
struct Limits {
    before: u64,
    now: u64,
    least: u64,
}

/// Runs the command.
pub fn run(args: &ResizeArgs) -> Result<()> {
    refuse_fixed(args)?;
    let limits = open::with_either(
        &args.volume,
        &args.open,
        |session| resize(session, args.size),
        |disk, _| {
            let what = format!(
                "the volume holds a disk of {}, which keeps its size",
                human::size(disk.size())
            );
            let hint = "Make a larger one (`oblivio init --disk SIZE`), serve both, and copy it.";
            Err(fault(Code::NotAVolume, what, hint))
        },
    )?;
    if args.json {
        return say_json(&serde_json::json!({
            "capacity_bytes": limits.now,
            "before_bytes": limits.before,
            "least_bytes": limits.least,
        }));
    }
    if args.open.quiet {
        return Ok(());
    }
    let [now, before, least] = [limits.now, limits.before, limits.least].map(human::size);
    say(format!("The volume may grow to {now}; before, it was {before}. It needs {least} now."))
}

/// Refuses what is wrong before asking for a passphrase.
fn refuse_fixed(args: &ResizeArgs) -> Result<()> {
    if args.size == 0 {
        return Err(usage("a volume of no size holds nothing", "Try 10G."));
    }
    let header = read_header(&open::store(&args.volume)?)
        .with_context(|| args.volume.display().to_string())?;
    if header.engine.resizes {
        return Ok(());
    }
    let what = "a volume against snapshots takes all of its space when it is made, so that its size tells nothing";
    let hint = "Make a larger one (`oblivio init` with the same options and --size SIZE), and copy \
                what is in this one.";
    Err(fault(Code::General, what, hint))
}

fn resize(session: &OpenSession, size: u64) -> Result<Limits> {
    let fs = &session.fs;
    // Deferred writes are stored first; the lowest limit would come out too low otherwise.
    fs.commit()?;
    let block_bytes = session.info.block_bytes as u64;
    let bytes = |blocks: u64| blocks.saturating_mul(block_bytes);
    let least = bytes(fs.least_capacity()?);
    if size < least {
        let [wanted, least] = [size, least].map(human::size);
        let what = format!("the volume holds too much for a limit of {wanted}");
        let hint = format!("Use {least} or more, or remove something first.");
        return Err(fault(Code::Full, what, hint));
    }
    let before = bytes(fs.usage()?.capacity_blocks);
    fs.set_capacity(size.div_ceil(block_bytes))?;
    Ok(Limits { before, now: bytes(fs.usage()?.capacity_blocks), least })
}
