//! The store's view of a session: the calls behind each request, as a volume makes them.
//!
//! This file implements the rules for places, records and states a second time, apart from the code
//! that judges them. The tests of the command show that real volumes do the same.

use super::distortion::Distortion;
use crate::observer::{Since, ahead, intent, object_of};
use crate::record::{RecordLine, RecordedAct, RecordedCall, RecordedSession, VolumeLine};
use crate::schedule::Model;
use crate::trace::{RequestKind, TraceRequest};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Constant bytes of a delta, and of a commit record.
const DELTA_REST: u64 = 30_000;
const COMMIT_BYTES: u64 = 4096;
/// Bytes of the session's first checkpoint.
const CHECKPOINT: u64 = 200_000;
/// The least bytes of deltas before the next checkpoint.
const LEAST_LOG: u64 = 256 << 10;

/// The objects of each pair.
const PAIRS: [[&str; 2]; 2] = [["state-0", "log-0"], ["state-1", "log-1"]];

/// Operations between two syncs, where records run ahead of syncs.
const MOST_AHEAD: u64 = 30;

/// A part of a scrub comes after each of these rounds, and reads this many buckets.
const SCRUB_EVERY: u64 = 7;
const SCRUB_PART: usize = 5;

/// Equal slots of one object.
#[derive(Clone, Default)]
struct Slots {
    stride: u64,
    free: BTreeSet<u64>,
    retired: Vec<u64>,
    end: u64,
}

/// The calls of the store.
#[derive(Clone)]
pub(super) struct CallLog {
    pub(super) lines: Vec<RecordLine>,
    pub(super) distortion: Distortion,
    table: HashMap<u64, (String, u64)>,
    slots: BTreeMap<String, Slots>,
    /// The table at the last commit.
    committed: (HashMap<u64, (String, u64)>, BTreeMap<String, Slots>),
    journal: u64,
    journal_length: u64,
    /// Operations since the last sync, where records run ahead of syncs.
    ahead: u64,
    /// Of each pair.
    logs: [u64; 2],
    checkpoints: [u64; 2],
    /// That of the newest checkpoint.
    pair: usize,
    commits: u64,
    since: Since,
    requests: u64,
    /// Rounds so far, and the bucket that the scrub reads next.
    rounds: u64,
    scrubbed: u64,
    /// Operations, and scheduled paths, at the last commit.
    requests_then: u64,
    turns_then: u64,
}

impl CallLog {
    pub(super) fn new(distortion: Distortion) -> Self {
        CallLog {
            lines: Vec::new(),
            distortion,
            table: HashMap::new(),
            slots: BTreeMap::new(),
            committed: Default::default(),
            journal: 0,
            journal_length: 0,
            ahead: 0,
            logs: [0; 2],
            checkpoints: [CHECKPOINT; 2],
            pair: 0,
            commits: 0,
            since: Since::default(),
            requests: 0,
            rounds: 0,
            scrubbed: 0,
            requests_then: 0,
            turns_then: 0,
        }
    }

    fn is(&self, distortion: Distortion) -> bool {
        self.distortion == distortion
    }

    fn call(&mut self, act: RecordedAct, ranges: &[(&str, u64, u64)]) {
        let call = ranges.iter().fold(RecordedCall::new(act, 0), |call, &(object, offset, len)| {
            call.with(object, offset, len)
        });
        self.lines.push(RecordLine::Call(call));
    }

    fn durable(&mut self, object: &str, offset: u64, len: u64) {
        self.call(RecordedAct::Write, &[(object, offset, len)]);
        self.call(RecordedAct::Sync, &[(object, 0, 0)]);
    }

    /// Begins a session. Its first request gets the table.
    pub(super) fn begin(&mut self, request: &mut TraceRequest, model: &Model) {
        self.lines.push(RecordLine::Session(RecordedSession::default()));
        self.call(RecordedAct::Read, &[("header", 0, 1216), ("header-2", 0, 1216)]);
        self.lines.push(RecordLine::Volume(VolumeLine { id: "01".into(), engine: "tree".into() }));
        self.call(RecordedAct::Lock, &[("", 0, 0)]);
        self.call(RecordedAct::MayKeep, &[("", 0, 8 << 20)]);
        let ahead = self.runs_ahead();
        let Some(rule) = &mut request.rule else { return };
        rule.ahead = ahead;
        for slots in (1..=rule.slots).rev() {
            let bytes = rule.bucket_bytes - u64::from(rule.slots - slots) * rule.slot_bytes;
            let (object, stride) = (object_of(slots, rule.slots), bytes.next_multiple_of(512));
            self.call(RecordedAct::MayRoundUp, &[(&object, 0, stride)]);
            self.slots.entry(object).or_default().stride = stride;
        }
        let slot = |object, offset| (object, offset, 184);
        let slots = [slot("commit", 0), slot("commit", 4096)];
        let copies = [slot("commit-2", 0), slot("commit-2", 4096)];
        self.call(RecordedAct::Read, &[slots, copies].concat());
        for pair in [self.pair, 1 - self.pair] {
            let [state, log] = PAIRS[pair];
            let (state, log) = ((state, 0, self.checkpoints[pair]), (log, 0, self.logs[pair]));
            self.call(RecordedAct::Read, &[state, log]);
        }
        if self.table.is_empty() {
            for bucket in model.stored() {
                let object = object_of(model.slots_of(bucket), rule.slots);
                let slot = self.slots.get_mut(&object).map_or(0, |slots| {
                    slots.end += 1;
                    slots.end - 1
                });
                self.table.insert(bucket, (object, slot));
            }
            self.committed = (self.table.clone(), self.slots.clone());
        }
        let place = |bucket| {
            let (object, slot) = &self.table[bucket];
            slot * self.slots[object].stride
        };
        rule.places = model.stored().iter().map(place).collect();
        rule.requests = self.requests;
        self.say(request);
    }

