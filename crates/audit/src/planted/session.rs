//! Leaks of a recorded session: costs after a commit, and a tree that shrinks in secret.
//!
//! A session has everything that a volume has: commits, growth, a sweep. The costs of its requests
//! come from the model that judges them. The tests of the command judge real volumes, and so show
//! that these behave the same.

mod recording;

use super::call_log::CallLog;
use super::case::{Case, PlantedTrace};
use super::distortion::Distortion;
use crate::schedule::Model;
use crate::trace::{RequestKind, Trace, TraceLogRule, TraceRequest, TraceRule};
use oblivio_splitmix::SplitMix64;

const DEPTH: u32 = 9;
const CACHED: u64 = 100;
const EVERY: usize = 3;
const BATCHES: u64 = 3600;
/// Batches between two commits.
const COMMIT: u64 = 150;
/// Scheduled paths between two due commits. The last of the commits above come early.
const INTERVAL: u64 = 140;
/// Bytes of a bucket, and of one of its slots.
const BUCKET: u64 = 4 * SLOT + 72;
const SLOT: u64 = 65_552;
const FIRST_TURN: u64 = 1234;
/// Quarters of an entry that a log owes as it begins.
const FIRST_QUARTERS: u64 = 256;
/// Files to read; one of them is the secret.
const FILES: u64 = 50;
const SECRET: u64 = 7;

pub(super) use recording::Recording;

/// The planted flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// After a commit, for one file, the read of a bucket in memory is left out.
    SkippedRead,
    /// After a commit, a batch of reads writes one bucket less.
    MissingWrite,
    /// Leaves are dropped for one file, although the size class did not change.
    SecretSweep,
    /// While the tree shrinks, one file's leaves are kept.
    KeptLeaf,
    /// After a read of one file, memory keeps more after the commit.
    OtherMemory,
    /// Where leaves lose slots, one file's leaves keep them.
    LongLeaf,
    /// A sweep takes longer after a read of one file.
    LongSweep,
    /// The top of the tree is in a log for a third of the time: no flaw.
    Logged,
    /// So it is, and a read of one file appends an entry less.
    MissingEntry,
}

/// An honest session or leaky ones, as `leaks` selects.
pub(super) fn cases(leaks: bool) -> Vec<PlantedTrace> {
    let one = |name, flaw| PlantedTrace {
        name,
        leaks: !matches!(flaw, Flaw::None | Flaw::Logged),
        case: Case::Session(Session::new(flaw).run()),
    };
    if !leaks {
        return vec![
            one("a session with commits, growth and a sweep", Flaw::None),
            one("the same with the top of the tree in a log", Flaw::Logged),
        ];
    }
    vec![
        one("after a commit, a read skipped for a cached block", Flaw::SkippedRead),
        one("after a commit, one write less for reads", Flaw::MissingWrite),
        one("leaves dropped under a lying sweep flag", Flaw::SecretSweep),
        one("a leaf kept during a sweep, the flag lies", Flaw::KeptLeaf),
        one("memory that depends on what was read", Flaw::OtherMemory),
        one("a longer round of a sweep for one file", Flaw::LongSweep),
        one("a leaf that keeps its slots for one file", Flaw::LongLeaf),
        one("an entry of the log less for one file", Flaw::MissingEntry),
    ]
}

/// The honest session.
#[cfg(test)]
pub(crate) fn session_trace() -> Trace {
    Session::new(Flaw::None).run()
}

struct Session {
    flaw: Flaw,
    rng: SplitMix64,
    model: Model,
    trace: Trace,
    rule: TraceRule,
    turns: u64,
    accesses: usize,
    committed: bool,
    /// The store's calls, if recorded.
    tape: Option<CallLog>,
    /// Requests since the last commit.
    shown: Vec<TraceRequest>,
    /// The start of a new session.
    kept: Option<Kept>,
    /// Accesses when the log of the top began.
    log_began: usize,
}

/// The state that a commit keeps.
#[derive(Clone)]
struct Kept {
    model: Model,
    rule: TraceRule,
    turns: u64,
    accesses: usize,
}

impl Session {
    fn new(flaw: Flaw) -> Self {
        Self::taped(flaw, None)
    }

