//! The storage's view, request by request. Its text form is a record ([`crate::record`]).

use serde::{Deserialize, Serialize};

/// The deepest tree of a trace: a leaf must fit 64 bits with one to spare.
pub const MAX_DEPTH: u32 = 63;

/// The storage's view, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The leaf level of the tree at the start of the trace. The root is level 0.
    pub depth: u32,
    /// The requests, oldest first.
    pub requests: Vec<TraceRequest>,
}

/// The kinds of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestKind {
    /// Drawn paths, with the due scheduled ones.
    #[default]
    Batch,
    /// Like a batch, and before it: the paths of position-map blocks that were not in memory.
    Map,
    /// Scheduled paths only.
    Maintenance,
    /// Scheduled paths of a repair: in all as many as the tree has leaves.
    Repair,
    /// A record of written bytes.
    Sync,
    /// A part of the next commit's writes, ahead of it.
    Flush,
    /// A commit.
    Commit,
    /// No request: the public rule of the next requests.
    Rule,
}

/// The rule that, together with the shown leaves, determines the buckets read and written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRule {
    /// Addressable blocks, a power of two.
    pub blocks: u64,
    /// Slots of a bucket above the leaves; 0 where all have the same.
    #[serde(default, skip_serializing_if = "is_none")]
    pub slots: u32,
    /// Slots of a leaf's bucket. While the tree shrinks, the most that one has.
    #[serde(default, skip_serializing_if = "is_none")]
    pub leaf_slots: u32,
    /// The leaf level for the size class. A deeper tree is shrinking.
    pub floor: u32,
    /// Slots of a leaf's bucket for the size class. A tree of the same depth with more is
    /// shrinking.
    #[serde(default, skip_serializing_if = "is_none")]
    pub floor_slots: u32,
    /// The number of buckets that stay in memory once a path met them, in heap order.
    pub cached: u64,
    /// Bytes of a full bucket; 0 where only the number of buckets is judged.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bucket_bytes: u64,
    /// Bytes less for each missing slot.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slot_bytes: u64,
    /// Scheduled paths so far.
    pub turn: u64,
    /// The number of scheduled paths at which a commit is due. Cached buckets whose path has no
    /// other turn before are written at once, the others with the commit.
    pub flush_at: u64,
    /// At the start of a session: scheduled paths since the leaf level began to be dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub swept: u64,
    /// At the start of a session, with nothing in memory: the stored buckets, as runs of heap
    /// indices (the first of each, and the count).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Vec<(u64, u64)>>,
    /// Also then: those of them that lack one slot, two and three, as runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacking: Vec<Vec<(u64, u64)>>,
    /// Also then: the offset of each stored bucket in its object, in heap order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<u64>,
    /// Whether reads may begin before the record that announces them is durable.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ahead: bool,
    /// Operations so far. Every 256 of them, one extra path is drawn.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// The log of the top, if one is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<TraceLogRule>,
    /// Of a tree in windows, what its counters say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<TraceWindowRule>,
}

/// The log of the top of a tree: a commit need not write these buckets while it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceLogRule {
    /// How many buckets, the first in heap order.
    pub buckets: u64,
    /// Entries that have a place at a time.
    pub places: u64,
    /// The number of the next entry.
    pub next: u64,
    /// Quarters of an entry that the next round has besides its own.
    pub owed: u64,
    /// Bytes of an entry.
    pub entry_bytes: u64,
    /// The distance of two places in bytes.
    pub slot_bytes: u64,
    /// At the start of a session: the buckets that differ from their stored version, as runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<(u64, u64)>,
}

/// The public counters of a tree in windows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceWindowRule {
    /// The number of the session.
    pub session: u64,
    /// Accesses for each turn.
    pub every: u32,
    /// The binary logarithm of the turns in a window.
    pub log_turns: u32,
    /// Levels that are in memory only.
    pub pool_levels: u32,
    /// Whether the store creates objects exclusively: then nothing is listed.
    pub exclusive: bool,
    /// The first level that no disk cache keeps.
    pub uncached: u32,
    /// Windows so far.
    pub windows: u64,
    /// Accesses left to the next one.
    pub left: u64,
    /// Checkpoints so far.
    pub commits: u64,
    /// Parts that a checkpoint keeps.
    pub kept: u64,
    /// From which window on the tree had which depth, and slots in its leaves.
    pub shapes: Vec<(u64, u32, u32)>,
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One request to the storage: a batch of paths, read and written back, or an event in between.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRequest {
    /// Its kind.
    #[serde(default)]
    pub kind: RequestKind,
    /// Its time, in microseconds since the trace began.
    #[serde(default)]
    pub at: u64,
    /// The leaves of the paths, in the order shown: the drawn ones before those of a public
    /// schedule. A recorder that sees only the union of the paths must list the leaves in the order
    /// of the draws: sorting them makes neighbours depend on each other.
    #[serde(default)]
    pub leaves: Vec<u64>,
    /// How many of them follow a public schedule; these come last.
    #[serde(default)]
    pub scheduled: usize,
    /// Whether the scheduled leaves are dropped instead of written: the tree is shrinking. Of a
    /// tree in windows, whether a window came ahead of its turn, or a session before showed the
    /// batch.
    #[serde(default)]
    pub sweep: bool,
    /// The current leaf level. It may change along a trace.
    pub depth: u32,
    /// Buckets read.
    #[serde(default)]
    pub reads: u32,
    /// Buckets written.
    #[serde(default)]
    pub writes: u32,
    /// Entries written to the log of the top.
    #[serde(default, skip_serializing_if = "is_none")]
    pub entries: u32,
    /// Bytes read.
    #[serde(default)]
    pub bytes_read: u64,
    /// Bytes written, without those of entries.
    #[serde(default)]
    pub bytes_written: u64,
    /// With [`RequestKind::Rule`], the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<TraceRule>,
}

/// Operations between two extra paths.
const EXTRA_EVERY: u64 = 256;

impl TraceRequest {
    /// Operations of a batch, after `before` others: its drawn paths, less the extra ones.
    pub(crate) fn operations(&self, before: u64) -> u64 {
        if self.kind != RequestKind::Batch {
            return 0;
        }
        let drawn = self.parts().0.len() as u64;
        let paths = |n: u64| n + (before + n) / EXTRA_EVERY - before / EXTRA_EVERY;
        let least = drawn.saturating_sub(drawn / EXTRA_EVERY + 1);
        (least..=drawn).find(|&n| paths(n) == drawn).unwrap_or(drawn)
    }

    /// The drawn leaves, and those of the schedule.
    pub fn parts(&self) -> (&[u64], &[u64]) {
        self.leaves.split_at(self.leaves.len().saturating_sub(self.scheduled))
    }

    /// Whether this leaf is one of the tree's at the time of the request.
    pub fn has_leaf(&self, leaf: u64) -> bool {
        self.depth <= MAX_DEPTH && leaf >> self.depth == 0
    }
}

impl Trace {
    /// All paths of the trace.
    pub fn accesses(&self) -> usize {
        self.requests.iter().map(|r| r.leaves.len()).sum()
    }
}
