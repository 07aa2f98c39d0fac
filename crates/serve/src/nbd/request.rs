//! Clients' requests as plain data, checked before they are queued.

use super::negotiation::{Agreed, Export};
use super::wire::{Errno, MOST_PAYLOAD, RequestHeader, command, flag};
use crate::queue::{self, Refusal};
use crate::watch::OrdinaryEvent;
use oblivio_volume::Error;
use oblivio_volume::disk::DiskExtent;
use std::sync::Arc;

/// One request for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskOp {
    Read { offset: u64, len: u32 },
    Write { offset: u64, data: Vec<u8>, durable: bool },
    Zeroes { offset: u64, len: u32, stay: bool, only_fast: bool, durable: bool },
    Trim { offset: u64, len: u32, durable: bool },
    Status { offset: u64, len: u32, one: bool },
    Flush,
}

/// The answer to a successful request.
#[derive(Debug, PartialEq, Eq)]
pub enum DiskAnswer {
    Done,
    Data(Vec<u8>),
    Extents(Vec<DiskExtent>),
}

/// Observes each read and write before it is served.
pub type OnDiskRequest = Arc<dyn Fn(OrdinaryEvent) + Send + Sync>;

impl Refusal for Errno {
    const STALLED: Self = Errno::Io;

    fn is_failure(error: &Error) -> bool {
        errno_of(error) == Errno::Io && !matches!(error, Error::Lost(_))
    }
}

/// The protocol's number for an error.
pub fn errno_of(error: &Error) -> Errno {
    match error {
        Error::Full(_) => Errno::NoSpace,
        Error::Invalid(_) => Errno::Invalid,
        _ => Errno::Io,
    }
}

pub type DiskReplier = queue::Replier<DiskAnswer, Errno>;
pub type DiskSlot = queue::AnswerSlot<DiskAnswer, Errno>;
pub type DiskRequest = queue::Request<DiskOp, DiskAnswer, Errno>;
pub type DiskQueue = queue::RequestQueue<DiskOp, DiskAnswer, Errno>;

/// Reports a read or a write on a disk of `size` bytes to the hook, if there is one.
pub(super) fn tell(hook: Option<&OnDiskRequest>, size: u64, op: &DiskOp) {
    let Some(hook) = hook else { return };
    match op {
        DiskOp::Read { offset, len } => {
            hook(OrdinaryEvent::read(1, size, *offset, u64::from(*len)));
        }
        DiskOp::Write { offset, data, .. } => {
            hook(OrdinaryEvent::write(1, size, *offset, data.len() as u64));
        }
        _ => {}
    }
}

/// The request in a header, if it is valid; a write still lacks its bytes. A disconnect is not a
/// request.
pub fn checked(header: &RequestHeader, export: &Export, agreed: Agreed) -> Result<DiskOp, Errno> {
    let RequestHeader { flags, command, offset, len, .. } = *header;
    let durable = flags & flag::FUA != 0;
    let known = flag::FUA
        | match command {
            command::READ if agreed.structured => flag::DF,
            command::WRITE_ZEROES => flag::NO_HOLE | flag::FAST_ZERO,
            command::BLOCK_STATUS => flag::REQ_ONE,
            _ => 0,
        };
    if flags & !known != 0 {
        return Err(Errno::Invalid);
    }
    let inside = offset.checked_add(u64::from(len)).is_some_and(|end| end <= export.size);
    let changes = matches!(command, command::WRITE | command::WRITE_ZEROES | command::TRIM);
    if changes && export.read_only {
        return Err(Errno::Perm);
    }
    match command {
        command::READ | command::WRITE if len > MOST_PAYLOAD => Err(Errno::Invalid),
        command::WRITE | command::WRITE_ZEROES if !inside => Err(Errno::NoSpace),
        command::READ | command::TRIM | command::BLOCK_STATUS if !inside => Err(Errno::Invalid),
        command::READ => Ok(DiskOp::Read { offset, len }),
        command::WRITE => Ok(DiskOp::Write { offset, data: Vec::new(), durable }),
        command::WRITE_ZEROES => {
            let (stay, only_fast) = (flags & flag::NO_HOLE != 0, flags & flag::FAST_ZERO != 0);
            Ok(DiskOp::Zeroes { offset, len, stay, only_fast, durable })
        }
        command::TRIM => Ok(DiskOp::Trim { offset, len, durable }),
        command::BLOCK_STATUS if agreed.allocation && len > 0 => {
            Ok(DiskOp::Status { offset, len, one: flags & flag::REQ_ONE != 0 })
        }
        command::FLUSH if offset == 0 && len == 0 => Ok(DiskOp::Flush),
        _ => Err(Errno::Invalid),
    }
}
