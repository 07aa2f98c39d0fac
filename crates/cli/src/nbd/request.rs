//! Clients' requests as plain data, checked before they are queued.

use super::negotiation::{Agreed, Export};
use super::server::errno_of;
use super::wire::{Errno, Header, MOST_PAYLOAD, command, flag};
use crate::queue::{self, Refusal};
use oblivio_volume::Error;
use oblivio_volume::disk::Extent;

/// One request for the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Read { offset: u64, len: u32 },
    Write { offset: u64, data: Vec<u8>, durable: bool },
    Zeroes { offset: u64, len: u32, stay: bool, only_fast: bool, durable: bool },
    Trim { offset: u64, len: u32, durable: bool },
    Status { offset: u64, len: u32, one: bool },
    Flush,
}

/// The answer to a successful request.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    Done,
    Data(Vec<u8>),
    Extents(Vec<Extent>),
}

impl Refusal for Errno {
    const STALLED: Self = Errno::Io;

    fn is_failure(error: &Error) -> bool {
        errno_of(error) == Errno::Io
    }
}

pub type Replier = queue::Replier<Answer, Errno>;
pub type Slot = queue::Slot<Answer, Errno>;
pub type Request = queue::Request<Op, Answer, Errno>;
pub type Queue = queue::Queue<Op, Answer, Errno>;

/// The request in a header, if it is valid; a write still lacks its bytes. A disconnect is not a
/// request.
pub fn checked(header: &Header, export: &Export, agreed: Agreed) -> Result<Op, Errno> {
    let Header { flags, command, offset, len, .. } = *header;
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
        command::READ => Ok(Op::Read { offset, len }),
        command::WRITE => Ok(Op::Write { offset, data: Vec::new(), durable }),
        command::WRITE_ZEROES => {
            let (stay, only_fast) = (flags & flag::NO_HOLE != 0, flags & flag::FAST_ZERO != 0);
            Ok(Op::Zeroes { offset, len, stay, only_fast, durable })
        }
        command::TRIM => Ok(Op::Trim { offset, len, durable }),
        command::BLOCK_STATUS if agreed.allocation && len > 0 => {
            Ok(Op::Status { offset, len, one: flags & flag::REQ_ONE != 0 })
        }
        command::FLUSH if offset == 0 && len == 0 => Ok(Op::Flush),
        _ => Err(Errno::Invalid),
    }
}
