//! What a client asks, and how it stands in a record. Both ask and answer are sealed, and have one
//! length for each volume.
//!
//! ```text
//! ask     head 24 | kind 4 | offset 4 | length 8 | owner 16 | index 8 | part 4 | of 4 |
//!         comparison 4 | offset 4 | length 8 | bytes 64 | block
//! answer  head 24 | done 4 | found 4 | block
//! ```

use super::head::{Head, StoredHead};
use super::records::{Seq, Session};
use crate::pyramid::ids::Name;
use crate::pyramid::operation::{Effect, Operation};
use crate::{Action, BlockAnswer, EngineError, Result};
use oblivio_crypto::{Kind, Place, VolumeId};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const READ: u32 = 0;
const PATCH: u32 = 1;
const REMOVE: u32 = 2;
const WRITE: u32 = 3;
const FORGET: u32 = 4;
/// Added to a kind that also answers with the content before it.
const AND_READ: u32 = 8;
const ALWAYS: u32 = 0;
const ABSENT: u32 = 1;
const EXISTS: u32 = 2;
const BYTES: u32 = 3;
/// The most bytes of a comparison.
pub const MOST_COMPARED: usize = 64;
/// The most asks of a transaction.
pub const MOST_PARTS: u32 = 8;

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    /// The newest that the client knows.
    head: StoredHead,
    kind: U32,
    offset: U32,
    length: U64,
    owner: [u8; 16],
    index: U64,
    part: U32,
    of: U32,
    comparison: U32,
    compare_offset: U32,
    compare_length: U64,
    compare_bytes: [u8; MOST_COMPARED],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct FixedAnswer {
    /// The newest record of the history.
    head: StoredHead,
    done: U32,
    found: U32,
}

/// What must hold of a block before a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compare {
    /// Nothing.
    Always,
    /// It does not exist.
    Absent,
    /// It exists.
    Exists,
    /// It exists, and has these bytes at this offset.
    Bytes(usize, Vec<u8>),
}

/// The place of an ask in its transaction: carried out together, or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub index: u32,
    pub of: u32,
}

/// An ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Its block.
    pub name: Name,
    /// What to do with it.
    pub operation: Operation,
    /// What must hold of it before.
    pub compare: Compare,
    /// Whether all later blocks of its owner are removed with it.
    pub forgets: bool,
    pub(super) part: Part,
}

/// The answer to an ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it was carried out: all comparisons of its transaction held.
    pub done: bool,
    /// The content that it asked for.
    pub content: BlockAnswer,
}

impl Ask {
    /// An ask of its own.
    pub fn new(name: Name, operation: Operation) -> Self {
        let part = Part { index: 0, of: 1 };
        Self { name, operation, compare: Compare::Always, forgets: false, part }
    }

    /// Removes a block and all later ones of its owner. They read as absent from now on.
    pub fn forget(first: Name) -> Self {
        let operation = Operation { action: Action::Remove, and_read: false };
        Self { forgets: true, ..Self::new(first, operation) }
    }

    /// What it may do to the existence of blocks.
    pub(super) fn effect(&self) -> Effect {
        if self.forgets { Effect::Forgets } else { self.operation.action.effect() }
    }

    /// With something that must hold of its block before.
    #[must_use]
    pub fn only_if(self, compare: Compare) -> Self {
        Self { compare, ..self }
    }

