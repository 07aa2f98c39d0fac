//! Makes the kernel forget what other clients changed. On threads of their own: within a request it
//! could wait for itself.

use super::ids::Ids;
use super::options::MountStop;
use fuser::{INodeNo, Notifier};
use oblivio_privatefs::{CacheNotice, NodeAttr, Owner, PrivateFs};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Between two looks at what others changed. A look asks nobody.
const EVERY: Duration = Duration::from_millis(20);
/// The least time between two times at which the kernel forgets everything: while a server is away,
/// each look says so.
const EVERYTHING: Duration = Duration::from_secs(1);

/// The kernel's pages of files, for whoever locks one.
pub struct Pages {
    pub ids: Arc<Ids>,
    pub notifier: OnceLock<Notifier>,
}

impl Pages {
    /// Whether the kernel has those of this state of the file. If not, [`Self::forget`] them.
    pub fn are_of(&self, ino: u64, attr: &NodeAttr) -> bool {
        self.ids.keeps_pages(ino, attr)
    }

    /// Makes the kernel forget them, and the file's attributes.
    pub fn forget(&self, ino: u64) {
        if let Some(notifier) = self.notifier.get() {
            let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
        }
    }
}

pub fn run(fs: &PrivateFs, ids: &Ids, notifier: &Notifier, stop: &MountStop) {
    let (mut everything, mut forgot) = (false, None::<Instant>);
    while !stop.wait(EVERY) {
        for notice in fs.take_notices() {
            match notice {
                CacheNotice::Inode(id) | CacheNotice::Blocks(id) => {
                    inode(ids, notifier, id);
                    if matches!(notice, CacheNotice::Blocks(_)) {
                        names(ids, notifier, id);
                    }
                }
                CacheNotice::Everything => everything = true,
            }
        }
        if everything && forgot.is_none_or(|at| at.elapsed() >= EVERYTHING) {
            for ino in ids.all() {
                let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
            }
            (everything, forgot) = (false, Some(Instant::now()));
        }
    }
}

// The kernel may have forgotten by itself, which is an error here.
fn inode(ids: &Ids, notifier: &Notifier, id: Owner) {
    if let Some(ino) = ids.known_number(id) {
        let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
    }
}

/// Names of directories are left out: who works in one would lose the way up.
fn names(ids: &Ids, notifier: &Notifier, directory: Owner) {
    let Some(parent) = ids.known_number(directory) else { return };
    for name in ids.take_names(directory) {
        let _ = notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(&name));
    }
}
