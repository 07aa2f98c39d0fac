//! `mount` and `umount`: a volume as a directory.

pub mod background;
mod options;
mod scrub;

pub use options::{apply, as_mount_helper};

use crate::args::{MountArgs, UmountArgs};
use crate::exit::{Code, fault, usage};
use crate::human;
use crate::open;
use crate::others;
use crate::recorder::Recorder;
use crate::signals;
use crate::unobserved;
use anyhow::{Context, Result};
use oblivio_serve::mount::{self as serve, Look, LostFiles, MountOptions, UmountWait};
use oblivio_serve::watch::Publisher;
use oblivio_serve::{LaneMedium, Pulse};
use oblivio_store::waits;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Seconds without progress of a disk after which a mount answers with an error.
const TIMEOUT: u64 = 20;

/// Runs `oblivio mount`.
pub fn run(args: &MountArgs) -> Result<()> {
    let mut args = args.clone();
    apply(&mut args)?;
    if args.open.token_file.is_some() {
        let what = "--token-file is for shared volumes";
        return Err(usage(what, "Leave it out, or name a volume as share://HOST:PORT/NAME."));
    }
    args.open.cover = args.cover;
    if args.remount {
        let look = Look { read_only: args.read_only, ..args.look.clone() };
        return Ok(serve::remount(&args.dir, &look)?);
    }
    open::refuse_cover(args.cover, args.read_only)?;
    if !args.read_only {
        unobserved::refuse_changes(&args.open)?;
    }
    scrub::refuse(&args)?;
    let (volume, dir) = places(&args)?;
    if args.fake {
        return Ok(());
    }
    if args.background && !args.child {
        return background::start(&args.volume, &args.open);
    }
    let recorder = Recorder::of(&args.open)?;
    let store = Recorder::under(open::store_to_serve(&volume)?, recorder.as_ref());
    let layers = open::layers(store, &volume);
    let store = layers.store.clone();
    let mut opened = open::volume_over(store, &args.volume, &args.open, recorder.as_ref(), true)?;
    if let Some(rate) = args.scrub {
        scrub::begin(&mut opened.0, &volume, rate, &layers.pulse)?;
    }
    // From here on a signal ends the mount in order, not the process.
    let signals = signals::catch()?;
    // A padded operation that needs no access shows none. Names must not decide that, so all
    // metadata is read in advance, as far as memory takes it.
    let ahead = if args.open.pad { usize::MAX } else { serve::READ_AHEAD };
    let lanes = LaneMedium::files(&mut opened.0, args.read_only)?;
    let open::OpenSession { fs, publisher, .. } = open::file_system(opened, ahead)?;
    if !args.read_only {
        serve::adopt_root(&fs)?;
    }
    let pulse = Arc::clone(&layers.pulse);
    let mounted = serve::serve(fs, lanes, &dir, mount_options(&args, &volume, pulse, publisher))?;
    layers.serve();
    if args.child {
        let (volume, dir) = (args.volume.display(), args.dir.display());
        let line = format!("Mounted {volume} on {dir}. `oblivio umount {dir}` unmounts.");
        background::up((!args.open.quiet).then_some(line))?;
    } else if !args.open.quiet {
        let (volume, dir) = (args.volume.display(), args.dir.display());
        human::say(format!(
            "Mounted {volume} on {dir}. Ctrl-C or `oblivio umount {dir}` unmounts."
        ))?;
    }
    background::ready();
    let ended = serve::until_ended(mounted, &dir, |ask| signals::forward(signals, ask));
    let ended = ended.map_err(Into::into).and_then(lost_by_server);
    Recorder::finish_after(recorder, ended.and_then(|()| others::handed_over()))
}

fn mount_options(
    args: &MountArgs,
    volume: &Path,
    pulse: Pulse,
    publisher: Publisher,
) -> MountOptions {
    let look = Look {
        source: volume.as_os_str().to_owned(),
        read_only: args.read_only,
        allow_other: args.allow_other,
        ..args.look.clone()
    };
    let online = oblivio_app::place::is_online(volume);
    let usual = || if online { waits::MOUNT } else { Duration::from_secs(TIMEOUT) };
    MountOptions {
        look,
        commit_every: Duration::from_secs(args.commit_every),
        paced: args.open.pace.is_some() || args.cover.is_some(),
        timeout: args.timeout.map_or_else(usual, Duration::from_secs),
        on_request: Some(serve::report_to(publisher)),
        pulse,
    }
}