    /// As in a record.
    ///
    /// # Errors
    /// `Invalid` for data that does not fit a block, or for several patches at once.
    pub(super) fn encode(&self, head: Head, block_bytes: usize) -> Result<Vec<u8>> {
        let (kind, offset, bytes): (u32, usize, &[u8]) = match &self.operation.action {
            Action::Read => (READ, 0, &[]),
            Action::Write(bytes) => (WRITE, 0, bytes),
            Action::Patch { offset, bytes } => (PATCH, *offset, bytes),
            Action::Remove if self.forgets => (FORGET, 0, &[]),
            Action::Remove => (REMOVE, 0, &[]),
            Action::Patches(_) => {
                return Err(EngineError::Invalid("an ask has one patch at most".into()));
            }
        };
        if self.operation.action.end() > block_bytes {
            return Err(EngineError::Invalid("more bytes than a block has".into()));
        }
        let (comparison, at, compared): (u32, usize, &[u8]) = match &self.compare {
            Compare::Always => (ALWAYS, 0, &[]),
            Compare::Absent => (ABSENT, 0, &[]),
            Compare::Exists => (EXISTS, 0, &[]),
            Compare::Bytes(at, bytes) => (BYTES, *at, bytes),
        };
        let mut compare_bytes = [0; MOST_COMPARED];
        match compare_bytes.get_mut(..compared.len()) {
            Some(part) if at.saturating_add(compared.len()) <= block_bytes => {
                part.copy_from_slice(compared);
            }
            _ => return Err(EngineError::Invalid("too many bytes to compare".into())),
        }
        let kind = kind | if self.operation.and_read { AND_READ } else { 0 };
        let fixed = Fixed {
            head: head.into(),
            kind: U32::new(kind),
            offset: U32::new(offset as u32),
            length: U64::new(bytes.len() as u64),
            owner: self.name.owner,
            index: U64::new(self.name.index),
            part: U32::new(self.part.index),
            of: U32::new(self.part.of),
            comparison: U32::new(comparison),
            compare_offset: U32::new(at as u32),
            compare_length: U64::new(compared.len() as u64),
            compare_bytes,
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
            REMOVE | FORGET => Action::Remove,
            _ => return None,
        };
        let and_read = fixed.kind.get() & AND_READ != 0;
        let at = fixed.compare_offset.get() as usize;
        let compared = usize::try_from(fixed.compare_length.get()).ok()?;
        let compared = fixed.compare_bytes.get(..compared)?;
        let compare = match fixed.comparison.get() {
            ALWAYS => Compare::Always,
            ABSENT => Compare::Absent,
            EXISTS => Compare::Exists,
            BYTES if at + compared.len() <= block.len() => Compare::Bytes(at, compared.to_vec()),
            _ => return None,
        };
        let part = Part { index: fixed.part.get(), of: fixed.of.get() };
        if part.index >= part.of || part.of > MOST_PARTS {
            return None;
        }
        let operation = Operation { action, and_read };
        let name = Name { owner: fixed.owner, index: fixed.index.get() };
        let forgets = fixed.kind.get() & !AND_READ == FORGET;
        let ask = Self { name, operation, compare, forgets, part };
        (ask.operation.action.end() <= block.len()).then_some((ask, fixed.head.into()))
    }
}

/// An answer as in a record.
pub(super) fn encode_answer(head: Head, answer: &Answer, block_bytes: usize) -> Vec<u8> {
    let (done, found) = (answer.done.into(), answer.content.is_some().into());
    let fixed = FixedAnswer { head: head.into(), done: U32::new(done), found: U32::new(found) };
    let mut record = [fixed.as_bytes(), answer.content.as_deref().unwrap_or_default()].concat();
    record.resize(size_of::<FixedAnswer>() + block_bytes, 0);
    record
}

/// Reads a record; none if it makes no sense.
pub(super) fn decode_answer(plain: &[u8]) -> Option<(Answer, Head)> {
    let (fixed, block) = FixedAnswer::ref_from_prefix(plain).ok()?;
    let (done, content) = match (fixed.done.get(), fixed.found.get()) {
        (done @ 0..=1, 0) => (done, None),
        (done @ 0..=1, 1) => (done, Some(block.to_vec())),
        _ => return None,
    };
    Some((Answer { done: done == 1, content }, fixed.head.into()))
}

/// Ties a record to its volume, its session and its number there.
pub(super) fn place(volume: VolumeId, kind: Kind, session: Session, seq: Seq) -> Place {
    Place { volume, kind, index: seq.0, version: session.0 }
}