    /// Breaks the session off: everything since the last commit is void.
    pub(super) fn break_off(&mut self) {
        (self.table, self.slots) = self.committed.clone();
        self.since = Since::default();
        self.requests = self.requests_then;
    }

    pub(super) fn say(&mut self, request: &TraceRequest) {
        self.lines.push(RecordLine::Said(Box::new(request.clone())));
    }

    fn append(&mut self, bytes: u64, written: u64) {
        self.write_record(bytes, written);
        self.call(RecordedAct::Sync, &[("journal", 0, 0)]);
    }

    fn write_record(&mut self, bytes: u64, written: u64) {
        let end = self.journal + bytes;
        let grows = end > self.journal_length;
        if grows {
            self.journal_length = ahead(end);
        }
        let len = if grows { ahead(end) - self.journal } else { written };
        self.call(RecordedAct::Write, &[("journal", self.journal, len)]);
        self.journal = end;
    }

    fn runs_ahead(&self) -> bool {
        self.is(Distortion::Ahead) || self.is(Distortion::AheadLate)
    }

    /// Writes the intent of a batch of this many operations.
    fn intend(&mut self, bytes: u64, operations: u64) {
        if !self.runs_ahead() {
            return self.append(bytes, bytes);
        }
        self.write_record(bytes, bytes);
        self.ahead += operations;
        if self.ahead > MOST_AHEAD {
            self.ahead = 0;
            self.call(RecordedAct::Sync, &[("journal", 0, 0)]);
        }
    }

    /// Writes a record of a change of size.
    pub(super) fn resize(&mut self) {
        self.append(intent(0), intent(0));
        self.since.resized = true;
    }

    /// Reads the journal, before its content is replayed.
    pub(super) fn read_journal(&mut self) {
        self.call(RecordedAct::Len, &[("journal", 0, 0)]);
        self.call(RecordedAct::Read, &[("journal", 0, self.journal)]);
    }

    /// Writes a record of written bytes.
    pub(super) fn sync(&mut self, request: &TraceRequest, secret: bool) {
        let longer = if secret && self.is(Distortion::LongRecord) { 4096 } else { 0 };
        self.append(request.bytes_written, request.bytes_written + longer);
        self.say(request);
    }

    /// The store calls of a round, or of a part of a commit; `announced` unless it is a replay.
    pub(super) fn round(
        &mut self,
        model: &Model,
        request: &TraceRequest,
        secret: bool,
        announced: bool,
    ) {
        let mut said = request.clone();
        let is_late = self.is(Distortion::LateIntent) || self.is(Distortion::AheadLate);
        let late = secret && is_late;
        let shows = matches!(request.kind, RequestKind::Batch | RequestKind::Maintenance);
        let operations = request.operations(self.requests);
        let more = if secret && self.is(Distortion::LongIntent) { 4096 } else { 0 };
        let bytes = intent(if request.kind == RequestKind::Batch { operations } else { 0 }) + more;
        if shows && announced && !late {
            self.intend(bytes, operations);
        }
        if secret && self.is(Distortion::Hint) {
            self.call(RecordedAct::MayKeep, &[("", 0, 4 << 20)]);
        } else if shows && announced && self.commits > 0 {
            // Before the paths of this round.
            let done = model.turns() - request.scheduled as u64 - self.turns_then;
            self.call(RecordedAct::MayKeep, &[("", 0, (4 << 20) - done)]);
        }
        if secret && self.is(Distortion::SecretRead) {
            self.call(RecordedAct::Read, &[("header", 0, 8), ("state-0", 0, 8)]);
        }
        self.read(model, &mut said, secret);
        if shows && late {
            self.intend(bytes, operations);
        }
        self.write(model, secret);
        self.since.paths += request.leaves.len() as u64;
        self.since.operations += operations;
        self.requests += operations;
        self.since.resized |= model.sweeping();
        let listed = model.listed();
        self.since.buckets.extend(listed.written.iter().map(|written| written.0));
        self.since.buckets.extend(&listed.dropped);
        self.say(&said);
        self.rounds += 1;
        if self.rounds.is_multiple_of(SCRUB_EVERY) {
            self.scrub(model, secret);
        }
    }

