//! Files open for writing: the kernel may have cached data of them that we have not seen.
//!
//! The kernel writes back its cache before most requests that depend on it, but not before it asks
//! where data and holes are. So we make it write back, or a new file would seem to be one hole.

use super::notices::KernelNotices;
use super::request::{MountQueue, MountReplier};
use crate::fuse::FileOp;
use oblivio_volume::fs::Ino;
use std::collections::HashMap;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const ACCESS_MODE: i32 = 0o3;

/// How many times each file is open for writing.
#[derive(Clone, Default)]
pub struct Writers(Arc<Mutex<HashMap<Ino, u32>>>);

impl Writers {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ino, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a file opened with these flags.
    pub fn opened(&self, ino: Ino, flags: i32) {
        if flags & ACCESS_MODE != 0 {
            *self.lock().entry(ino).or_default() += 1;
        }
    }

    /// Takes off a file that was opened with these flags.
    pub fn closed(&self, ino: Ino, flags: i32) {
        let mut open = self.lock();
        if flags & ACCESS_MODE != 0
            && let Some(count) = open.get_mut(&ino)
        {
            *count -= 1;
            if *count == 0 {
                open.remove(&ino);
            }
        }
    }

    pub fn has(&self, ino: Ino) -> bool {
        self.lock().contains_key(&ino)
    }
}

/// Queues each request after the kernel has written back the file. On a thread of its own: those
/// writes go through the queue as well.
pub fn flush(
    requests: &Receiver<(FileOp, MountReplier)>,
    notices: &KernelNotices,
    queue: &MountQueue,
) {
    while let Ok((op, replier)) = requests.recv() {
        // To forget a file's data, the kernel has to write it. If that fails, the next sync reports
        // it.
        notices.write_back(op.seen().1);
        queue.push(op, replier);
    }
}
