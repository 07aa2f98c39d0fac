//! Makes the kernel forget what other clients changed. On a thread of its own: within a request it
//! would wait for itself.

use super::ids::Ids;
use super::options::Stop;
use fuser::{INodeNo, Notifier};
use oblivio_privatefs::{Notice, Owner, PrivateFs};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Between two looks at what others changed. A look asks nobody.
const EVERY: Duration = Duration::from_millis(20);

pub fn run(fs: &PrivateFs, ids: &Ids, notifier: &Notifier, stop: &Stop) {
    while !stop.wait(EVERY) {
        for notice in fs.take_notices() {
            match notice {
                Notice::Inode(id) | Notice::Blocks(id) => {
                    inode(ids, notifier, id);
                    if matches!(notice, Notice::Blocks(_)) {
                        names(ids, notifier, id);
                    }
                }
                Notice::Everything => {
                    for ino in ids.all() {
                        let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
                    }
                }
            }
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
