//! `mount --scrub`: the volume is read in quiet moments.

use crate::args::MountArgs;
use crate::exit::usage;
use anyhow::Result;
use oblivio_app::ScrubNote;
use oblivio_serve::{Pulse, damage_log, log};
use oblivio_volume::{Environment, QuietScrub, Volume};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Refuses it where it would show more, or leave a note.
pub fn refuse(args: &MountArgs) -> Result<()> {
    if args.scrub.is_none() {
        return Ok(());
    }
    if args.scrub == Some(0) {
        return Err(usage("a scrub of 0 bytes a second makes no sense", "Give a rate, as in 10M."));
    }
    if args.open.pad || args.open.pace.is_some() {
        let what = "with --pad or --pace the storage sees nothing beside what they fix";
        return Err(usage(
            what,
            "Leave --scrub out, and run `oblivio check --scrub VOLUME` at times.",
        ));
    }
    if args.open.unobserved {
        let what = "--unobserved leaves no note, and --scrub notes how far it is";
        return Err(usage(what, "Leave one of them out."));
    }
    if oblivio_app::place::is_online(&args.volume) {
        let what = "a mount scrubs volumes in folders, files and partitions only";
        return Err(usage(what, "`oblivio check --scrub URL` reads everything at a service."));
    }
    Ok(())
}

/// From now on quiet moments read the volume at this place, at this many bytes a second.
pub fn begin(volume: &mut Volume, place: &Path, rate: u64, pulse: &Pulse) -> Result<()> {
    let mut note = ScrubNote::at(place, volume.info()?.volume)?;
    let pulse = Arc::clone(pulse);
    let mut said = false;
    let scrub = QuietScrub {
        rate,
        from: note.next(),
        asked: Box::new(move || pulse.load(Ordering::Relaxed)),
        damaged: Box::new(damage_log()),
        note: Box::new(move |next| {
            if let Err(error) = note.keep(next)
                && !std::mem::replace(&mut said, true)
            {
                log::note(&format!("how far the scrub is cannot be noted: {error}"));
            }
        }),
    };
    Ok(volume.scrub_when_quiet(scrub, Environment::default().clock)?)
}
