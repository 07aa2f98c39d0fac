//! `mount` and `umount`: a volume as a directory, through FUSE.
//!
//! `fuse` decodes the kernel's requests into a queue, and one [`server`] works through it with
//! `names`, `data` and `directories`. `session` holds the threads together, `stop` ends them well,
//! `attach` and `umount` deal with the mount itself.

mod attach;
pub mod background;
mod busy;
mod convert;
mod data;
mod directories;
mod errno;
mod fuse;
mod kernel;
pub mod log;
mod names;
mod options;
mod pulse;
mod references;
mod remount;
mod reply;
mod request;
mod scarce;
mod server;
mod session;
mod stop;
#[cfg(test)]
pub mod tests;
mod umount;
pub mod within;
mod writers;

pub use attach::Look;
pub use options::as_mount_helper;
pub use umount::run as umount;

use crate::args::MountArgs;
use crate::exit::{Code, fault, usage};
use crate::human;
use crate::open;
use crate::queue::Pulse;
use crate::recorder::Recorder;
use crate::signals;
use crate::unobserved;
use crate::watch::{OrdinaryEvent, Publisher};
use anyhow::{Context, Result};
use oblivio_store::{Patience, RetryStore, Store, StoreError};
use oblivio_volume::fs::{FileSystem, ROOT_INO, SetAttr, Timestamp};
use pulse::PulseStore;
use request::RequestKind;
use session::Options;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Blocks of metadata prefetched before the mount is up.
const READ_AHEAD: usize = 64;

/// Runs `oblivio mount`.
pub fn run(args: &MountArgs) -> Result<()> {
    let mut args = args.clone();
    options::apply(&mut args)?;
    if args.remount {
        return remount::run(&args);
    }
    if !args.read_only {
        unobserved::refuse_changes(&args.open)?;
    }
    let (volume, dir) = places(&args)?;
    if args.background && !args.child {
        return background::start(&args.volume, &args.open);
    }
    let recorder = Recorder::of(&args.open)?;
    let (store, pulse) = layers(recorded(open::store(&volume)?, recorder.as_ref()));
    let opened = open::volume_over(store, &args.volume, &args.open, recorder.as_ref(), true)?;
    // From here on a signal ends the mount in order, not the process.
    let signals = signals::catch()?;
    // A padded operation that needs no access shows none. Names must not decide that, so all
    // metadata is read in advance, as far as memory takes it.
    let ahead = if args.open.pad { usize::MAX } else { READ_AHEAD };
    let open::Session { fs, publisher, .. } = open::file_system(opened, ahead)?;
    if !args.read_only {
        adopt_root(&fs)?;
    }
    let mounted = session::serve(fs, &dir, mount_options(&args, &volume, pulse, publisher))?;
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
    log::ready();
    Recorder::finish_after(recorder, stop::until_ended(mounted, &dir, signals))
}

/// The store below all layers, under the recorder if there is one.
pub fn recorded(store: Arc<dyn Store>, recorder: Option<&Recorder>) -> Arc<dyn Store> {
    recorder.map_or_else(|| Arc::clone(&store), |recorder| recorder.over(Arc::clone(&store)))
}

/// The layers that every server has between the volume and its store.
pub fn layers(store: Arc<dyn Store>) -> (Arc<dyn Store>, Pulse) {
    let pulse = Pulse::default();
    let store = Arc::new(PulseStore::new(store, Arc::clone(&pulse)));
    let store = RetryStore::new(store, Patience::default(), Box::new(tell_outage));
    (Arc::new(store), pulse)
}

fn tell_outage(error: Option<&StoreError>) {
    match error {
        Some(error) => log::note(&format!("{error}; trying again until it works")),
        None => log::note("the store works again"),
    }
}

fn mount_options(args: &MountArgs, volume: &Path, pulse: Pulse, publisher: Publisher) -> Options {
    let look = Look {
        source: volume.as_os_str().to_owned(),
        read_only: args.read_only,
        allow_other: args.allow_other,
        ..args.look.clone()
    };
    Options {
        look,
        commit_every: Duration::from_secs(args.commit_every),
        paced: args.open.pace.is_some(),
        timeout: Duration::from_secs(args.timeout),
        on_request: Some(Box::new(move |kind, ino, offset, len| {
            let event = match kind {
                RequestKind::Read => OrdinaryEvent::read(ino, offset + len, offset, len),
                RequestKind::Write => OrdinaryEvent::write(ino, offset + len, offset, len),
                _ => return,
            };
            publisher.ordinary(event);
        })),
        pulse,
    }
}

/// The root directory of an unused volume belongs to nobody: the first user to mount it gets it.
fn adopt_root(fs: &FileSystem) -> Result<()> {
    let root = fs.attr(ROOT_INO)?;
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    let never_owned = root.uid == 0 && root.gid == 0 && root.crtime == Timestamp::default();
    let mut set = SetAttr::default();
    if never_owned && uid != 0 {
        (set.uid, set.gid) = (Some(uid), Some(gid));
    }
    if root.mtime == Timestamp::default() {
        set.mtime = Some(open::now());
    }
    if set != SetAttr::default() {
        fs.set_attr(ROOT_INO, set)?;
    }
    Ok(())
}

/// Volume and directory by their full names, after checking both.
fn places(args: &MountArgs) -> Result<(PathBuf, PathBuf)> {
    if args.commit_every == 0 || args.timeout == 0 {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    // Its error says what is wrong with the place.
    open::store(&args.volume)?;
    let volume = args.volume.canonicalize().context("the volume's folder")?;
    let dir = directory(args)?;
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

fn directory(args: &MountArgs) -> Result<PathBuf> {
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
    if attach::mounted_on(&dir)?.is_some_and(|mount| mount.kind == umount::KIND) {
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
