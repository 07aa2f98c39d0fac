//! The consequences of the public rule: the buckets that each request reads and writes.
//!
//! A request reads a bucket that is stored and not in memory. Memory holds the first buckets in
//! heap order, once a path met them. A request writes those whose path has no other turn before
//! the commit; the commit writes the rest. While the tree loses a level, a scheduled path drops its
//! leaf bucket; while leaves lose slots, it writes it with fewer. Nothing is estimated.

mod rules;

use super::lengths::{Lengths, end_of, is_size_class};
use super::repair::RepairProgress;
use super::stored::Stored;
use super::top_log::{self, LogModel};
use crate::trace::{RequestKind, TraceRequest, TraceRule};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Scheduled paths that follow each batch while the tree shrinks.
const SWEEP_BATCH: u64 = 2;
/// Bytes of one partial flush ahead of a commit.
const AHEAD_BYTES: u64 = 4 << 20;
/// Buckets in the order of their reads and writes, each with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    /// Ascending.
    pub(crate) read: Vec<(u64, u64)>,
    /// Descending.
    pub(crate) written: Vec<(u64, u64)>,
    /// Those that the tree dropped.
    pub(crate) dropped: Vec<u64>,
    /// Entries of the top's log: the offset of each, and its bytes.
    pub(crate) entries: Vec<(u64, u64)>,
}

/// The public state of a volume, derived from its trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    rule: TraceRule,
    depth: u32,
    leaf_slots: u32,
    swept: u64,
    stored: Stored,
    lengths: Lengths,
    /// Bytes that the last request read and wrote.
    moved: (u64, u64),
    /// The buckets that it read and wrote, in order, each with its bytes.
    listed: Listed,
    loaded: HashSet<u64>,
    dirty: BTreeSet<u64>,
    /// Whether the start of a session was seen; before it nothing is known.
    begun: bool,
    /// Whether the session has committed. Before that, it replays a crashed one.
    settled: bool,
    /// The kind of the last request.
    last: Option<RequestKind>,
    /// Paths that must be swept next.
    owed: u64,
    repair: RepairProgress,
    /// Cached buckets at each size: addressable blocks, depth and floor.
    cached_at: HashMap<(u64, u32, u32), u64>,
    /// Scheduled paths so far.
    turns: u64,
    log: LogModel,
    /// Scheduled paths between commits, by the bytes of stored buckets.
    intervals: BTreeMap<u64, u64>,
}

impl Model {
    /// Processes a request, and returns a description of its fault, if any.
    pub(crate) fn see(&mut self, request: &TraceRequest) -> Option<String> {
        if request.kind == RequestKind::Rule {
            return self.take_rule(request);
        }
        if !self.begun {
            return Some("the trace does not say what was stored when it began".into());
        }
        let odd = self.repair.see(request, (end_of(self.depth) / 2, !self.settled));
        let odd = odd.or_else(|| self.odd(request));
        let (reads, writes) = self.cost(request);
        let odd = odd.or_else(|| self.other_bytes(request));
        let (entries, due) = (request.entries as usize, self.listed.entries.len());
        let odd = odd.or_else(|| {
            (entries != due).then(|| format!("{entries} entries of the log, where {due} are due"))
        });
        odd.or_else(|| {
            let costs = (u64::from(request.reads), u64::from(request.writes));
            (costs != (reads, writes)).then(|| {
                format!(
                    "{} buckets read and {} written, but its paths ask for {reads} and {writes}",
                    costs.0, costs.1
                )
            })
        })
    }

    /// The fault in the bytes of a request whose cost was counted, by the lengths of buckets.
    fn other_bytes(&self, request: &TraceRequest) -> Option<String> {
        let bytes = (request.bytes_read, request.bytes_written);
        let judged = self.rule.bucket_bytes > 0 && request.kind != RequestKind::Sync;
        (judged && bytes != self.moved).then(|| {
            format!(
                "{} bytes read and {} written, but its buckets have {} and {}",
                bytes.0, bytes.1, self.moved.0, self.moved.1
            )
        })
    }

    /// Bytes that the last request read and wrote, if the rule states them.
    pub(crate) fn moved(&self) -> (u64, u64) {
        self.moved
    }

    /// The buckets that the last request read and wrote.
    pub(crate) fn listed(&self) -> &Listed {
        &self.listed
    }

    /// The current rule.
    pub(crate) fn rule(&self) -> &TraceRule {
        &self.rule
    }

    /// Scheduled paths so far.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    /// Scheduled paths since the leaf level began to be dropped.
    pub(crate) fn swept(&self) -> u64 {
        self.swept
    }

    /// Slots of a stored bucket.
    pub(crate) fn slots_of(&self, bucket: u64) -> u32 {
        self.lengths.slots(bucket, &self.rule)
    }

