//! Accepted writes in the one form in which they wait. A sync's record is written from it, and the
//! map of deferred writes shares its bytes.

use oblivio_engine::{Action, BlockId, BlockOp};
use std::sync::Arc;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const WHOLE: u32 = 1;
const PART: u32 = 2;
const REMOVED: u32 = 3;
const DISCARDED: u32 = 4;

/// One change of a block, or of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteEntry {
    /// A block's bytes; zeros follow.
    Whole(u64, Arc<Vec<u8>>),
    /// Bytes at an offset in a block.
    Part(u64, usize, Arc<Vec<u8>>),
    /// A block that is absent now.
    Removed(u64),
    /// A first block and a count: blocks no longer wanted. None of them: an empty turn.
    Discarded(u64, u64),
}

/// How an entry begins, as stored; its bytes follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    /// Zero: the writes end here.
    kind: U32,
    offset: U32,
    id: U64,
    /// For a discard a number of blocks, and no bytes follow.
    length: U64,
}

impl WriteEntry {
    /// Bytes before each entry's own, as stored.
    pub const HEAD: usize = size_of::<Head>();

    /// What an operation changes; nothing for a read.
    pub fn of(op: BlockOp) -> Vec<Self> {
        let id = op.id.0;
        match op.action {
            Action::Read => Vec::new(),
            Action::Write(bytes) => vec![Self::Whole(id, Arc::new(bytes))],
            Action::Patch { offset, bytes } => vec![Self::Part(id, offset, Arc::new(bytes))],
            Action::Patches(patches) => {
                let part = |(offset, bytes)| Self::Part(id, offset, Arc::new(bytes));
                patches.into_iter().map(part).collect()
            }
            Action::Remove => vec![Self::Removed(id)],
        }
    }

    /// The block that is written, unless blocks are discarded.
    pub fn block(&self) -> Option<u64> {
        match self {
            Self::Whole(id, _) | Self::Part(id, ..) | Self::Removed(id) => Some(*id),
            Self::Discarded(..) => None,
        }
    }

    fn head(&self) -> (u32, u64, usize, u64) {
        match self {
            Self::Whole(id, bytes) => (WHOLE, *id, 0, bytes.len() as u64),
            Self::Part(id, offset, bytes) => (PART, *id, *offset, bytes.len() as u64),
            Self::Removed(id) => (REMOVED, *id, 0, 0),
            Self::Discarded(first, count) => (DISCARDED, *first, 0, *count),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Whole(_, bytes) | Self::Part(_, _, bytes) => bytes,
            Self::Removed(_) | Self::Discarded(..) => &[],
        }
    }

    /// Bytes as stored.
    fn len(&self) -> usize {
        Self::HEAD + self.bytes().len()
    }

    fn write_to(&self, record: &mut Vec<u8>) {
        let (kind, id, offset, length) = self.head();
        let (kind, offset) = (U32::new(kind), U32::new(offset as u32));
        let head = Head { kind, offset, id: U64::new(id), length: U64::new(length) };
        record.extend_from_slice(head.as_bytes());
        record.extend_from_slice(self.bytes());
    }

    /// Whether it is about blocks below `blocks` of `block_bytes`.
    fn fits(&self, blocks: u64, block_bytes: usize) -> bool {
        match self {
            Self::Whole(id, bytes) => *id < blocks && bytes.len() <= block_bytes,
            Self::Part(id, offset, bytes) => {
                *id < blocks && offset.saturating_add(bytes.len()) <= block_bytes
            }
            Self::Removed(id) => *id < blocks,
            Self::Discarded(first, count) => {
                first.checked_add(*count).is_some_and(|end| end <= blocks)
            }
        }
    }
}

/// Writes in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    entries: Vec<WriteEntry>,
    bytes: usize,
}

impl Writes {
    /// Bytes as stored.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds a later one.
    pub fn push(&mut self, entry: WriteEntry) {
        self.bytes += entry.len();
        self.entries.push(entry);
    }

    /// Adds later ones.
    pub fn append(&mut self, later: &Self) {
        self.entries.extend_from_slice(&later.entries);
        self.bytes += later.bytes;
    }

    /// Takes the front entries that fit into `most` bytes, one at least.
    pub fn take_front(&mut self, most: usize) -> Self {
        let (mut bytes, mut count) = (0, 0);
        for entry in &self.entries {
            if bytes + entry.len() > most && count > 0 {
                break;
            }
            (bytes, count) = (bytes + entry.len(), count + 1);
        }
        let rest = self.entries.split_off(count);
        self.bytes -= bytes;
        Self { entries: std::mem::replace(&mut self.entries, rest), bytes }
    }

    /// Appends them to a record.
    pub fn write_to(&self, record: &mut Vec<u8>) {
        record.reserve(self.bytes);
        self.entries.iter().for_each(|entry| entry.write_to(record));
    }

    /// Parses the entries at the front of `bytes`; `None` for nonsense.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (mut all, mut rest) = (Self::default(), bytes);
        while let Some((entry, after)) = next(rest)? {
            all.push(entry);
            rest = after;
        }
        Some(all)
    }

    /// The entries, for blocks below `blocks` of `block_bytes`; `None` if one does not fit.
    pub fn entries(&self, blocks: u64, block_bytes: usize) -> Option<&[WriteEntry]> {
        let fit = self.entries.iter().all(|entry| entry.fits(blocks, block_bytes));
        fit.then_some(&self.entries[..])
    }
}

/// The next write and what follows it: `Some(None)` at the end, `None` for nonsense.
#[expect(clippy::option_option, reason = "an end is not an error")]
fn next(bytes: &[u8]) -> Option<Option<(WriteEntry, &[u8])>> {
    let Ok((head, rest)) = Head::ref_from_prefix(bytes) else {
        return bytes.iter().all(|&byte| byte == 0).then_some(None);
    };
    let (kind, id, length) = (head.kind.get(), head.id.get(), head.length.get());
    if kind == 0 {
        return Some(None);
    }
    if kind == DISCARDED {
        return Some(Some((WriteEntry::Discarded(id, length), rest)));
    }
    let (data, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    let data = || Arc::new(data.to_vec());
    let entry = match kind {
        WHOLE => WriteEntry::Whole(id, data()),
        PART => WriteEntry::Part(id, head.offset.get() as usize, data()),
        REMOVED => WriteEntry::Removed(id),
        _ => return None,
    };
    Some(Some((entry, after)))
}

/// The operation of a block.
pub(crate) fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}
