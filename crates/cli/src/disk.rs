//! What serving a disk begins and ends with, whoever its clients are.

use crate::args::ServeArgs;
use crate::exit::usage;
use crate::human;
use crate::mount::{self, background, log};
use crate::nbd::server::OnRequest;
use crate::open;
use crate::queue::Pulse;
use crate::recorder::Recorder;
use crate::signals;
use crate::unobserved;
use crate::watch::Holds;
use anyhow::{Context, Result};
use oblivio_store::Store;
use oblivio_volume::disk::Disk;
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// A disk that can be served.
pub struct Opened {
    pub disk: Disk,
    /// Grows while the store is at work.
    pub pulse: Pulse,
    /// Tells `oblivio watch` of each request.
    pub on_request: OnRequest,
    pub signals: Signals,
    pub recorder: Option<Recorder>,
}

/// The store, in the process that is to serve; `None` in one that has started another for it, in
/// the background.
///
/// # Errors
/// Says what is wrong with the options or the place.
pub fn begin(args: &ServeArgs) -> Result<Option<Arc<dyn Store>>> {
    if args.commit_every == 0 || args.timeout == 0 {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    if !args.read_only {
        unobserved::refuse_changes(&args.open)?;
    }
    let store = open::store(&args.volume)?;
    if args.background && !args.child {
        background::start(&args.volume, &args.open)?;
        return Ok(None);
    }
    Ok(Some(store))
}

/// Opens the disk. From here on a signal ends the server in good order, not the process.
///
/// # Errors
/// Those of opening a volume, or it holds no disk.
pub fn open(args: &ServeArgs, store: Arc<dyn Store>) -> Result<Opened> {
    let recorder = Recorder::of(&args.open)?;
    let (store, pulse) = mount::layers(mount::recorded(store, recorder.as_ref()));
    let opened = open::volume_over(store, &args.volume, &args.open, recorder.as_ref(), true);
    let (volume, publisher) = opened?;
    let signals = signals::catch()?;
    publisher.describe(&volume.info()?, Holds::Disk);
    let disk = Disk::open(Box::new(volume)).with_context(|| args.volume.display().to_string())?;
    let on_request: OnRequest = Arc::new(move |event| publisher.ordinary(event));
    Ok(Opened { disk, pulse, on_request, signals, recorder })
}

/// Says that the disk is served, in a sentence that tells where.
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
    log::ready();
    Ok(())
}
