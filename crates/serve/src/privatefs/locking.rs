//! Locks of files: the kernel's requests, and those that wait.
//!
//! The crate that decodes requests does not say whether a lock is one of `flock` or of `fcntl`. So
//! here both meet: a program that takes both kinds on one file, through two open files, waits for
//! itself.

use super::notify::Pages;
use crate::fuse::{FileAnswer, KernelReply, LockRequest, Manner, Served, done};
use crate::threads::spawn;
use fuser::Errno;
use oblivio_privatefs::{Error, Lock, LockKind, LockOwner as Holder, NodeAttr, Owner, PrivateFs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const F_RDLCK: i32 = 0;
const F_WRLCK: i32 = 1;
pub const F_UNLCK: i32 = 2;
/// The first pause of who waits for a lock, in milliseconds; each further one is longer.
const FIRST_PAUSE: u64 = 5;
const LAST_PAUSE: u64 = 320;
/// The kernel cannot say that a waiting program was killed. After this long it is not waited for.
const MOST_PAUSES: u32 = 2000;

pub fn holder(owner: u64) -> Holder {
    Holder { number: owner, whole_file: false }
}

/// Where the outcome of a request goes.
pub struct LockReply {
    pub reply: KernelReply,
    pub manner: Manner,
}

impl LockReply {
    pub fn outcome(self, served: Served) {
        self.reply.answer(served.map_err(|fail| fail.errno()), self.manner);
    }
}

/// The lock that is asked for; none to give one back.
fn wanted(asked: &LockRequest) -> Option<Lock> {
    let kind = match asked.kind {
        F_RDLCK => LockKind::Shared,
        F_WRLCK => LockKind::Exclusive,
        _ => return None,
    };
    Some(Lock { kind, start: asked.range.0, end: asked.range.1, pid: asked.pid })
}

pub fn get(fs: &PrivateFs, id: Owner, asked: &LockRequest) -> Served {
    let lock = wanted(asked).ok_or(Errno::EINVAL)?;
    Ok(match fs.lock_in_the_way(id, holder(asked.owner), lock)? {
        None => FileAnswer::Lock { range: asked.range, kind: F_UNLCK, pid: 0 },
        Some(held) => {
            let kind = if held.kind == LockKind::Exclusive { F_WRLCK } else { F_RDLCK };
            FileAnswer::Lock { range: (held.start, held.end), kind, pid: held.pid }
        }
    })
}

/// A file and what is asked about a lock of it.
pub type LockQuestion = (Owner, LockRequest);

pub fn set(
    fs: &Arc<PrivateFs>,
    pages: &Arc<Pages>,
    (id, asked): LockQuestion,
    waits: bool,
    reply: LockReply,
) {
    let Some(lock) = wanted(&asked) else {
        let given_back = fs.unlock(id, holder(asked.owner), asked.range);
        return reply.outcome(done(given_back));
    };
    match take(fs, (id, asked), lock) {
        Err(Error::Locked) if waits => wait(fs, pages, (id, asked), lock, reply),
        Ok(node) if !pages.are_of(asked.ino, &node) => {
            // On a thread of its own: the kernel may ask something before it forgets.
            let pages = Arc::clone(pages);
            let forgetting = spawn("lock", move || {
                pages.forget(asked.ino);
                reply.outcome(Ok(FileAnswer::Done));
            });
            drop(forgetting);
        }
        taken => reply.outcome(done(taken.map(drop))),
    }
}

/// Who gets a lock sees what the one before wrote, as with NFS.
fn take(fs: &PrivateFs, (id, asked): LockQuestion, lock: Lock) -> Result<NodeAttr, Error> {
    fs.lock(id, holder(asked.owner), lock)?;
    fs.attr_now(id)
}

/// On a thread of its own: those that serve the kernel must stay free for who unlocks.
fn wait(fs: &Arc<PrivateFs>, pages: &Arc<Pages>, of: LockQuestion, lock: Lock, reply: LockReply) {
    let (fs, pages) = (Arc::clone(fs), Arc::clone(pages));
    let waiting = spawn("lock", move || {
        let mut pause = FIRST_PAUSE;
        for _ in 0..MOST_PAUSES {
            thread::sleep(Duration::from_millis(pause));
            pause = (pause * 2).min(LAST_PAUSE);
            match take(&fs, of, lock) {
                Err(Error::Locked) => {}
                Err(error) => return reply.outcome(Err(error.into())),
                Ok(node) => {
                    if !pages.are_of(of.1.ino, &node) {
                        pages.forget(of.1.ino);
                    }
                    return reply.outcome(Ok(FileAnswer::Done));
                }
            }
        }
        reply.outcome(Err(Errno::EAGAIN.into()));
    });
    drop(waiting);
}
