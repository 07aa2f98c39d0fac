//! What the storage was shown, request by request; its text form is a record ([`crate::record`]).

use serde::{Deserialize, Serialize};

/// The deepest tree a trace can be of: a leaf must fit 64 bits with one to spare.
pub const MAX_DEPTH: u32 = 63;

/// Everything the storage was shown, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The leaf level of the tree when the trace begins; the root is level 0.
    pub depth: u32,
    /// The requests, oldest first.
    pub requests: Vec<Request>,
}

/// What the storage was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Paths that were drawn, with those of the schedule that were due.
    #[default]
    Batch,
    /// As a batch and before it: the paths of position-map blocks that were not in memory.
    Map,
    /// Paths of the schedule alone.
    Maintenance,
    /// A record of written bytes.
    Sync,
    /// A part of what the next commit would write, ahead of it.
    Flush,
    /// A commit.
    Commit,
    /// Nothing of its own: by which public rule the next requests are made.
    Rule,
}

/// What says, with the leaves that are shown, which buckets are read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Addressable blocks, a power of two.
    pub blocks: u64,
    /// Slots of a bucket that is no leaf's; 0 where all have the same.
    #[serde(default, skip_serializing_if = "is_none")]
    pub slots: u32,
    /// Slots of a leaf's bucket; where the tree is becoming smaller, the most that one has.
    #[serde(default, skip_serializing_if = "is_none")]
    pub leaf_slots: u32,
    /// The leaf level that the size class asks for; a deeper tree is becoming smaller.
    pub floor: u32,
    /// Slots of a leaf's bucket that the size class asks for; a tree of the same depth with more is
    /// becoming smaller.
    #[serde(default, skip_serializing_if = "is_none")]
    pub floor_slots: u32,
    /// So many buckets, the first in heap order, are kept in memory once they were met.
    pub cached: u64,
    /// Bytes of a bucket with all its slots; 0 where only their number is judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bucket_bytes: u64,
    /// Bytes by which it is shorter for each slot that it lacks.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slot_bytes: u64,
    /// Scheduled paths so far.
    pub turn: u64,
    /// When there were so many, a commit is due. Cached buckets whose path has no other turn before
    /// are written at once, the others with the commit.
    pub flush_at: u64,
    /// At the beginning of a session: scheduled paths since the leaf level began to be dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swept: u64,
    /// At the beginning of a session, when nothing is in memory: the stored buckets, as runs of
    /// heap indices (the first of each, and how many).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Vec<(u64, u64)>>,
    /// Then too: those of them that lack one slot, two and three, as runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<Vec<(u64, u64)>>,
    /// Then too: where each of the stored buckets begins in its object, in heap order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<u64>,
    /// Operations so far; after every 256 of them one more path is drawn.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One request to the storage: a batch of paths, read and written back, or what goes between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What it was.
    #[serde(default)]
    pub kind: Kind,
    /// When it was done, in microseconds since the trace began.
    #[serde(default)]
    pub at: u64,
    /// The leaves whose paths were asked for, in the order shown, those that were drawn before
    /// those of a public schedule. A recorder that only sees the
    /// union of the paths must list the leaves in the order in which they were drawn: sorting
    /// them makes neighbours depend on each other.
    #[serde(default)]
    pub leaves: Vec<u64>,
    /// How many of them, the last, follow a public schedule.
    #[serde(default)]
    pub scheduled: usize,
    /// Whether the scheduled leaves are dropped and not written: the tree is becoming smaller.
    #[serde(default)]
    pub sweep: bool,
    /// The leaf level at the time; it may change along a trace.
    pub depth: u32,
    /// How many buckets were read.
    #[serde(default)]
    pub reads: u32,
    /// How many buckets were written.
    #[serde(default)]
    pub writes: u32,
    /// How many bytes were read.
    #[serde(default)]
    pub bytes_read: u64,
    /// How many bytes were written.
    #[serde(default)]
    pub bytes_written: u64,
    /// With [`Kind::Rule`], the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

impl Request {
    /// The leaves that were drawn, and those of the schedule.
    pub fn parts(&self) -> (&[u64], &[u64]) {
        self.leaves.split_at(self.leaves.len().saturating_sub(self.scheduled))
    }

    /// Whether this leaf is one of the tree's at the time of the request.
    pub fn has_leaf(&self, leaf: u64) -> bool {
        self.depth <= MAX_DEPTH && leaf >> self.depth == 0
    }
}

impl Trace {
    /// How many paths were asked for in all.
    pub fn accesses(&self) -> usize {
        self.requests.iter().map(|r| r.leaves.len()).sum()
    }
}