    /// A part of a scrub: some buckets, in the order of the heap.
    fn scrub(&mut self, model: &Model, secret: bool) {
        let stored = model.stored();
        let jump = if secret && self.is(Distortion::ScrubPlace) { 40 } else { 0 };
        let first = stored.partition_point(|&bucket| bucket < self.scrubbed) + jump;
        let end = stored.len().min(first + SCRUB_PART);
        let mut part = stored.get(first..end).unwrap_or_default().to_vec();
        self.scrubbed = stored.get(end).copied().unwrap_or(0);
        if secret && self.is(Distortion::ScrubOrder) {
            part.reverse();
        }
        let mut call = RecordedCall::new(RecordedAct::Read, 0);
        for bucket in part {
            let (object, slot) = &self.table[&bucket];
            let slots = &self.slots[object];
            call.add(object, slot * slots.stride, slots.stride);
        }
        self.lines.push(RecordLine::Call(call));
    }

    fn read(&mut self, model: &Model, said: &mut TraceRequest, secret: bool) {
        let mut call = RecordedCall::new(RecordedAct::Read, 0);
        let mut buckets = model.listed().read.clone();
        if secret && self.is(Distortion::ReadOrder) {
            buckets.reverse();
        }
        if secret && self.is(Distortion::MoreThanSaid) {
            buckets.push(buckets.last().copied().unwrap_or_default());
        }
        for (bucket, bytes) in buckets {
            if let Some((object, slot)) = self.table.get(&bucket) {
                call.add(object, slot * self.slots[object].stride, bytes);
            }
        }
        if !call.on.is_empty() {
            self.lines.push(RecordLine::Call(call));
        }
        if secret && self.is(Distortion::OtherPath) && said.scheduled < said.leaves.len() {
            said.leaves[0] ^= 1 << (said.depth - 2);
        }
    }

    fn write(&mut self, model: &Model, secret: bool) {
        let mut call = RecordedCall::new(RecordedAct::Write, 0);
        for &(bucket, bytes) in &model.listed().written {
            let object = object_of(model.slots_of(bucket), model.rule().slots);
            let highest = secret && self.is(Distortion::Slot);
            let Some(slots) = self.slots.get_mut(&object) else { continue };
            let free = if highest { slots.free.pop_last() } else { slots.free.pop_first() };
            let slot = free.unwrap_or_else(|| {
                slots.end += 1;
                slots.end - 1
            });
            call.add(&object, slot * slots.stride, bytes);
            if let Some((object, old)) = self.table.insert(bucket, (object, slot)) {
                self.slots.entry(object).or_default().retired.push(old);
            }
        }
        if !call.on.is_empty() {
            self.lines.push(RecordLine::Call(call));
        }
    }

    /// The state and the record of a commit, after the writes of its buckets.
    pub(super) fn commit(&mut self, model: &Model, secret: bool, removed: u64) {
        let stored: BTreeSet<u64> = model.stored().into_iter().collect();
        let gone: Vec<u64> = self.table.keys().copied().filter(|at| !stored.contains(at)).collect();
        for bucket in gone {
            if let Some((object, slot)) = self.table.remove(&bucket) {
                self.slots.entry(object).or_default().retired.push(slot);
            }
        }
        let early = secret && self.is(Distortion::EarlyCheckpoint);
        let (first, newest) = (self.pair, self.checkpoints[self.pair]);
        let due = self.logs[first] > newest.max(LEAST_LOG) || early;
        if due {
            self.pair = 1 - first;
            let odd = if self.is(Distortion::LongCheckpoint) { removed } else { 0 };
            let last = stored.last().map_or(0, |last| last + 1);
            (self.checkpoints[self.pair], self.logs[self.pair]) = (CHECKPOINT + 4 * last + odd, 0);
            self.durable(PAIRS[self.pair][0], 0, self.checkpoints[self.pair]);
        }
        let odd = match self.distortion {
            // As many words of "exists" bits as the removed blocks need, adjacent or not.
            Distortion::LongDelta => removed.div_ceil(40) * 16 * 1024,
            Distortion::DeltaOfStash => 16 * (removed % 3),
            _ => 0,
        };
        let bytes = self.since.bytes() + DELTA_REST + odd;
        let mut synced = vec![("slab", 0, 0)];
        for pair in if due { vec![first] } else { vec![first, 1 - first] } {
            let log = PAIRS[pair][1];
            self.call(RecordedAct::Write, &[(log, self.logs[pair], bytes)]);
            self.logs[pair] += bytes;
            synced.push((log, 0, 0));
        }
        self.call(RecordedAct::Sync, &synced);
        let again = u64::from(secret && self.is(Distortion::SameCommitPlace));
        let record = |object| (object, (self.commits + again) % 2 * 4096, COMMIT_BYTES);
        self.call(RecordedAct::Write, &[record("commit"), record("commit-2")]);
        self.call(RecordedAct::Sync, &[("commit", 0, 0), ("commit-2", 0, 0)]);
        self.commits += 1;
        (self.journal, self.ahead) = (0, 0);
        self.since = Since::default();
        for slots in self.slots.values_mut() {
            slots.free.extend(slots.retired.drain(..));
        }
        self.committed = (self.table.clone(), self.slots.clone());
        (self.requests_then, self.turns_then) = (self.requests, model.turns());
    }
}
