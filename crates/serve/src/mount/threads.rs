//! The threads beside the server of one file system of a mount. Each speaks to the kernel where the
//! server must not: the kernel may make us wait for an inode that waits for the server.

use super::kernel::{self, AnswerNotes, Long, MountKernel};
use super::low_space::{self, LowSpace};
use super::notices::KernelNotices;
use super::parts::TTL;
use super::references::References;
use super::request::{self, MountQueue, MountReplier};
use super::tells::{Late, ServerTells, Unlearn};
use super::writers::{self, Writers};
use crate::error::Result;
use crate::fuse::{FileAnswer, FileOp, Manner, MountPart};
use crate::threads::spawn;
use fuser::Notifier;
use oblivio_volume::fs::FileSystem;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// What they hear, until they are started.
pub struct MountThreads {
    manner: Manner,
    queue: Arc<MountQueue>,
    late: Receiver<Late>,
    outdated: Receiver<Unlearn>,
    tasks: Receiver<low_space::Task>,
    kept: low_space::Kept,
    unflushed: Receiver<(FileOp, MountReplier)>,
    answers: Receiver<Long>,
}

/// The kernel's side of a file system, what its server tells, and the threads to be started.
///
/// # Errors
/// Those of the volume.
pub fn of(
    fs: &FileSystem,
    part: MountPart,
    queue: &Arc<MountQueue>,
) -> Result<(MountKernel, ServerTells, MountThreads)> {
    // Far below the bound.
    let block_bytes = u32::try_from(fs.usage()?.block_bytes).unwrap_or(u32::MAX);
    let manner = Manner { ttl: TTL, block_bytes, part };
    let (to_late, late) = channel();
    let (unlearn, outdated) = channel();
    let (to_do, tasks) = channel();
    let (flush, unflushed) = channel();
    let (long, answers) = channel();
    let references = References::default();
    let known = references.clone();
    fs.keep_while(Box::new(move |ino| known.keep(ino)));
    let scarce = LowSpace::new(to_do);
    let kept = scarce.kept();
    let tells = ServerTells { late: to_late, unlearn, scarce: scarce.clone() };
    let writers = Writers::default();
    let notes = Arc::new(AnswerNotes { manner, writers, references, scarce, long });
    let kernel = MountKernel { queue: Arc::clone(queue), flush, answers: notes };
    let queue = Arc::clone(queue);
    let threads = MountThreads { manner, queue, late, outdated, tasks, kept, unflushed, answers };
    Ok((kernel, tells, threads))
}

impl MountThreads {
    /// Starts them. They end with those who tell them.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn start(self, notifier: Notifier) -> io::Result<()> {
        let notices = KernelNotices { notifier, part: self.manner.part };
        let (answers, manner) = (self.answers, self.manner);
        spawn("answers", move || kernel::hand_over(&answers, manner))?;
        let (late, ear) = (self.late, notices.clone());
        spawn("forget", move || forget_late(&late, &ear))?;
        let (tasks, ear, kept) = (self.tasks, notices.clone(), self.kept);
        spawn("scarce", move || low_space::speak(&tasks, &ear, &kept))?;
        let (outdated, ear, queue) = (self.outdated, notices.clone(), Arc::clone(&self.queue));
        spawn("attributes", move || unlearn(&outdated, &ear, &queue))?;
        let (unflushed, queue) = (self.unflushed, self.queue);
        spawn("flush", move || writers::flush(&unflushed, &notices, &queue))?;
        Ok(())
    }
}

fn forget_late(forget: &Receiver<Late>, notices: &KernelNotices) {
    while let Ok(late) = forget.recv() {
        match late {
            Late::Name(parent, name) => notices.forget_name(parent, &name),
            Late::Inode(ino) => notices.forget(ino),
        }
    }
}

/// Makes the kernel forget attributes before it gets each answer. The waiting callers hold these
/// inodes, so the kernel waits for no other inode.
fn unlearn(outdated: &Receiver<Unlearn>, notices: &KernelNotices, queue: &MountQueue) {
    while let Ok(Unlearn { ino, slot, answer }) = outdated.recv() {
        notices.forget(ino);
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
