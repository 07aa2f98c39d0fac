//! The kernel's side of a file system: these threads queue requests with what hands their answers
//! to the kernel, nothing else.

use super::low_space::LowSpace;
use super::references::References;
use super::request::{MountQueue, MountReplier};
use super::writers::Writers;
use crate::fuse::{FileAnswer, FileOp, KernelReply, Manner, list_plus};
use fuser::Errno;
use oblivio_volume::fs::Ino;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender};
use std::time::Duration;

/// From this size on, handing data over takes longer than waking a thread to do it.
const LONG: usize = 64 << 10;

/// The outcome of a request.
type Outcome = Result<FileAnswer, Errno>;

/// An answer that takes long to hand over.
pub type Long = (KernelReply, Outcome);

/// Hands over long answers, on a thread of its own.
pub fn hand_over(long: &Receiver<Long>, manner: Manner) {
    while let Ok((reply, answer)) = long.recv() {
        reply.answer(answer, manner);
    }
}

/// The kernel's side of one file system of a mount.
pub struct MountKernel {
    pub queue: Arc<MountQueue>,
    /// Requests that must follow the kernel's cached writes of the file.
    pub flush: Sender<(FileOp, MountReplier)>,
    pub answers: Arc<AnswerNotes>,
}

/// What is noted as answers go to the kernel.
pub struct AnswerNotes {
    pub manner: Manner,
    pub writers: Writers,
    pub references: References,
    pub scarce: LowSpace,
    /// Answers that take long to hand over.
    pub long: Sender<Long>,
}

impl MountKernel {
    /// Queues a request, and its answer goes to the kernel.
    pub fn carry_out(&self, op: FileOp, reply: KernelReply) {
        let AnswerNotes { writers, scarce, .. } = &*self.answers;
        let mut opening = None;
        match op {
            FileOp::GetAttr { ino, fh: Some(fh) } if scarce.is_short() => {
                return self.ask(ino, fh, reply);
            }
            // The kernel has already written what it cached; nothing is left to do, and it need
            // not ask again.
            FileOp::Flush { .. } => return reply.error(Errno::ENOSYS),
            FileOp::Release { ino, fh, flags, .. } => {
                writers.closed(ino, flags);
                scarce.closed(fh);
            }
            FileOp::Open { ino, flags, .. } => opening = Some((ino, flags)),
            FileOp::Create { ref at, flags, .. } => opening = Some((at.parent, flags)),
            _ => {}
        }
        let after_writes = matches!(op, FileOp::Seek { ino, .. } if writers.has(ino));
        let answers = Arc::clone(&self.answers);
        let replier: MountReplier =
            Box::new(move |outcome| answers.hand_over(opening, reply, outcome));
        if !after_writes {
            self.queue.push(op, replier);
        } else if let Err(SendError((_, replier))) = self.flush.send((op, replier)) {
            replier(Err(Errno::EIO));
        }
    }

    /// The kernel takes back references to an inode.
    pub fn forget(&self, ino: Ino, lookups: u64) {
        if self.answers.references.forgotten(ino, lookups) {
            // No caller waits for an answer.
            self.queue.push(FileOp::Forget { ino }, Box::new(drop));
        }
    }

    /// A program is about to write: the kernel has already forgotten the attributes that it gets
    /// now.
    fn ask(&self, ino: Ino, fh: u64, reply: KernelReply) {
        let (manner, queue) = (self.answers.manner, Arc::clone(&self.queue));
        self.answers.scarce.before(ino, move || {
            let replier: MountReplier = Box::new(move |outcome| reply.answer(outcome, manner));
            queue.push(FileOp::Ask { ino, fh }, replier);
        });
    }
}

impl AnswerNotes {
    /// Hands an answer over, and notes what the kernel knows from now on. `opening` has the flags
    /// with which a file was to be opened.
    fn hand_over(&self, opening: Option<(Ino, i32)>, reply: KernelReply, outcome: Outcome) {
        let manner = self.manner;
        match (reply, outcome) {
            (reply @ KernelReply::Entry(_), Ok(FileAnswer::Entry(Some(attr)))) => {
                let ino = attr.ino;
                self.references.told(ino);
                reply.answer(Ok(FileAnswer::Entry(Some(attr))), manner);
                self.scarce.told(ino);
            }
            (reply @ KernelReply::Attr(_), Ok(FileAnswer::Attr(attr))) => {
                let ino = attr.ino;
                reply.answer(Ok(FileAnswer::Attr(attr)), manner);
                self.scarce.told(ino);
            }
            (KernelReply::DirectoryPlus(reply), Ok(FileAnswer::Listing(entries))) => {
                list_plus(reply, &entries, manner, |ino| {
                    self.references.told(ino);
                    self.scarce.told(ino);
                });
            }
            (reply @ KernelReply::Data(_), Ok(FileAnswer::Data(data))) if data.len() >= LONG => {
                // The server goes on during the hand-over. Without the thread, it happens here.
                if let Err(SendError((reply, answer))) =
                    self.long.send((reply, Ok(FileAnswer::Data(data))))
                {
                    reply.answer(answer, manner);
                }
            }
            (reply, Ok(answer @ (FileAnswer::Opened(..) | FileAnswer::Created(..)))) => {
                self.opened(opening, reply, answer);
            }
            (reply, outcome) => reply.answer(outcome, manner),
        }
    }

    fn opened(&self, opening: Option<(Ino, i32)>, reply: KernelReply, answer: FileAnswer) {
        let mut manner = self.manner;
        // A directory has no flags that matter.
        let Some((ino, flags)) = opening else { return reply.answer(Ok(answer), manner) };
        let (ino, fh, new) = match &answer {
            FileAnswer::Created(attr, fh, _) => (attr.ino, *fh, true),
            FileAnswer::Opened(fh, _) => (ino, *fh, false),
            _ => return reply.answer(Ok(answer), manner),
        };
        self.writers.opened(ino, flags);
        if new {
            self.references.told(ino);
            if self.scarce.asks_first(flags) {
                manner.ttl = Duration::ZERO;
            }
        }
        self.scarce.opened(ino, fh, flags, move || reply.answer(Ok(answer), manner));
        if new {
            self.scarce.created(ino);
        }
    }
}
