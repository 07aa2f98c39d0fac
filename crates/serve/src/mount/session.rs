//! A file system on a directory: the threads of a mount and how it ends.

use super::attach::{self, Look};
use super::kernel::MountKernel;
use super::parts::{MountParts, lane_name};
use super::request::MountQueue;
use super::server::{MountServer, MountSettings, OnRequest};
use super::threads::{self, MountThreads};
use crate::error::Result;
use crate::fuse::{self, FileAnswer, FileOp, FileOpKind, MountPart, errno};
use crate::lanes::{LONG, LaneMedium, LaneReplies, LaneTally, Queues, ServedLane};
use crate::log;
use crate::queue::Pulse;
use crate::server::Running;
use crate::threads::spawn;
use crate::watch::{OrdinaryEvent, Publisher};
use fuser::Errno;
use oblivio_volume::Error as VolumeError;
use oblivio_volume::fs::{FileSystem, ROOT_INO};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Blocks of metadata that are read before a mount is up.
pub const READ_AHEAD: usize = 64;

/// The parameters of a mount.
pub struct MountOptions {
    /// What the system shows of it.
    pub look: Look,
    /// The longest time between a change and its commit.
    pub commit_every: Duration,
    /// Whether the volume works at a pace.
    pub paced: bool,
    /// How long a request waits for a store that makes no progress.
    pub timeout: Duration,
    /// Observes each request, to show what ordinary encryption would reveal.
    pub on_request: Option<OnRequest>,
    /// Grows while the store makes progress.
    pub pulse: Pulse,
}

/// Reports each read and write to the watcher of a volume, as ordinary encryption would show it.
pub fn report_to(publisher: Publisher) -> OnRequest {
    Box::new(move |kind, ino, offset, len| {
        let event = match kind {
            FileOpKind::Read => OrdinaryEvent::read(ino, offset + len, offset, len),
            FileOpKind::Write => OrdinaryEvent::write(ino, offset + len, offset, len),
            _ => return,
        };
        publisher.ordinary(event);
    })
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            look: Look { source: "oblivio".into(), ..Look::default() },
            commit_every: Duration::from_secs(5),
            paced: false,
            timeout: Duration::from_secs(20),
            on_request: None,
            pulse: Pulse::default(),
        }
    }
}

/// The queues of a volume's files and of its lanes' files.
pub(super) type MountQueues = Queues<FileOp, FileAnswer, Errno>;

/// An active mount. It ends when anybody unmounts the directory.
pub struct Mounted {
    pub(super) queues: MountQueues,
    server: Running,
    lanes: Vec<ServedLane>,
    /// The number of files that lost data.
    pub(super) lost: Arc<AtomicU64>,
}

/// A file system of a mount before its threads are started.
struct Prepared {
    kernel: MountKernel,
    threads: MountThreads,
    server: MountServer,
}

/// Mounts a file system and those of its open lanes, and serves them on threads of its own.
///
/// # Errors
/// That of the system if it refuses the mount.
pub fn serve(
    fs: FileSystem,
    lanes: Vec<Option<LaneMedium<FileSystem>>>,
    dir: &Path,
    options: MountOptions,
) -> Result<Mounted> {
    let lost = Arc::<AtomicU64>::default();
    let own = Arc::new(MountQueue::new(options.timeout, Arc::clone(&options.pulse)));
    let queue = |_: &_| Arc::new(MountQueue::new(LONG, Arc::clone(&options.pulse)));
    let queues = Queues { own, lanes: lanes.iter().map(|lane| lane.as_ref().map(queue)).collect() };
    let device = attach::attach(dir, &options.look)?;
    match start(fs, lanes, device, (&queues, &lost), options) {
        Ok((server, lanes)) => {
            attach::tune(dir);
            Ok(Mounted { queues, server, lanes, lost })
        }
        Err(error) => {
            queues.kill();
            let _ = attach::detach(dir, true);
            Err(error)
        }
    }
}

fn start(
    fs: FileSystem,
    lanes: Vec<Option<LaneMedium<FileSystem>>>,
    device: std::os::fd::OwnedFd,
    (queues, lost): (&MountQueues, &Arc<AtomicU64>),
    options: MountOptions,
) -> Result<(Running, Vec<ServedLane>)> {
    let is_open = |number: &usize| lanes.get(*number).is_some_and(Option::is_some);
    let hidden = (0..lanes.len()).filter(is_open).map(lane_name).collect();
    let MountOptions { commit_every, paced, on_request, .. } = options;
    let settings =
        MountSettings { commit_every, paced, on_request, hidden, lost: Arc::clone(lost) };
    let own = prepare(fs, (MountPart::OWN, &queues.own), settings)?;
    let (mut kernels, mut threads, mut servers) = (Vec::new(), vec![own.threads], Vec::new());
    for (number, (lane, queue)) in lanes.into_iter().zip(&queues.lanes).enumerate() {
        let (Some(lane), Some(queue), Some(part)) = (lane, queue, MountPart::lane(number)) else {
            kernels.push(None);
            continue;
        };
        let LaneMedium { medium, tally } = lane;
        let lost = Arc::clone(lost);
        let settings = MountSettings { commit_every, lost, ..MountSettings::default() };
        let prepared = prepare(medium, (part, queue), settings)?;
        kernels.push(Some(prepared.kernel));
        threads.push(prepared.threads);
        servers.push((prepared.server, queue, tally));
    }
    let session = fuse::session(MountParts::of(own.kernel, kernels), device, 1)?;
    for threads in threads {
        threads.start(session.notifier())?;
    }
    let ended = queues.clone();
    spawn("kernel", move || {
        if let Err(error) = session.run() {
            log::note(&format!("the line to the kernel broke: {error}"));
        }
        ended.close();
    })?;
    let start = |(server, queue, tally)| log::hushed(|| start_lane(server, queue, tally));
    let lanes = servers.into_iter().map(start).collect::<Result<_>>()?;
    Ok((Running::start(&queues.own, move || own.server.run())?, lanes))
}

fn prepare(
    fs: FileSystem,
    (part, queue): (MountPart, &Arc<MountQueue>),
    settings: MountSettings,
) -> Result<Prepared> {
    let (kernel, tells, threads) = threads::of(&fs, part, queue)?;
    let server = MountServer::new(fs, Arc::clone(queue), settings, tells);
    Ok(Prepared { kernel, threads, server })
}

fn start_lane(
    mut server: MountServer,
    queue: &Arc<MountQueue>,
    tally: LaneTally,
) -> Result<ServedLane> {
    server.carried = Some(LaneReplies::start(tally.clone(), || FileAnswer::Done, not_carried)?);
    Ok(ServedLane::start(queue, tally, move || server.run())?)
}

/// What a program reads whose sync waited in vain.
fn not_carried(error: &VolumeError) -> Errno {
    match error {
        VolumeError::Full(_) => Errno::EDQUOT,
        error => errno::of(error),
    }
}

impl Mounted {
    /// Waits until the mount has ended and everything is committed.
    ///
    /// # Errors
    /// The first that ended a server. A lane had more to write than the volume carried.
    pub fn wait(self) -> Result<()> {
        ServedLane::wait_all(self.lanes, &self.queues.own, self.server)
    }

    /// Requests a commit; the answer comes when it is done.
    pub fn commit(queue: &MountQueue) -> Receiver<bool> {
        let (done, answer): (Sender<bool>, _) = channel();
        let reply = Box::new(move |result: Result<_, _>| {
            let _ = done.send(result.is_ok());
        });
        queue.push(FileOp::Sync { ino: ROOT_INO, fh: None }, reply);
        answer
    }
}
