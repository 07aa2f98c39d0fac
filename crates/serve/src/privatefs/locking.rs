//! Locks of files: the kernel's requests, and those that wait.
//!
//! The crate that decodes requests does not say whether a lock is one of `flock` or of `fcntl`. So
//! here both meet: a program that takes both kinds on one file, through two open files, waits for
//! itself.

use super::convert::errno;
use fuser::{Errno, LockOwner, ReplyEmpty, ReplyLock};
use oblivio_privatefs::{Error, Lock, LockKind, LockOwner as Holder, Owner, PrivateFs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const F_RDLCK: i32 = 0;
const F_WRLCK: i32 = 1;
const F_UNLCK: i32 = 2;
/// The first pause of who waits for a lock, in milliseconds; each further one is longer.
const FIRST_PAUSE: u64 = 5;
const LAST_PAUSE: u64 = 320;
/// The kernel cannot say that a waiting program was killed. After this long it is not waited for.
const MOST_PAUSES: u32 = 2000;

pub fn holder(owner: LockOwner) -> Holder {
    Holder { number: owner.0, whole_file: false }
}

fn wanted(kind: i32, (start, end): (u64, u64), pid: u32) -> Option<Lock> {
    let kind = match kind {
        F_RDLCK => LockKind::Shared,
        F_WRLCK => LockKind::Exclusive,
        _ => return None,
    };
    Some(Lock { kind, start, end, pid })
}

pub fn get(
    fs: &PrivateFs,
    id: Owner,
    owner: LockOwner,
    (kind, range, pid): (i32, (u64, u64), u32),
    reply: ReplyLock,
) {
    let Some(lock) = wanted(kind, range, pid) else { return reply.error(Errno::EINVAL) };
    match fs.lock_in_the_way(id, holder(owner), lock) {
        Ok(None) => reply.locked(range.0, range.1, F_UNLCK, 0),
        Ok(Some(held)) => {
            let kind = if held.kind == LockKind::Exclusive { F_WRLCK } else { F_RDLCK };
            reply.locked(held.start, held.end, kind, held.pid);
        }
        Err(error) => reply.error(errno(&error)),
    }
}

pub fn set(
    fs: &Arc<PrivateFs>,
    id: Owner,
    owner: LockOwner,
    (kind, range, pid): (i32, (u64, u64), u32),
    waits: bool,
    reply: ReplyEmpty,
) {
    let done = match wanted(kind, range, pid) {
        Some(lock) => match fs.lock(id, holder(owner), lock) {
            Err(Error::Locked) if waits => return wait(fs, id, owner, lock, reply),
            done => done,
        },
        None => fs.unlock(id, holder(owner), range),
    };
    answer(done, reply);
}

fn answer(done: Result<(), Error>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(errno(&error)),
    }
}

/// On a thread of its own: those that serve the kernel must stay free for who unlocks.
fn wait(fs: &Arc<PrivateFs>, id: Owner, owner: LockOwner, lock: Lock, reply: ReplyEmpty) {
    let fs = Arc::clone(fs);
    let waiting = thread::Builder::new().name("lock".into()).spawn(move || {
        let mut pause = FIRST_PAUSE;
        for _ in 0..MOST_PAUSES {
            thread::sleep(Duration::from_millis(pause));
            pause = (pause * 2).min(LAST_PAUSE);
            match fs.lock(id, holder(owner), lock) {
                Err(Error::Locked) => {}
                done => return answer(done, reply),
            }
        }
        reply.error(Errno::EAGAIN);
    });
    drop(waiting);
}
