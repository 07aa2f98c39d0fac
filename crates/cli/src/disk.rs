//! How serving a disk begins and ends, for every kind of client.

use crate::args::{OpenArgs, ServeArgs};
use crate::exit::usage;
use crate::human;
use crate::mount::background;
use crate::open;
use crate::recorder::Recorder;
use crate::signals;
use crate::unobserved;
use anyhow::{Context, Result};
use oblivio_serve::LaneMedium;
use oblivio_serve::nbd::DiskOptions;
use oblivio_serve::watch::WatchedUse;
use oblivio_store::AnyStore;
use oblivio_volume::disk::Disk;
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::time::Duration;

/// A disk ready to be served.
pub struct OpenedDisk {
    pub disk: Disk,
    /// Those of its lanes that the passphrase opened.
    pub lanes: Vec<Option<LaneMedium<Disk>>>,
    pub options: DiskOptions,
    pub signals: Signals,
    pub recorder: Option<Recorder>,
}

/// The store, in the process that will serve. `None` in a process that started another one for it,
/// in the background.
///
/// # Errors
/// The options or the place are wrong.
pub fn begin(args: &ServeArgs) -> Result<Option<AnyStore>> {
    if args.commit_every == 0 || args.timeout == 0 {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    open::refuse_cover(args.cover, args.read_only)?;
    if !args.read_only {
        unobserved::refuse_changes(&args.open)?;
    }
    let store = open::store_to_serve(&args.volume)?;
    if args.background && !args.child {
        background::start(&args.volume, &args.open)?;
        return Ok(None);
    }
    Ok(Some(store))
}

/// Opens the disk. From here on a signal ends the server in order, not the process.
///
/// # Errors
/// Those of opening a volume; the volume holds no disk.
pub fn open(args: &ServeArgs, store: AnyStore) -> Result<OpenedDisk> {
    let recorder = Recorder::of(&args.open)?;
    let layers = open::layers(Recorder::under(store, recorder.as_ref()), &args.volume);
    let (store, pulse) = (layers.store.clone(), Arc::clone(&layers.pulse));
    let open = OpenArgs { cover: args.cover, ..args.open.clone() };
    let opened = open::volume_over(store, &args.volume, &open, recorder.as_ref(), true);
    let (mut volume, publisher) = opened?;
    let signals = signals::catch()?;
    publisher.describe(&volume.info()?, WatchedUse::Disk);
    let shown = || args.volume.display().to_string();
    let lanes = LaneMedium::disks(&mut volume, args.read_only).with_context(shown)?;
    let disk = Disk::open(Box::new(volume)).with_context(shown)?;
    layers.serve();
    let options = DiskOptions {
        read_only: args.read_only,
        commit_every: Duration::from_secs(args.commit_every),
        paced: args.open.pace.is_some() || args.cover.is_some(),
        timeout: Duration::from_secs(args.timeout),
        on_request: Some(Arc::new(move |event| publisher.ordinary(event))),
        pulse,
    };
    Ok(OpenedDisk { disk, lanes, options, signals, recorder })
}

/// Prints `line`, which says where the disk is served.
///
/// # Errors
/// Those of the terminal, or of leaving it.
pub fn announce(args: &ServeArgs, line: &str) -> Result<()> {
    if args.child {
        let id = std::process::id();
        let line = format!("{line} `kill {id}` ends it.");
        background::up((!args.open.quiet).then_some(line))?;
    } else if !args.open.quiet {
        human::say(format!("{line} Ctrl-C ends it."))?;
    }
    background::ready();
    Ok(())
}
