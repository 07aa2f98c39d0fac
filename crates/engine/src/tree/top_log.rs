//! The log of the top of the tree: what makes its first buckets durable while they are only in
//! memory (docs/decisions/0048-top-log.md).
//!
//! A bucket near the root is rewritten at each of its turns. Where there are more buckets in a
//! level than turns between two commits, each turn costs a whole bucket. What a turn changes in the
//! top is little: only an access puts a block there. So each access appends one *entry*, the block
//! as it is now. A block that only moves within the top has its home where it was: an entry, or a
//! slot of a bucket as it is stored, which stays as long as the log is kept. A commit stores the
//! home of each block. A quarter of an entry more for each access renews the oldest ones that are
//! still needed, so all that are needed stay among the last [`TopRule::span`]. Entries follow from
//! the number of accesses alone. One that nothing needs is written like every other.

use super::bitset::SlotId;
use super::block_pool::Payload;
use super::bounds::STASH_BOUND;
use super::geometry::SlotHeader;
use crate::{Address, BucketId, Label};
use oblivio_crypto::Tag;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Extents from this offset on are entries of the log, by their number.
pub const LOG_ENTRIES: u64 = 1 << 62;

/// Set in the home of a block that is in a slot of a stored bucket; the rest is that slot.
pub(super) const STORED: u64 = 1 << 63;

/// What a log of the top is for. All of it is public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopRule {
    /// The buckets, in heap order, whose blocks it makes durable.
    pub buckets: u64,
    /// The entries, the newest ones, that hold all these blocks.
    pub span: u64,
    /// The entries for which the store has places; the rest may come between two commits.
    pub places: u64,
}

impl TopRule {
    /// The least span for this many buckets, with two levels or more of the tree below them: no
    /// workload of the simulations needed 9/2 entries a bucket. Where one does, it would show
    /// (docs/decisions/0048-top-log.md).
    pub fn span_of(buckets: u64) -> u64 {
        5 * buckets + 2 * STASH_BOUND as u64
    }
}

/// The top of a tree that buckets do not make durable, if it has one.
#[derive(Default)]
pub struct Top {
    /// Whether the cached buckets are stored nowhere else.
    pub(super) is_pool: bool,
    /// What makes the first buckets durable while it is kept.
    pub(super) log: Option<TopLog>,
    /// The number of the next entry of a log.
    pub(super) next: u64,
    /// Of a state that is being loaded.
    pub(super) found: Option<FoundTop>,
}

impl Top {
    /// Whether there is one.
    pub(super) fn is_kept(&self) -> bool {
        self.is_pool || self.log.is_some()
    }

    /// The home of a block in this slot of a bucket as it is stored; `of_top` says if it is of the
    /// top.
    pub(super) fn home(&self, of_top: bool, slot: SlotId) -> u64 {
        if of_top && self.log.is_some() { STORED | slot.0 } else { 0 }
    }

    /// Whether buckets do not make a bucket's blocks durable; `cached` says if it is in memory.
    pub(super) fn holds(&self, bucket: BucketId, cached: bool) -> bool {
        match &self.log {
            Some(log) => log.holds(bucket),
            None => self.is_pool && cached,
        }
    }
}

/// An entry that was written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub id: Address,
    pub label: Label,
    /// The tag of its sealed bytes.
    pub tag: Tag,
}

impl Entry {
    /// One that nothing needs.
    pub const NONE: Entry = Entry { id: Address::NONE, label: Label(0), tag: Tag([0; 16]) };
}

/// A log under way.
pub(super) struct TopLog {
    pub rule: TopRule,
    /// The number of the next entry; from 1 on.
    pub next: u64,
    /// The number of the first of `entries`. None before it is needed.
    pub first: u64,
    pub entries: VecDeque<Entry>,
    /// Blocks that get an entry in this round, in the order of their numbers.
    pub fresh: Vec<(SlotHeader, Payload)>,
    /// Quarters of an entry that are owed.
    pub quarters: u64,
}

impl TopLog {
    pub fn new(rule: TopRule, next: u64) -> Self {
        let (fresh, entries) = (Vec::new(), VecDeque::new());
        Self { rule, next, first: next, entries, fresh, quarters: 0 }
    }

    /// Whether it makes a bucket's blocks durable.
    pub fn holds(&self, bucket: BucketId) -> bool {
        bucket.0 <= self.rule.buckets
    }

    /// The entry of this number, if it may be needed.
    pub fn entry(&self, number: u64) -> Option<&Entry> {
        self.entries.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The home of a block that is now in the top or the stash: the one it has, or its next entry.
    pub fn home_of(&mut self, home: u64, header: &SlotHeader, payload: Payload) -> u64 {
        if home > 0 {
            return home;
        }
        self.fresh.push((*header, payload));
        self.next + self.fresh.len() as u64 - 1
    }
}

/// A bucket of the top, as an index lists it.
pub(super) struct ListedBucket {
    pub bucket: BucketId,
    /// The tag of its stored version; zeros if there is none.
    pub stored: Tag,
    pub child_tags: [Tag; 2],
    pub slots: u8,
    pub blocks: Vec<ListedBlock>,
}

/// A block in memory, as an index lists it.
pub(super) struct ListedBlock {
    pub header: SlotHeader,
    pub home: u64,
    pub tag: Tag,
}

/// A top as a state names it, whose entries are to be read.
#[derive(Default)]
pub struct FoundTop {
    pub(super) rule: TopRule,
    pub(super) entries: Range<u64>,
    pub(super) buckets: Vec<ListedBucket>,
    pub(super) stash: Vec<(u64, Tag)>,
    /// The blocks that wait for their content, by their homes.
    pub(super) wanted: BTreeMap<u64, (SlotHeader, Payload)>,
}

impl FoundTop {
    /// The rule of the log.
    pub fn rule(&self) -> TopRule {
        self.rule
    }

    /// The buckets whose stored version is to be read, ascending.
    pub fn buckets(&self) -> Vec<BucketId> {
        let stored = self.buckets.iter().filter(|it| it.stored != Tag::default());
        stored.rev().map(|it| it.bucket).collect()
    }

    /// The numbers of all entries that are to be read, whether a block needs them or not.
    pub fn entries(&self) -> Range<u64> {
        self.entries.clone()
    }
}
