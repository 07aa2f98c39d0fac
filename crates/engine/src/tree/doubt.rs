//! What proves a block when the chain of tags does not.
//!
//! A bucket is proved by its tag in its parent. Where the parent was damaged, nothing says which
//! version of the bucket is the newest. But each access gives its block a label that no block had
//! before, and the map has the count behind it. So a block in a bucket that opens under its own
//! seal is the newest version if, and only if, its label is that of its current count: an older
//! version has an older label. What an old bucket held is not proved by this: a block that it
//! should hold and does not is lost.
//!
//! The tree looks at labels once it met damage; before that no block can be an old one.
//!
//! An access that finds its block lost counts like any other. So what stands in the place of the
//! block from then on says which version was lost: an older copy of the volume may have it.

use super::geometry::SlotHeader;
use super::position_map::{CountChange, MapFormat};
use crate::{Address, BlockId, Label, Leaf, Level};
use oblivio_crypto::{Prf, Tag};
use std::collections::BTreeMap;

/// How far a stored bucket is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketProof {
    /// It is the version written last.
    Newest,
    /// It opens under its own seal, and nothing says whether it is the newest.
    Own,
    /// It opens, and is not the newest.
    Old,
    /// It does not open.
    None,
}

impl BucketProof {
    /// Whether the blocks of the bucket may be looked at. An old bucket says nothing where the
    /// labels of its blocks cannot be judged.
    pub fn is_useful(self, labels: Option<&CurrentLabels<'_>>) -> bool {
        match self {
            Self::Newest | Self::Own => true,
            Self::Old => labels.is_some_and(CurrentLabels::judge_data),
            Self::None => false,
        }
    }

    /// What is wrong with the bucket itself.
    pub fn why_not(self) -> Option<&'static str> {
        match self {
            Self::Newest | Self::Own => None,
            Self::Old => Some("it is not the version written last"),
            Self::None => Some("its seal does not open"),
        }
    }
}

/// The labels that blocks must have, as far as memory has the whole of their map.
pub struct CurrentLabels<'a> {
    prf: &'a Prf,
    format: MapFormat,
    on_chip: &'a [u8],
    pending: &'a BTreeMap<Address, CountChange>,
    /// The level of blocks whose entries are in memory.
    level: usize,
}

impl<'a> CurrentLabels<'a> {
    /// Those of a map in this memory, with `levels` levels of recursion.
    pub(super) fn new(
        (prf, format): (&'a Prf, MapFormat),
        (on_chip, pending): (&'a [u8], &'a BTreeMap<Address, CountChange>),
        levels: usize,
    ) -> Self {
        Self { prf, format, on_chip, pending, level: levels - 1 }
    }

    /// Whether a block is not the newest version of itself; false where that is not known.
    pub(super) fn refute(&self, header: &SlotHeader) -> bool {
        let id = header.id;
        if id.level() != self.level {
            return false;
        }
        Label(self.prf.label(id.0, self.count(id))) != header.label
    }

    /// The version of a data block that is the newest: the count of its accesses. `None` if the map
    /// of data blocks is not in memory.
    pub fn version(&self, id: BlockId) -> Option<u64> {
        self.judge_data().then(|| self.count(id.into()))
    }

    /// The header that a data block must have.
    pub(super) fn header(&self, id: BlockId) -> Option<SlotHeader> {
        let label = Label(self.prf.label(id.0, self.version(id)?));
        Some(SlotHeader::of(id.0, label, Tag::default()))
    }

    /// The leaf whose path has a data block, in a tree of this depth.
    pub fn leaf(&self, id: BlockId, depth: Level) -> Option<Leaf> {
        self.header(id).map(|header| header.label.leaf(depth))
    }

    fn count(&self, id: Address) -> u64 {
        let entry = || self.format.get(self.on_chip, id.index() as usize);
        self.pending.get(&id).map_or_else(entry, |counts| counts.old)
    }

    /// Whether all data blocks can be judged.
    pub(super) fn judge_data(&self) -> bool {
        self.level == 0
    }
}