    fn taped(flaw: Flaw, tape: Option<CallLog>) -> Self {
        let rule = TraceRule {
            blocks: 1 << DEPTH,
            slots: 4,
            leaf_slots: 3,
            floor: DEPTH,
            floor_slots: 3,
            bucket_bytes: BUCKET,
            slot_bytes: SLOT,
            // From a time when leaves had two slots.
            lacking: vec![Vec::new(), vec![(600, 50)], Vec::new()],
            cached: CACHED,
            turn: FIRST_TURN,
            flush_at: FIRST_TURN + INTERVAL,
            ..TraceRule::default()
        };
        let mut session = Session {
            flaw,
            rng: SplitMix64::new(70),
            model: Model::default(),
            trace: Trace { depth: DEPTH, requests: Vec::new() },
            rule,
            turns: FIRST_TURN,
            accesses: 0,
            committed: false,
            tape,
            shown: Vec::new(),
            kept: None,
            log_began: 0,
        };
        // The last level is only partly stored.
        session.state(Some(vec![(1, (1 << DEPTH) - 1), (600, 100)]));
        session
    }

    fn run(mut self) -> Trace {
        self.work();
        self.trace
    }

    fn work(&mut self) {
        for at in 0..BATCHES {
            match at * 3 / BATCHES {
                1 if self.rule.floor == DEPTH && self.model.depth() == DEPTH => {
                    self.resize(DEPTH + 1, 1)
                }
                2 if self.rule.floor > DEPTH => self.resize(DEPTH, 2),
                _ => {}
            }
            let file = self.rng.below(FILES);
            self.batch(file);
            if at % 20 == 7 {
                self.sync(file);
            }
            if at % COMMIT == COMMIT - 1 {
                // Some in several parts, as in idle maintenance.
                while at % (2 * COMMIT) > COMMIT && self.model.may_flush() {
                    self.flush(RequestKind::Flush);
                }
                // The log ends before the tree grows.
                self.commit(file, at + 2 * COMMIT < BATCHES / 3);
            }
        }
    }

    fn resize(&mut self, floor: u32, slots: u32) {
        (self.rule.floor, self.rule.floor_slots) = (floor, slots);
        if let Some(tape) = &mut self.tape {
            tape.resize();
        }
        self.state(None);
    }

    /// States the rule.
    fn state(&mut self, stored: Option<Vec<(u64, u64)>>) {
        let shape = (self.model.depth(), self.model.leaf_slots());
        let (depth, slots) = shape.max((self.rule.floor, self.rule.floor_slots));
        self.rule.leaf_slots = slots;
        let begins = stored.is_some();
        let rule = Some(TraceRule { stored, turn: self.turns, ..self.rule.clone() });
        let mut request =
            TraceRequest { kind: RequestKind::Rule, depth, rule, ..TraceRequest::default() };
        // The audit must find a flaw in the rule itself, so the model's answer is ignored.
        let _ = self.model.see(&request);
        match &mut self.tape {
            Some(tape) if begins => tape.begin(&mut request, &self.model),
            Some(tape) => tape.say(&request),
            None => {}
        }
        self.trace.requests.push(request);
    }

    /// Another session begins with these buckets.
    fn start(&mut self, depth: u32, stored: Vec<(u64, u64)>) {
        self.model = Model::default();
        let rule = Some(TraceRule { stored: Some(stored), turn: self.turns, ..self.rule.clone() });
        let mut request =
            TraceRequest { kind: RequestKind::Rule, depth, rule, ..TraceRequest::default() };
        let _ = self.model.see(&request);
        self.rule.lacking = Vec::new();
        self.rule.swept = 0;
        if let Some(tape) = &mut self.tape {
            tape.begin(&mut request, &self.model);
        }
        self.trace.requests.push(request);
    }

    /// Makes written bytes durable. Without a tape, the trace shows nothing of it.
    fn sync(&mut self, file: u64) {
        let Some(tape) = &mut self.tape else { return };
        let odd = if tape.distortion == Distortion::OddRecord { 777 * (file % 3) } else { 0 };
        let bytes_written = (20 << 10) + 4096 * (file % 4) + odd;
        let (depth, sweep) = (self.model.depth(), self.model.sweeping());
        let request = TraceRequest {
            kind: RequestKind::Sync,
            depth,
            sweep,
            bytes_written,
            ..TraceRequest::default()
        };
        let _ = self.model.see(&request);
        tape.sync(&request, file == SECRET);
        self.trace.requests.push(request);
    }

    fn batch(&mut self, file: u64) {
        let depth = self.model.depth();
        let mut leaves = Vec::new();
        for _ in 0..=self.rng.below(4) {
            leaves.push(self.rng.below(1 << depth));
        }
        let before = self.accesses;
        self.accesses += leaves.len();
        let due = self.accesses / EVERY - before / EVERY;
        self.show(RequestKind::Batch, leaves, due, file);
        let left = self.model.sweep_left().min(2);
        // A replay of a crashed session, before the first commit, has none of these.
        if self.committed && left > 0 {
            let longer = u64::from(self.flaw == Flaw::LongSweep && file == SECRET);
            self.show(RequestKind::Maintenance, Vec::new(), (left + longer) as usize, file);
        }
    }

