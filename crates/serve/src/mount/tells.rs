//! What the server of a file system tells the threads beside it.

use super::low_space::LowSpace;
use crate::fuse::FileAnswer;
use crate::queue::AnswerSlot;
use fuser::Errno;
use oblivio_volume::fs::Ino;
use std::sync::mpsc::Sender;

/// An operation that took effect after the kernel got an error for it; the kernel must forget what
/// it knows.
#[derive(Debug, PartialEq, Eq)]
pub enum Late {
    Name(Ino, Vec<u8>),
    Inode(Ino),
}

/// An answer that the kernel may get only after it has forgotten an inode's attributes: it would
/// rely on them otherwise.
pub struct Unlearn {
    pub ino: Ino,
    pub slot: AnswerSlot<FileAnswer, Errno>,
    pub answer: Result<FileAnswer, Errno>,
}

/// The ways to these threads.
pub struct ServerTells {
    pub late: Sender<Late>,
    pub unlearn: Sender<Unlearn>,
    pub scarce: LowSpace,
}
