//! What a client asks, and how it stands in a record: `head 24 | kind 4 | offset 4 | length 8 | name
//! 16 | block`. An answer is `head 24 | found 8 | block`. Both are sealed, and have one length for
//! each volume.

use super::head::{Head, StoredHead};
use super::records::{Seq, Session};
use crate::pyramid::ids::Name;
use crate::pyramid::operation::Operation;
use crate::{Action, BlockAnswer, EngineError, Result};
use oblivio_crypto::{Kind, Place, VolumeId};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const READ: u32 = 0;
const PATCH: u32 = 1;
const REMOVE: u32 = 2;
const WRITE: u32 = 3;
/// Added to a kind that also answers with the content before it.
const AND_READ: u32 = 4;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    /// The newest that the client knows.
    head: StoredHead,
    kind: U32,
    offset: U32,
    length: U64,
    name: [u8; 16],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FixedAnswer {
    /// The newest record of the history.
    head: StoredHead,
    found: U64,
}

/// An ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its block.
    pub name: Name,
    /// What to do with it.
    pub operation: Operation,
}

impl Ask {
    /// As in a record.
    ///
    /// # Errors
    /// `Invalid` for data that does not fit a block, or for several patches at once.
    pub(super) fn encode(&self, head: Head, block_bytes: usize) -> Result<Vec<u8>> {
        let (kind, offset, bytes): (u32, usize, &[u8]) = match &self.operation.action {
            Action::Read => (READ, 0, &[]),
            Action::Write(bytes) => (WRITE, 0, bytes),
            Action::Patch { offset, bytes } => (PATCH, *offset, bytes),
            Action::Remove => (REMOVE, 0, &[]),
            Action::Patches(_) => {
                return Err(EngineError::Invalid("an ask has one patch at most".into()));
            }
        };
        if self.operation.action.end() > block_bytes {
            return Err(EngineError::Invalid("more bytes than a block has".into()));
        }
        let kind = kind | if self.operation.and_read { AND_READ } else { 0 };
        let fixed = Fixed {
            head: head.into(),
            kind: U32::new(kind),
            offset: U32::new(offset as u32),
            length: U64::new(bytes.len() as u64),
            name: self.name.0,
        };
        let mut record = [fixed.as_bytes(), bytes].concat();
        record.resize(size_of::<Fixed>() + block_bytes, 0);
        Ok(record)
    }

    /// Reads a record; none if it makes no sense.
    pub(super) fn decode(plain: &[u8]) -> Option<(Self, Head)> {
        let (fixed, block) = Fixed::ref_from_prefix(plain).ok()?;
        let bytes = block.get(..usize::try_from(fixed.length.get()).ok()?)?;
        let offset = fixed.offset.get() as usize;
        let action = match fixed.kind.get() & !AND_READ {
            READ => Action::Read,
            WRITE => Action::Write(bytes.to_vec()),
            PATCH => Action::Patch { offset, bytes: bytes.to_vec() },
            REMOVE => Action::Remove,
            _ => return None,
        };
        let and_read = fixed.kind.get() & AND_READ != 0;
        let ask = Self { name: Name(fixed.name), operation: Operation { action, and_read } };
        (ask.operation.action.end() <= block.len()).then_some((ask, fixed.head.into()))
    }
}

/// An answer as in a record.
pub(super) fn encode_answer(head: Head, answer: &BlockAnswer, block_bytes: usize) -> Vec<u8> {
    let found = U64::new(u64::from(answer.is_some()));
    let fixed = FixedAnswer { head: head.into(), found };
    let mut record = [fixed.as_bytes(), answer.as_deref().unwrap_or_default()].concat();
    record.resize(size_of::<FixedAnswer>() + block_bytes, 0);
    record
}

/// Reads a record; none if it makes no sense.
pub(super) fn decode_answer(plain: &[u8]) -> Option<(BlockAnswer, Head)> {
    let (fixed, block) = FixedAnswer::ref_from_prefix(plain).ok()?;
    let answer = match fixed.found.get() {
        0 => None,
        1 => Some(block.to_vec()),
        _ => return None,
    };
    Some((answer, fixed.head.into()))
}

/// Ties a record to its volume, its session and its number there.
pub(super) fn place(volume: VolumeId, kind: Kind, session: Session, seq: Seq) -> Place {
    Place { volume, kind, index: seq.0, version: session.0 }
}
