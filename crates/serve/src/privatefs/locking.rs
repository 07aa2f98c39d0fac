//! Locks of files: the kernel's requests, and those that wait.
//!
//! The crate that decodes requests does not say whether a lock is one of `flock` or of `fcntl`. So
//! here both meet: a program that takes both kinds on one file, through two open files, waits for
//! itself.

use super::convert::errno;
use super::notify::Pages;
use fuser::{Errno, LockOwner, ReplyEmpty, ReplyLock};
use oblivio_privatefs::{Attr, Error, Lock, LockKind, LockOwner as Holder, Owner, PrivateFs};
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

pub fn holder(owner: LockOwner) -> Holder {
    Holder { number: owner.0, whole_file: false }
}

/// What the kernel asks about a lock.
#[derive(Clone, Copy)]
pub struct Wish {
    pub ino: u64,
    pub id: Owner,
    pub owner: LockOwner,
    pub kind: i32,
    pub range: (u64, u64),
    pub pid: u32,
}

impl Wish {
    fn lock(&self) -> Option<Lock> {
        let kind = match self.kind {
            F_RDLCK => LockKind::Shared,
            F_WRLCK => LockKind::Exclusive,
            _ => return None,
        };
        Some(Lock { kind, start: self.range.0, end: self.range.1, pid: self.pid })
    }
}

pub fn get(fs: &PrivateFs, wish: &Wish, reply: ReplyLock) {
    let Some(lock) = wish.lock() else { return reply.error(Errno::EINVAL) };
    match fs.lock_in_the_way(wish.id, holder(wish.owner), lock) {
        Ok(None) => reply.locked(wish.range.0, wish.range.1, F_UNLCK, 0),
        Ok(Some(held)) => {
            let kind = if held.kind == LockKind::Exclusive { F_WRLCK } else { F_RDLCK };
            reply.locked(held.start, held.end, kind, held.pid);
        }
        Err(error) => reply.error(errno(&error)),
    }
}

pub fn set(fs: &Arc<PrivateFs>, pages: &Arc<Pages>, wish: Wish, waits: bool, reply: ReplyEmpty) {
    let Some(lock) = wish.lock() else {
        return match fs.unlock(wish.id, holder(wish.owner), wish.range) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        };
    };
    match take(fs, wish, lock) {
        Err(Error::Locked) if waits => wait(fs, pages, wish, lock, reply),
        Ok(attr) if !pages.are_of(wish.ino, &attr) => {
            // On a thread of its own: the kernel may ask something before it forgets.
            let pages = Arc::clone(pages);
            let forgetting = thread::Builder::new().name("lock".into()).spawn(move || {
                pages.forget(wish.ino);
                reply.ok();
            });
            drop(forgetting);
        }
        Ok(_) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

/// Who gets a lock sees what the one before wrote, as with NFS.
fn take(fs: &PrivateFs, wish: Wish, lock: Lock) -> Result<Attr, Error> {
    fs.lock(wish.id, holder(wish.owner), lock)?;
    fs.attr_now(wish.id)
}

/// On a thread of its own: those that serve the kernel must stay free for who unlocks.
fn wait(fs: &Arc<PrivateFs>, pages: &Arc<Pages>, wish: Wish, lock: Lock, reply: ReplyEmpty) {
    let (fs, pages) = (Arc::clone(fs), Arc::clone(pages));
    let waiting = thread::Builder::new().name("lock".into()).spawn(move || {
        let mut pause = FIRST_PAUSE;
        for _ in 0..MOST_PAUSES {
            thread::sleep(Duration::from_millis(pause));
            pause = (pause * 2).min(LAST_PAUSE);
            match take(&fs, wish, lock) {
                Err(Error::Locked) => {}
                Err(error) => return reply.error(errno(&error)),
                Ok(attr) => {
                    if !pages.are_of(wish.ino, &attr) {
                        pages.forget(wish.ino);
                    }
                    return reply.ok();
                }
            }
        }
        reply.error(Errno::EAGAIN);
    });
    drop(waiting);
}