    fn show(&mut self, kind: RequestKind, mut leaves: Vec<u64>, due: usize, file: u64) {
        let (depth, sweep) = (self.model.depth(), self.model.sweeping());
        for _ in 0..due {
            leaves.push((self.turns & ((1 << depth) - 1)).reverse_bits() >> (64 - depth));
            self.turns += 1;
        }
        let request =
            TraceRequest { kind, leaves, scheduled: due, sweep, depth, ..TraceRequest::default() };
        self.read_and_write(request, file, true);
    }

    fn read_and_write(&mut self, mut request: TraceRequest, file: u64, announced: bool) {
        let kind = request.kind;
        let (reads, writes) = self.model.cost(&request);
        (request.reads, request.writes) = (reads as u32, writes as u32);
        (request.bytes_read, request.bytes_written) = self.model.moved();
        request.entries = self.model.listed().entries.len() as u32;
        if let Some(log) = &mut self.rule.log {
            log.next += u64::from(request.entries);
        }
        if kind == RequestKind::Batch {
            self.spoil(&mut request, file);
        }
        if let Some(tape) = &mut self.tape {
            tape.round(&self.model, &request, file == SECRET, announced);
        }
        self.shown.push(request.clone());
        self.trace.requests.push(request);
    }

    fn spoil(&mut self, request: &mut TraceRequest, file: u64) {
        let due = request.scheduled as u32;
        let certain = self.committed && file == SECRET;
        match self.flaw {
            Flaw::MissingEntry if certain && request.entries > 0 => request.entries -= 1,
            Flaw::SkippedRead if certain => request.reads -= 1,
            Flaw::MissingWrite if self.committed && due > 0 && self.rng.chance(0.5) => {
                request.writes -= 1;
            }
            Flaw::SecretSweep if certain && due > 0 && !request.sweep => {
                (request.sweep, request.writes) = (true, request.writes - due);
            }
            Flaw::LongLeaf if certain && due > 0 && self.losing_slots() => {
                request.bytes_written += SLOT;
            }
            Flaw::KeptLeaf if certain && due > 0 && request.sweep => {
                (request.sweep, request.writes) = (false, request.writes + due);
            }
            _ => {}
        }
    }

    /// Whether leaves are losing slots.
    fn losing_slots(&self) -> bool {
        self.model.sweeping() && self.model.depth() == self.rule.floor
    }

    fn flush(&mut self, kind: RequestKind) {
        self.flush_some(kind, 0);
    }

    /// `writes` is not 0 if a commit ends a log.
    fn flush_some(&mut self, kind: RequestKind, writes: u32) {
        let depth = self.model.depth();
        let sweep = self.model.sweeping();
        let mut request = TraceRequest { kind, depth, sweep, writes, ..TraceRequest::default() };
        request.writes = self.model.cost(&request).1 as u32;
        request.bytes_written = self.model.moved().1;
        if let Some(tape) = &mut self.tape {
            tape.round(&self.model, &request, false, false);
        }
        self.trace.requests.push(request);
    }

    /// A log goes on, or begins, if it may.
    fn log(&mut self, may: bool) {
        let Some(log) = &mut self.rule.log else {
            let is_logged = [Flaw::Logged, Flaw::MissingEntry].contains(&self.flaw);
            self.log_began = self.accesses;
            self.rule.log = (may && is_logged).then(|| TraceLogRule {
                buckets: 63,
                places: 1000,
                next: 1,
                owed: FIRST_QUARTERS,
                entry_bytes: SLOT / 4,
                slot_bytes: (SLOT / 4).next_multiple_of(512),
                changed: Vec::new(),
            });
            return;
        };
        log.owed = (FIRST_QUARTERS + 5 * (self.accesses - self.log_began) as u64) % 4;
        if !may {
            self.rule.log = None;
        }
    }

    fn commit(&mut self, file: u64, may_log: bool) {
        // A commit that writes something ends a log.
        self.flush_some(RequestKind::Commit, u32::from(!may_log));
        self.log(may_log);
        self.committed = true;
        self.shown.clear();
        if let Some(tape) = &mut self.tape {
            tape.commit(&self.model, file % 2 == 1, file);
        }
        let more = self.flaw == Flaw::OtherMemory && file % 2 == 1;
        self.rule.cached = CACHED + u64::from(more);
        self.rule.flush_at = self.turns + INTERVAL;
        self.state(None);
        if self.tape.is_some() {
            let (model, rule) = (self.model.clone(), self.rule.clone());
            self.kept = Some(Kept { model, rule, turns: self.turns, accesses: self.accesses });
        }
    }
}
