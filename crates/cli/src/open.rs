//! Opening a volume for a command, and closing it again whatever happens.

use crate::args::OpenArgs;
use crate::exit::{Code, fault, usage};
use crate::human::size;
use crate::others;
use crate::passphrase;
use crate::recorder::Recorder;
use crate::rendezvous;
use crate::unobserved::Unobserved;
use anyhow::{Context, Result};
use oblivio_app::place::{self, PlaceError};
use oblivio_app::{BesideFolder, Remembered};
use oblivio_crypto::Passphrase;
use oblivio_serve::layers::Layers;
use oblivio_serve::memory;
use oblivio_serve::watch::{Publisher, WatchedUse, watched};
use oblivio_store::AnyStore;
use oblivio_volume::disk::{self, Disk};
use oblivio_volume::fs::{FileSystem, Timestamp};
use oblivio_volume::{
    Beside, BlockSpace, ClosedVolume, DamagedPlace, Error as VolumeError, LaneStatus, LaneWait,
    OnShown, OpenLane, OpenOptions, Pace, Records, Volume, VolumeInfo, Which,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// An open file system and what its volume reported about itself.
pub struct OpenSession {
    pub fs: FileSystem,
    pub info: VolumeInfo,
    /// Reports operations to `oblivio watch`, if it is there.
    pub publisher: Publisher,
}

/// The store in an existing folder, file or partition, or at a URL.
pub fn store(folder: &Path) -> Result<AnyStore> {
    keep_service_secrets(folder);
    found(folder, place::open_patiently(folder))
}

/// The same for a server, which has its own layer over outages.
pub fn store_to_serve(folder: &Path) -> Result<AnyStore> {
    keep_service_secrets(folder);
    found(folder, place::open(folder))
}

/// What opens a service is fetched before any passphrase.
fn keep_service_secrets(folder: &Path) {
    if place::is_online(folder) {
        passphrase::holds_secrets();
    }
}

/// The layers that a server has over it.
pub fn layers(store: AnyStore, folder: &Path) -> Layers {
    match place::network(folder) {
        Some(network) => Layers::online(store, network.patience, network.answers),
        None => Layers::over(store),
    }
}

fn found(folder: &Path, store: Result<AnyStore, PlaceError>) -> Result<AnyStore> {
    store.map_err(|error| match error {
        PlaceError::Missing(_) => {
            let shown = folder.display();
            let hint = format!("Check the path, or make a volume there: oblivio init {shown}");
            fault(Code::Path, error.to_string(), hint)
        }
        PlaceError::NoVolume(_) => {
            let hint = "Name the folder, file or partition that `oblivio init` made.";
            fault(Code::NotAVolume, error.to_string(), hint)
        }
        PlaceError::Url { .. } => {
            let hint = "`oblivio init --help` shows URLs; no password is part of one.";
            fault(Code::Usage, error.to_string(), hint)
        }
        PlaceError::OnlineOnly { .. } => {
            let hint = "Tell the client to keep the folder on this computer (\"always available\", no \
                        virtual files), wait for it, and try again. Or use a volume at a URL.";
            fault(Code::StillToCome, error.to_string(), hint)
        }
        PlaceError::Store(error) => error.into(),
    })
}

/// The options of the user and the record of this computer, for the volume at this place.
pub fn options(folder: &Path, args: &OpenArgs, on_shown: Option<OnShown>) -> Result<OpenOptions> {
    let remembered = Remembered::at(folder, args.accept_other_volume)?;
    // A session without writes leaves no new state to remember.
    let remembered = if args.unobserved { remembered.unchanged() } else { remembered };
    Ok(OpenOptions {
        memory_bytes: wanted_memory(args)?,
        keeper: Some(Box::new(remembered)),
        accept_rollback: args.accept_rollback,
        beside: beside(folder, args)?,
        history: history(args),
        incomplete: args.incomplete,
        pad: args.pad,
        pace: args.pace.map(pace),
        cover: args.cover.map(Duration::from_secs),
        records: if args.strict { Records::First } else { Records::Ahead },
        on_shown,
        host: oblivio_app::others::host(),
        on_wait: (!args.take_over).then(|| others::on_wait(args.quiet)),
        ..OpenOptions::default()
    })
}

/// This computer's own place for a volume in a folder that a sync client copies. Without one
/// nothing is kept, as suits a session that leaves no trace.
fn beside(folder: &Path, args: &OpenArgs) -> Result<Option<Arc<dyn Beside>>> {
    if args.unobserved || place::is_online(folder) {
        return Ok(None);
    }
    Ok(Some(Arc::new(BesideFolder::at(folder)?)))
}

fn history(args: &OpenArgs) -> Which {
    match &args.history {
        Some(name) => Which::View(name.clone()),
        None if args.older => Which::Older,
        None => Which::Newest,
    }
}

/// Larger batches would not fit the processor's caches.
const MOST_IN_TICK: u32 = 64;

/// The pace of this many accesses a second, in twenty batches or more.
pub fn pace(accesses: u32) -> Pace {
    let batch = accesses.div_ceil(20).clamp(1, MOST_IN_TICK);
    let interval = Duration::from_secs_f64(f64::from(batch) / f64::from(accesses.max(1)));
    Pace { interval, batch: batch as usize }
}

fn wanted_memory(args: &OpenArgs) -> Result<usize> {
    // Without a size each engine takes its default.
    let bytes = args.memory.unwrap_or(0);
    usize::try_from(bytes).context("more memory than this computer can address")
}

/// Opens a volume without its file system, and its feed to `oblivio watch`.
pub fn volume(
    folder: &Path,
    args: &OpenArgs,
    recorder: Option<&Recorder>,
) -> Result<(Volume, Publisher)> {
    let store = store(folder)?;
    let store = Recorder::under(store, recorder);
    volume_over(store, folder, args, recorder, false)
}

/// Opens a volume on an existing store; `folder` is its name for people. A mount asks for short
/// pauses.
pub fn volume_over(
    store: AnyStore,
    folder: &Path,
    args: &OpenArgs,
    recorder: Option<&Recorder>,
    short_pauses: bool,
) -> Result<(Volume, Publisher)> {
    volume_by(store, folder, (args, None), recorder, short_pauses)
}

/// As [`volume_over`], by a passphrase that is known already: it is given only once.
pub fn volume_by(
    store: AnyStore,
    folder: &Path,
    (args, known): (&OpenArgs, Option<&Passphrase>),
    recorder: Option<&Recorder>,
    short_pauses: bool,
) -> Result<(Volume, Publisher)> {
    if args.unobserved && place::is_online(folder) {
        let what = "--unobserved is for media where nobody sees what is read";
        return Err(usage(what, "Leave it out: a service sees what is read in it."));
    }
    refuse_token_file(args)?;
    let store = match args.unobserved {
        true => Arc::new(Unobserved::over(store.objects()).context("a temporary file")?).into(),
        false => store,
    };
    if args.take_over && !place::is_online(folder) {
        let hint = "Leave it out: a volume in a folder is locked as long as it is in use.";
        return Err(usage("--take-over is for a volume at a URL", hint));
    }
    // Before asking for the passphrase: a mistyped folder is reported first. The header is read
    // only once: it is not authenticated yet, and opening authenticates this same reading.
    let closed = ClosedVolume::read(store).with_context(|| folder.display().to_string())?;
    let header = closed.header();
    if let Some(recorder) = recorder {
        recorder.volume(header.volume.to_string(), header.engine.name);
    }
    let publisher = rendezvous::publisher(header.volume);
    let closed = if header.engine.hides_reads {
        if args.cover.is_some() {
            let what = "--cover is for a volume against snapshots";
            return Err(usage(what, "Leave it out; --pace does here what it does there."));
        }
        closed
    } else {
        refuse_what_hides_reads(args)?;
        closed.over(|store| watched(store, &publisher))?
    };
    let on_shown = both(publisher.callback(), recorder.map(Recorder::callback));
    let mut options = OpenOptions { short_pauses, ..options(folder, args, Some(on_shown))? };
    if short_pauses && header.engine.hides_reads && options.memory_bytes == 0 {
        options.memory_bytes = memory::of_server();
    }
    if place::is_online(folder) {
        options.cache = oblivio_app::cache::of(header.volume, args.disk_cache);
        // Only a server can end when it is asked to.
        options.on_wanted = short_pauses.then(others::on_wanted);
    }
    let mut volume = match known {
        Some(known) => closed.open(known, options)?,
        None => closed.open(&passphrase::known(&args.passphrase)?, options)?,
    };
    tell_damage(&volume, &[]);
    refuse_with_lane(&mut volume, args, &publisher)?;
    Ok((volume, publisher))
}

/// What is read of a lane that is open must stay nowhere: no trace is kept, and nobody watches.
fn refuse_with_lane(volume: &mut Volume, args: &OpenArgs, publisher: &Publisher) -> Result<()> {
    let lanes = volume.lanes(LaneWait::default());
    if lanes.iter().all(Option::is_none) {
        return Ok(());
    }
    lanes.iter().enumerate().for_each(|(at, lane)| tell_grace(at + 1, lane.as_ref()));
    publisher.silence();
    let Some(path) = &args.trace_out else { return Ok(()) };
    std::fs::remove_file(path).with_context(|| format!("the trace {}", path.display()))?;
    let what = "a trace would keep what is read of the lane that this passphrase opens";
    Err(usage(what, "Leave --trace-out out, or open the volume by its own passphrase."))
}

/// Says what was damaged, but for what was said already, whatever else the command says: a disk
/// that fails begins so.
pub fn tell_damage(volume: &Volume, told: &[DamagedPlace]) {
    for place in volume.damaged().iter().filter(|place| !told.contains(place)) {
        let then = match place.has_copy() {
            true => "Its second copy was read instead",
            false => "The volume does without it, and writes it anew with what is written next",
        };
        eprintln!("damaged: {place}. {then}.");
    }
}

/// Refuses a token, for a volume that is not shared.
pub fn refuse_token_file(args: &OpenArgs) -> Result<()> {
    match args.token_file {
        None => Ok(()),
        Some(_) => {
            let hint = "Leave it out, or name one as share://HOST:PORT/NAME.";
            Err(usage("--token-file is for a shared volume", hint))
        }
    }
}

/// Refuses what means nothing for a volume that does not exist yet: `init --help` does not show it.
pub fn refuse_what_needs_a_volume(args: &OpenArgs) -> Result<()> {
    let given = [
        (args.accept_rollback, "--accept-rollback"),
        (args.take_over, "--take-over"),
        (args.unobserved, "--unobserved"),
        (args.older, "--older"),
        (args.history.is_some(), "--history"),
        (args.incomplete, "--incomplete"),
        (args.trace_out.is_some(), "--trace-out"),
    ];
    match given.into_iter().find(|(given, _)| *given) {
        Some((_, option)) => {
            let what = format!("{option} is about a volume that is there already");
            Err(usage(what, "Leave it out: this one is new."))
        }
        None => Ok(()),
    }
}

/// Says of an open lane that less than half of its grace is left.
fn tell_grace(number: usize, lane: Option<&OpenLane>) {
    let Some(LaneStatus { grace_left_bytes: left, grace_bytes, .. }) =
        lane.map(|lane| lane.sync.status()).filter(|it| it.grace_left_bytes < it.grace_bytes / 2)
    else {
        return;
    };
    eprintln!(
        "oblivio: lane {number} has {} of its grace of {} left: open the volume by the lane's \
         passphrase, and write to it, before more is written without",
        size(left),
        size(grace_bytes)
    );
}

/// Refuses cover where nothing may be written.
pub fn refuse_cover(cover: Option<u64>, read_only: bool) -> Result<()> {
    if cover.is_some() && read_only {
        return Err(usage("--cover writes, and --read-only refuses it", "Leave one of them out."));
    }
    Ok(())
}

/// Refuses options that hide reads, for a volume whose reads nobody sees.
fn refuse_what_hides_reads(args: &OpenArgs) -> Result<()> {
    let given = [(args.pad, "--pad"), (args.pace.is_some(), "--pace"), (args.strict, "--strict")];
    match given.into_iter().find(|(given, _)| *given) {
        Some((_, option)) => {
            let what = format!("{option} is about reads, which this volume does not hide");
            Err(usage(what, "Leave it out; what is written tells nothing of what was done."))
        }
        None => Ok(()),
    }
}

fn both(mut one: OnShown, other: Option<OnShown>) -> OnShown {
    let Some(mut other) = other else { return one };
    Box::new(move |shown| {
        one(shown);
        other(shown);
    })
}

/// Puts a file system over an open volume and reads `read_ahead` blocks of metadata together, in
/// advance.
pub fn file_system(
    (volume, publisher): (Volume, Publisher),
    read_ahead: usize,
) -> Result<OpenSession> {
    let info = volume.info()?;
    publisher.describe(&info, WatchedUse::Files);
    let fs = FileSystem::open_ahead(Box::new(volume), read_ahead)?;
    fs.set_clock(Box::new(now));
    Ok(OpenSession { fs, info, publisher })
}

/// Runs a command on the file system of a volume and closes the volume after it.
pub fn with<T>(
    folder: &Path,
    args: &OpenArgs,
    work: impl FnOnce(&OpenSession) -> Result<T>,
) -> Result<T> {
    with_either(folder, args, work, |_, _| Err(VolumeError::HoldsDisk.into()))
}

/// As [`with`], for a command that also handles a disk.
pub fn with_either<T>(
    folder: &Path,
    args: &OpenArgs,
    files: impl FnOnce(&OpenSession) -> Result<T>,
    disk: impl FnOnce(&Disk, &VolumeInfo) -> Result<T>,
) -> Result<T> {
    let recorder = Recorder::of(args)?;
    let opened = volume(folder, args, recorder.as_ref())?;
    let (done, closed) = if disk::size_in(opened.0.root())?.is_some() {
        let info = opened.0.info()?;
        let opened = Disk::open(Box::new(opened.0))?;
        let done = disk(&opened, &info);
        let closed = close(&done, opened, Disk::into_blocks, Disk::give_up);
        (done, closed)
    } else {
        // Metadata that is not read ahead shows when it is needed.
        let ahead = if args.pad { usize::MAX } else { 0 };
        let session = file_system(opened, ahead)?;
        let done = files(&session);
        let closed = close(&done, session.fs, FileSystem::into_blocks, FileSystem::give_up);
        (done, closed)
    };
    // Keep the record however the command ended: the store has seen it.
    let recorded = recorder.map_or(Ok(()), Recorder::finish);
    let value = done?;
    closed?;
    recorded?;
    Ok(value)
}

/// Ends the session whatever the command's outcome. A commit then covers everything that was shown,
/// unless the volume itself has failed. Then others need not wait for this computer.
fn close<T, V>(
    done: &Result<T>,
    opened: V,
    finish: impl FnOnce(V) -> oblivio_volume::Result<Box<dyn BlockSpace>>,
    give_up: impl FnOnce(V),
) -> Result<()> {
    match done {
        Err(error) if crate::exit::store_failed(error) => Ok(()),
        Err(error) if crate::exit::volume_failed(error) => {
            give_up(opened);
            Ok(())
        }
        _ => Ok(finish(opened).map(drop)?),
    }
}

/// The time of this computer's clock.
pub fn now() -> Timestamp {
    SystemTime::now().into()
}