/// The server ended well, but this many files lost data before.
fn lost_by_server(files: u64) -> Result<()> {
    if files == 0 {
        return Ok(());
    }
    let files = human::count(files, "file");
    let what =
        format!("something that programs wrote to {files} was lost when it could not be stored");
    Err(fault(Code::General, what, "What was synced is safe. The log says what had failed."))
}

/// Runs `oblivio umount`.
pub fn umount(args: &UmountArgs) -> Result<()> {
    let mut said = None;
    let waiting = |what: UmountWait| {
        // Once for the lanes, and once for the last commit.
        let kind = std::mem::discriminant(&what);
        if !args.quiet && said.replace(kind) != Some(kind) {
            eprintln!("oblivio: {}", waits_for(&what));
        }
    };
    let Some(LostFiles { files, full }) = serve::umount(&args.dir, args.lazy, waiting)? else {
        return Ok(());
    };
    // An earlier loss is no reason to stay mounted, but scripts must learn of it.
    let (code, why) = match full {
        true => (Code::Full, "there was no room for it"),
        false => (Code::General, "it could not be stored"),
    };
    let files = human::count(files, "file");
    let what = format!("unmounted, but something written to {files} was lost: {why}");
    Err(fault(code, what, "What was synced is safe."))
}

fn waits_for(what: &UmountWait) -> String {
    let UmountWait::Lanes(lanes) = what else { return "waiting for the last commit".into() };
    let (mut names, mut waiting, mut carried) = (Vec::new(), 0, 0);
    for (name, status) in lanes {
        names.push(name.as_str());
        waiting += status.waiting_bytes;
        carried = carried.max(status.carried_by_bytes);
    }
    format!(
        "{} of {} wait until about {} are written to the volume. Ctrl-C leaves it mounted; \
         `oblivio umount --lazy` ends it without them",
        human::size(waiting),
        names.join(" and "),
        human::size(carried)
    )
}

/// Volume and directory by their full names, after checking both.
fn places(args: &MountArgs) -> Result<(PathBuf, PathBuf)> {
    if args.commit_every == 0 || args.timeout == Some(0) {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    // Its error says what is wrong with the place.
    open::store(&args.volume)?;
    let dir = directory(args)?;
    if oblivio_app::place::is_online(&args.volume) {
        return Ok((args.volume.clone(), dir));
    }
    let volume = args.volume.canonicalize().context("the volume's folder")?;
    let shown = args.dir.display();
    if dir.starts_with(&volume) {
        let what = format!("{shown} is inside the volume's own folder");
        return Err(usage(what, "Mount it on a directory somewhere else."));
    }
    if volume.starts_with(&dir) {
        let what = format!("the volume lies below {shown}, which the mount would hide");
        return Err(usage(what, "Mount it on a directory somewhere else."));
    }
    Ok((volume, dir))
}

pub fn directory(args: &MountArgs) -> Result<PathBuf> {
    let shown = args.dir.display();
    let found = match fs::metadata(&args.dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let hint = format!("Make it first: mkdir {shown}");
            return Err(fault(Code::Path, format!("{shown}: there is no such directory"), hint));
        }
        // The remnant of a killed server.
        Err(error) if error.raw_os_error() == Some(107) => {
            let what = format!("{shown} is a mount whose server has died");
            return Err(fault(Code::Busy, what, format!("Clear it: oblivio umount {shown}")));
        }
        found => found.with_context(|| shown.to_string())?,
    };
    if !found.is_dir() {
        let what = format!("{shown} is not a directory");
        return Err(fault(Code::Path, what, "A volume is mounted on a directory."));
    }
    let dir = args.dir.canonicalize().with_context(|| shown.to_string())?;
    if serve::is_mounted(&dir)? {
        let what = format!("a volume is mounted on {shown} already");
        return Err(fault(Code::Busy, what, format!("Unmount it first: oblivio umount {shown}")));
    }
    let mut entries = dir.read_dir().with_context(|| shown.to_string())?;
    if !args.nonempty && entries.next().is_some() {
        let what = format!("{shown} is not empty; the mount would hide what is in it");
        return Err(fault(Code::Path, what, "Use an empty directory, or say --nonempty."));
    }
    Ok(dir)
}