    /// Whether a bucket is stored.
    pub(crate) fn has(&self, bucket: u64) -> bool {
        self.stored.contains(bucket)
    }

    /// The index after the last stored bucket.
    pub(crate) fn stored_end(&self) -> u64 {
        self.stored.last().map_or(0, |last| last.saturating_add(1))
    }

    /// The stored buckets, ascending.
    pub(crate) fn stored(&self) -> Vec<u64> {
        self.stored.all()
    }

    /// The most slots of a leaf's bucket now.
    pub(crate) fn leaf_slots(&self) -> u32 {
        self.leaf_slots
    }

    /// Whether the tree is shrinking.
    pub(crate) fn sweeping(&self) -> bool {
        self.shape() > self.floor()
    }

    /// The size of the tree, then that of its size class: the leaf level, and slots there.
    fn shape(&self) -> (u32, u32) {
        (self.depth, self.leaf_slots)
    }

    fn floor(&self) -> (u32, u32) {
        (self.rule.floor, self.rule.floor_slots)
    }

    /// Slots of a bucket of the current leaves after the sweep; none if it is gone.
    fn kept(&self, (floor, slots): (u32, u32)) -> u32 {
        if floor < self.depth { 0 } else { slots }
    }

    /// The current leaf level.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Scheduled paths until the tree has the shape of its size class.
    pub(crate) fn sweep_left(&self) -> u64 {
        if !self.sweeping() {
            return 0;
        }
        // The leaves of each dropped level, and those of the last once more for their slots.
        let (floor, slots) = self.floor();
        let before = if self.depth > floor { self.rule.slots } else { self.leaf_slots };
        let last = if before > slots { end_of(floor) / 2 } else { 0 };
        let levels = end_of(self.depth).saturating_sub(end_of(floor));
        levels.saturating_add(last).saturating_sub(self.swept)
    }

    /// A fault of a request that is independent of its cost.
    fn odd(&self, request: &TraceRequest) -> Option<String> {
        let paths = request.scheduled as u64;
        if request.depth != self.depth {
            return Some(format!("leaves at {}, not at {}", request.depth, self.depth));
        }
        if request.sweep != self.sweeping() {
            let right = if self.sweeping() { "is" } else { "is not" };
            return Some(format!("the tree {right} becoming smaller, but it says otherwise"));
        }
        match request.kind {
            RequestKind::Maintenance if paths > self.sweep_left() => {
                Some(format!("{paths} paths swept, where {} were left", self.sweep_left()))
            }
            RequestKind::Maintenance if self.owed > 0 && paths != self.owed => {
                Some(format!("{paths} paths swept after a batch, not {}", self.owed))
            }
            RequestKind::Batch | RequestKind::Map | RequestKind::Flush | RequestKind::Commit
                if self.owed > 0 =>
            {
                Some(format!("{} paths were to be swept after the batch before it", self.owed))
            }
            RequestKind::Flush | RequestKind::Commit | RequestKind::Sync
                if !request.leaves.is_empty() =>
            {
                Some("it shows paths".into())
            }
            RequestKind::Flush if !self.may_flush() => {
                Some("what is left is no more than a commit writes at once".into())
            }
            RequestKind::Sync if !is_size_class(request.bytes_written) => {
                Some(format!("a record of {} bytes is of no size class", request.bytes_written))
            }
            _ => None,
        }
    }

    /// Reads and writes the buckets of a request, and returns their numbers.
    pub(crate) fn cost(&mut self, request: &TraceRequest) -> (u64, u64) {
        self.last = Some(request.kind);
        self.moved = (0, 0);
        self.listed = Listed::default();
        match request.kind {
            RequestKind::Sync | RequestKind::Rule => (0, 0),
            RequestKind::Flush => (0, self.flush(self.flush_part())),
            RequestKind::Commit => {
                self.settled = true;
                let most = match &self.rule.log {
                    // The log goes on.
                    Some(_) if request.writes == 0 => 0,
                    _ => usize::MAX,
                };
                (0, self.flush(most))
            }
            // With paths.
            _ => {
                let scheduled = request.parts().1;
                let reads = self.read(&request.leaves);
                let writes = self.write(scheduled);
                let accesses = (request.leaves.len() - scheduled.len()) as u64;
                self.listed.entries = self.log.round(&self.rule, accesses);
                self.count_swept(scheduled.len() as u64);
                let owes = request.kind == RequestKind::Batch && self.settled;
                self.owed = if owes { self.sweep_left().min(SWEEP_BATCH) } else { 0 };
                (reads, writes)
            }
        }
    }

    /// Buckets of one partial flush ahead of a commit.
    fn flush_part(&self) -> usize {
        (AHEAD_BYTES / self.rule.bucket_bytes.max(1)).max(1) as usize
    }

