//! A file system on a directory: the threads of a mount and how it ends.

use super::attach::{self, Look};
use super::kernel::{self, AnswerNotes, MountKernel};
use super::low_space::{self, LowSpace};
use super::references::References;
use super::request::{self, MountQueue};
use super::server::{Late, MountServer, MountSettings, OnRequest, Unlearn};
use super::writers::{self, Writers};
use crate::error::Result;
use crate::fuse::{self, FileAnswer, FileOp, FileOpKind};
use crate::log;
use crate::queue::Pulse;
use crate::server::Running;
use crate::threads::spawn;
use crate::watch::{OrdinaryEvent, Publisher};
use fuser::INodeNo;
use oblivio_volume::fs::{FileSystem, ROOT_INO};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
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

/// An active mount. It ends when anybody unmounts the directory.
pub struct Mounted {
    pub(super) queue: Arc<MountQueue>,
    server: Running,
    /// The number of files that lost data.
    pub(super) lost: Arc<AtomicU64>,
}

/// Mounts a file system and serves it on threads of its own.
pub fn serve(fs: FileSystem, dir: &Path, options: MountOptions) -> Result<Mounted> {
    // Far below the bound.
    let block_bytes = u32::try_from(fs.usage()?.block_bytes).unwrap_or(u32::MAX);
    let queue = Arc::new(MountQueue::new(options.timeout, options.pulse));
    let device = attach::attach(dir, &options.look)?;
    let (late, forget) = channel();
    let (tasks, to_do) = channel();
    let scarce = LowSpace::new(tasks);
    let (unlearn, outdated) = channel();
    let settings = MountSettings {
        scarce: scarce.clone(),
        commit_every: options.commit_every,
        paced: options.paced,
        on_request: options.on_request,
        late: Some(late),
        lost: Arc::default(),
        unlearn: Some(unlearn),
    };
    let lost = Arc::clone(&settings.lost);
    match start(fs, device, block_bytes, &queue, settings, (forget, to_do, outdated)) {
        Ok(server) => {
            attach::tune(dir);
            Ok(Mounted { queue, server, lost })
        }
        Err(error) => {
            queue.kill();
            let _ = attach::detach(dir, true);
            Err(error)
        }
    }
}

fn start(
    fs: FileSystem,
    device: std::os::fd::OwnedFd,
    block_bytes: u32,
    queue: &Arc<MountQueue>,
    settings: MountSettings,
    (forget, to_do, outdated): (Receiver<Late>, Receiver<low_space::Task>, Receiver<Unlearn>),
) -> Result<Running> {
    let (flush, unflushed) = channel();
    let references = References::default();
    let known = references.clone();
    fs.keep_while(Box::new(move |ino| known.keep(ino)));
    let writers = Writers::default();
    let (long, answers) = channel();
    spawn("answers", move || kernel::hand_over(&answers, block_bytes))?;
    let scarce = settings.scarce.clone();
    let kept = scarce.kept();
    let answers = Arc::new(AnswerNotes { block_bytes, writers, references, scarce, long });
    let kernel = MountKernel { queue: Arc::clone(queue), flush, answers };
    let session = fuse::session(kernel, device, 1)?;
    let notifier = session.notifier();
    spawn("forget", move || forget_late(&forget, &notifier))?;

    let notifier = session.notifier();
    spawn("scarce", move || low_space::speak(&to_do, &notifier, &kept))?;
    let (closing, notifier) = (Arc::clone(queue), session.notifier());
    spawn("attributes", move || unlearn(&outdated, &notifier, &closing))?;

    let (flushed, notifier) = (Arc::clone(queue), session.notifier());
    spawn("flush", move || writers::flush(&unflushed, &notifier, &flushed))?;

    let ended = Arc::clone(queue);
    spawn("kernel", move || {
        if let Err(error) = session.run() {
            log::note(&format!("the line to the kernel broke: {error}"));
        }
        ended.close();
    })?;

    let server = MountServer::new(fs, Arc::clone(queue), settings);
    Ok(Running::start(queue, move || server.run())?)
}

/// On a thread of its own: the kernel may make us wait for an inode that waits for the server.
fn forget_late(forget: &Receiver<Late>, notifier: &fuser::Notifier) {
    while let Ok(late) = forget.recv() {
        // It may have forgotten by itself.
        let _ = match late {
            Late::Name(parent, name) => {
                notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(&name))
            }
            Late::Inode(ino) => notifier.inval_inode(INodeNo(ino), -1, 0),
        };
    }
}

/// Makes the kernel forget attributes before it gets each answer. The waiting callers hold these
/// inodes, so the kernel waits for no other inode.
fn unlearn(outdated: &Receiver<Unlearn>, notifier: &fuser::Notifier, queue: &MountQueue) {
    while let Ok(Unlearn { ino, slot, answer }) = outdated.recv() {
        let _ = notifier.inval_inode(INodeNo(ino), -1, 0);
        let opened = match &answer {
            Ok(FileAnswer::Opened(fh, _)) => Some(*fh),
            _ => None,
        };
        // Too late: nobody will close this handle.
        if let (false, Some(fh)) = (slot.answer(answer), opened) {
            queue.push(request::close(fh), Box::new(drop));
        }
    }
}

impl Mounted {
    /// Waits until the mount has ended and everything is committed.
    pub fn wait(self) -> Result<()> {
        self.server.wait()
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
