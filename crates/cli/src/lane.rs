//! `lane status` and `lane passphrase`.

use crate::args::{LaneCommand, LanePassphraseArgs, LaneStatusArgs, OpenArgs};
use crate::exit::{Code, fault, usage};
use crate::human::{count, say, say_json, size};
use crate::{open, passphrase};
use anyhow::{Context, Result};
use oblivio_serve::mount::{is_mounted, lane_statuses};
use oblivio_volume::{BlockSpace, LaneStatus, LaneWait, read_header};
use serde_json::json;

/// Runs the command.
pub fn run(command: &LaneCommand) -> Result<()> {
    match command {
        LaneCommand::Status(args) => status(args),
        LaneCommand::Passphrase(args) => change(args),
    }
}

fn status(args: &LaneStatusArgs) -> Result<()> {
    let shown = args.dir.display();
    if !is_mounted(&args.dir.canonicalize().with_context(|| shown.to_string())?)? {
        let what = format!("no volume is mounted on {shown}");
        return Err(fault(Code::Path, what, "`findmnt -t fuse.oblivio` lists what is."));
    }
    let lanes = lane_statuses(&args.dir);
    if args.json {
        let lanes: Vec<_> = lanes.iter().map(|(name, lane)| as_json(name, lane)).collect();
        return say_json(&lanes);
    }
    if lanes.is_empty() {
        return say("No lane is open.");
    }
    lanes.iter().try_for_each(|(name, lane)| say(lines(name, lane)))
}

fn as_json(name: &str, lane: &LaneStatus) -> serde_json::Value {
    json!({
        "name": name,
        "bytes": lane.bytes,
        "waiting_writes": lane.waiting,
        "waiting_bytes": lane.waiting_bytes,
        "carried_by_bytes": lane.carried_by_bytes,
        "grace_left_bytes": lane.grace_left_bytes,
        "grace_bytes": lane.grace_bytes,
    })
}

fn lines(name: &str, lane: &LaneStatus) -> String {
    let waits = match lane.waiting {
        0 => "nothing".into(),
        waiting => format!(
            "{}, {}, until about {} are written to the volume",
            count(waiting, "write"),
            size(lane.waiting_bytes),
            size(lane.carried_by_bytes)
        ),
    };
    format!(
        "{name}: a lane of {}\n  waits  {waits}\n  grace  {} of {} may yet be written to the volume \
         while the lane is shut",
        size(lane.bytes),
        size(lane.grace_left_bytes),
        size(lane.grace_bytes)
    )
}

fn change(args: &LanePassphraseArgs) -> Result<()> {
    let kdf = &args.new.kdf;
    if kdf.kdf_memory.is_some() || kdf.kdf_passes.is_some() {
        let what = "what a guess at a lane's passphrase costs was set when the volume was made";
        return Err(usage(what, "Leave --kdf-memory and --kdf-passes out."));
    }
    let header = read_header(&open::store(&args.volume)?);
    if header.with_context(|| args.volume.display().to_string())?.engine.hides_reads {
        let what = "lanes are beside a volume against snapshots, in one file or on a partition";
        return Err(usage(what, "`oblivio info VOLUME` says whether one has lanes."));
    }
    // One quantum at once: a lane's states come with those of the volume.
    let open = OpenArgs { cover: Some(0), ..args.open.clone() };
    let (mut volume, _) = open::volume(&args.volume, &open, None)?;
    let (number, lane) = (args.lane - 1, args.lane);
    let is_open = volume.lane(number, LaneWait::default()).is_some();
    match (is_open, args.anew) {
        (true, true) => {
            let what = format!("lane {lane} is open: its passphrase was given");
            return Err(usage(what, "Leave --anew out, and it keeps what it holds."));
        }
        (false, false) => {
            let what = format!("this passphrase does not open lane {lane}");
            let hint = "Give one of the lane. Or say --anew: the lane is empty then, and what it \
                        may hold is lost.";
            return Err(fault(Code::Passphrase, what, hint));
        }
        _ => {}
    }
    let new = passphrase::new(&args.new)?;
    volume.give_lane(number, &new)?;
    volume.idle()?;
    volume.finish()?;
    say(match is_open {
        true => format!(
            "From now on the new passphrase opens lane {lane}. The old one does too, until some \
             hundreds of openings have written."
        ),
        false => format!(
            "Lane {lane} is empty, and the new passphrase opens it. Do not use an old one again: \
             it would write over it."
        ),
    })
}