    /// Whether more buckets wait for a commit than one part holds.
    pub(crate) fn may_flush(&self) -> bool {
        self.dirty.len() > self.flush_part()
    }

    /// Writes at most this many of the buckets that wait for a commit, the last in heap order.
    fn flush(&mut self, most: usize) -> u64 {
        let mut written = 0;
        while written < most
            && let Some(bucket) = self.dirty.pop_last()
        {
            self.put(bucket);
            written += 1;
        }
        written as u64
    }

    fn read(&mut self, leaves: &[u64]) -> u64 {
        let mut reads = 0;
        for bucket in buckets(leaves, self.depth) {
            let met = bucket <= self.rule.cached && !self.loaded.insert(bucket);
            if self.stored.contains(bucket) && !met {
                let bytes = self.lengths.bytes(bucket, &self.rule);
                self.moved.0 += bytes;
                self.listed.read.push((bucket, bytes));
                reads += 1;
            }
        }
        reads
    }

    fn write(&mut self, scheduled: &[u64]) -> u64 {
        let mut writes = 0;
        self.turns = self.turns.saturating_add(scheduled.len() as u64);
        let room = if self.sweeping() { self.kept(self.floor()) } else { self.leaf_slots };
        for bucket in buckets(scheduled, self.depth).into_iter().rev() {
            let level = bucket.ilog2();
            let slots = if level == self.depth { room } else { self.rule.slots };
            self.lengths.set(bucket, slots, &self.rule);
            if self.depth > self.rule.floor && level == self.depth {
                if self.stored.contains(bucket) {
                    self.listed.dropped.push(bucket);
                }
                self.stored.set(bucket, false);
                self.loaded.remove(&bucket);
                self.dirty.remove(&bucket);
            } else if self.is_written(bucket) {
                self.dirty.remove(&bucket);
                self.put(bucket);
                writes += 1;
            } else {
                self.dirty.insert(bucket);
            }
        }
        writes
    }

    /// Whether a bucket whose turn it is goes to the store at once.
    fn is_written(&self, bucket: u64) -> bool {
        match &self.rule.log {
            Some(log) => bucket > log.buckets,
            None => {
                bucket > self.rule.cached || next_turn(bucket, self.turns) >= self.rule.flush_at
            }
        }
    }

    /// The buckets, ascending and with their bytes, whose stored version has blocks that are in
    /// memory alone since.
    pub(crate) fn homes(&self) -> Vec<(u64, u64)> {
        let stored = self.dirty.iter().filter(|bucket| self.stored.contains(**bucket));
        stored.map(|bucket| (*bucket, self.lengths.bytes(*bucket, &self.rule))).collect()
    }

    /// Bytes of a state's index of the top.
    pub(crate) fn index_bytes(&self) -> u64 {
        top_log::index_bytes(&self.rule, self.dirty.len() as u64)
    }

    /// Writes a bucket.
    fn put(&mut self, bucket: u64) {
        self.stored.set(bucket, true);
        let bytes = self.lengths.bytes(bucket, &self.rule);
        self.moved.1 += bytes;
        self.listed.written.push((bucket, bytes));
    }

    /// Ends the sweep once each leaf had its turn: they have lost their slots, or are gone.
    fn count_swept(&mut self, paths: u64) {
        if !self.sweeping() {
            return;
        }
        self.swept = self.swept.saturating_add(paths);
        if self.swept < end_of(self.depth) / 2 {
            return;
        }
        self.swept = 0;
        if self.depth == self.rule.floor {
            self.leaf_slots = self.rule.floor_slots;
            return;
        }
        (self.depth, self.leaf_slots) = (self.depth - 1, self.rule.slots);
        let end = end_of(self.depth);
        self.stored.cut(end);
        self.lengths.cut(end);
        self.loaded.retain(|&bucket| bucket < end);
        self.dirty.retain(|&bucket| bucket < end);
    }
}

/// The first turn of the schedule from `now` on whose path includes a bucket.
fn next_turn(bucket: u64, now: u64) -> u64 {
    let level = bucket.ilog2();
    let period = 1u64 << level;
    let phase = (bucket - period).reverse_bits().checked_shr(64 - level).unwrap_or(0);
    now.saturating_add(phase.wrapping_sub(now) & (period - 1))
}

/// The buckets on the paths to these leaves.
fn buckets(leaves: &[u64], depth: u32) -> BTreeSet<u64> {
    let bottom = |leaf: u64| 1u64.checked_shl(depth).unwrap_or(0) | leaf;
    leaves.iter().flat_map(|&leaf| (0..=depth).map(move |up| bottom(leaf) >> up)).collect()
}
