//! The tables by their kinds, and what tells a page of one from a page of another.

use super::pages::{Widths, word};
use crate::fs::allocator::PAGE_BYTES;
use crate::fs::inode::decode_inode_whole;
use crate::fs::tables::{
    ALLOCATION, COUNTERS, DIRENTS, Dirent, INODES, ORPHANS, PACKS, Pack, ROOMY, SEGMENTS, XATTRS,
    decode_whole,
};
use crate::fs::types::ROOT_INO;
use redb::TableHandle;

/// No volume ever had as many inodes. What stands at the front of other leaves, two offsets of four
/// bytes, makes larger numbers.
const MOST_INODES: u64 = 1 << 35;

/// A table of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Inodes,
    Dirents,
    Segments,
    Packs,
    Roomy,
    Allocation,
    Orphans,
    Xattrs,
    Counters,
    Holes,
}

pub(super) const KINDS: [Kind; 10] = [
    Kind::Inodes,
    Kind::Dirents,
    Kind::Segments,
    Kind::Packs,
    Kind::Roomy,
    Kind::Allocation,
    Kind::Orphans,
    Kind::Xattrs,
    Kind::Counters,
    Kind::Holes,
];

/// A key, in the order of its table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    One(u64),
    Two(u64, u64),
    Named(u64, Vec<u8>),
    Text(Vec<u8>),
}

/// Keys of which nothing is known: those behind the first, up to the second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) after: Option<Key>,
    pub(super) to: Option<Key>,
}

impl Gap {
    pub(super) fn has(&self, key: &Key) -> bool {
        self.after.as_ref().is_none_or(|after| after < key)
            && self.to.as_ref().is_none_or(|to| key <= to)
    }
}

/// The limits that a sound record keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) block_bytes: usize,
    /// Blocks have ids below this one.
    pub(super) ids: u64,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Inodes => INODES.name(),
            Kind::Dirents => DIRENTS.name(),
            Kind::Segments => SEGMENTS.name(),
            Kind::Packs => PACKS.name(),
            Kind::Roomy => ROOMY.name(),
            Kind::Allocation => ALLOCATION.name(),
            Kind::Orphans => ORPHANS.name(),
            Kind::Xattrs => XATTRS.name(),
            Kind::Counters => COUNTERS.name(),
            Kind::Holes => crate::fs::holes::HOLES.name(),
        }
    }

    pub(super) fn widths(self) -> Widths {
        let (key, value) = match self {
            Kind::Inodes | Kind::Packs | Kind::Allocation => (Some(8), None),
            Kind::Dirents | Kind::Xattrs | Kind::Counters => (None, None),
            Kind::Segments => (Some(16), Some(16)),
            Kind::Roomy => (Some(16), Some(0)),
            Kind::Orphans | Kind::Holes => (Some(8), Some(0)),
        };
        Widths { key, value }
    }

    /// A stored key.
    pub(super) fn key(self, bytes: &[u8]) -> Option<Key> {
        Some(match self {
            Kind::Inodes | Kind::Packs | Kind::Allocation | Kind::Orphans | Kind::Holes => {
                Key::One(word(bytes, 0)?)
            }
            Kind::Segments | Kind::Roomy => Key::Two(word(bytes, 0)?, word(bytes, 8)?),
            Kind::Dirents | Kind::Xattrs => Key::Named(word(bytes, 0)?, bytes.get(8..)?.to_vec()),
            Kind::Counters => Key::Text(bytes.to_vec()),
        })
    }

    /// Whether one of its pairs may take more than a page of order 0.
    pub(super) fn has_long_pairs(self) -> bool {
        matches!(self, Kind::Inodes | Kind::Xattrs)
    }

    /// Whether a pair may be one of this table. A true one always may.
    pub(super) fn fits(self, key: &Key, value: &[u8], limits: Limits) -> bool {
        let block = limits.block_bytes as u64;
        match (self, key) {
            (Kind::Inodes, _) => decode_inode_whole(value).is_some(),
            (Kind::Packs, _) => decode_whole::<Pack>(value).is_some(),
            (Kind::Allocation, _) => value.len() == PAGE_BYTES,
            (Kind::Dirents, Key::Named(..)) => {
                decode_whole::<Dirent>(value).is_some_and(|dirent| dirent.ino != ROOT_INO)
            }
            (Kind::Xattrs, Key::Named(..)) => decode_whole::<Vec<u8>>(value).is_some(),
            (Kind::Segments, _) => {
                let (block, count) = (word(value, 0), word(value, 8).map(|it| it << 1 >> 1));
                let end = block.zip(count).and_then(|(block, count)| block.checked_add(count));
                count.is_some_and(|count| count > 0) && end.is_some_and(|end| end <= limits.ids)
            }
            (Kind::Counters, Key::Text(name)) => {
                [&b"all"[..], b"unwritten"].contains(&name.as_slice())
            }
            (Kind::Roomy, Key::Two(free, _)) => (block / 2..=block).contains(free),
            (Kind::Orphans, Key::One(ino)) => *ino < MOST_INODES,
            (Kind::Holes, Key::One(block)) => *block < limits.ids,
            _ => false,
        }
    }
}
