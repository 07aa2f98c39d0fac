//! The kernel's requests as they wait for the server.

use crate::fuse::{Answer, Op, errno};
use crate::queue::{self, Refusal};
use fuser::Errno;
use oblivio_volume::Error;

impl Refusal for Errno {
    const STALLED: Self = Errno::EIO;

    fn is_failure(error: &Error) -> bool {
        errno::of(error).code() == Errno::EIO.code()
    }
}

/// Delivers the answer.
pub type Replier = queue::Replier<Answer, Errno>;
/// A waiting request.
pub type Request = queue::Request<Op, Answer, Errno>;
/// The queue before the server.
pub type Queue = queue::Queue<Op, Answer, Errno>;

/// Closes a handle that no program knows.
pub fn close(fh: u64) -> Op {
    Op::Release { ino: 0, fh, flags: 0, owner: None }
}
