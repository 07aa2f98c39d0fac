//! The kernel's requests as they wait for the server.

use crate::fuse::{FileAnswer, FileOp, errno};
use crate::queue::{self, Refusal};
use fuser::Errno;
use oblivio_volume::Error;

impl Refusal for Errno {
    const STALLED: Self = Errno::EIO;

    fn is_failure(error: &Error) -> bool {
        errno::of(error).code() == Errno::EIO.code() && !matches!(error, Error::Lost(_))
    }
}

/// Delivers the answer.
pub type MountReplier = queue::Replier<FileAnswer, Errno>;
/// A waiting request.
pub type MountRequest = queue::Request<FileOp, FileAnswer, Errno>;
/// The queue before the server.
pub type MountQueue = queue::RequestQueue<FileOp, FileAnswer, Errno>;

/// Closes a handle that no program knows.
pub fn close(fh: u64) -> FileOp {
    FileOp::Release { ino: 0, fh, flags: 0, owner: None }
}
