//! Judges what an online store sees of a volume on the tree in windows.
//!
//! | what | must follow from |
//! |---|---|
//! | names, order, times of objects | counters: of windows, checkpoints, entries; the session |
//! | ranges that a batch reads, in one call | its leaves, the windows, what the disk cache holds |
//! | what a window reads and writes, and when | the counter; ahead only while the tree shrinks |
//! | lengths | the level and the size class; of parts, public numbers; of entries, classes |
//! | entries | batches, checkpoints, syncs, changes of size: one for each, and no other |
//! | parities, copies of entries | the number of a checkpoint, or the rest of a session after it |
//! | deletions | what a checkpoint replaced, after its pointer, all of it |
//! | a call that failed | it comes again, the same |
//! | the first batches of a session | what the session before showed since its commit, in order |
//! | looks | one at least a minute before a batch |
//! | leaves | chance: the tests of all trees |

mod log;
mod names;
mod tree;

use crate::checks::judge_chance;
use crate::observer::Deviation;
use crate::record::{RecordedAct, RecordedCall};
use crate::report::{AuditOptions, Finding, Report};
use crate::trace::{RequestKind, Trace, TraceRequest, TraceRule, TraceWindowRule};
use log::{Log, PartKey};
use names::Name;
use std::collections::{BTreeSet, VecDeque};
use tree::Tree;

/// A session looks for a later one at least so often before it reads, in microseconds: once a
/// minute, and the time of a request.
const LOOK: u64 = 61_000_000;
/// It looks whether others want the volume no more often than that.
const HEED: u64 = 15_000_000;

/// Deviations from each rule.
#[derive(Clone, Debug, Default)]
struct Findings {
    reads: Deviation,
    windows: Deviation,
    parts: Deviation,
    entries: Deviation,
    deletes: Deviation,
    again: Deviation,
    retries: Deviation,
    looks: Deviation,
    others: Deviation,
}

/// A batch that was shown: the checkpoints before it, and its leaves.
type Shown = (u64, Vec<u64>);

/// The view of the store, call by call, with the volume's statements of what it drew.
#[derive(Clone, Debug, Default)]
pub struct Online {
    tree: Tree,
    log: Log,
    /// Calls that read buckets since the last statement.
    reads: Vec<Vec<(Name, u64, u64)>>,
    /// The window that is being written: levels and lengths.
    writes: Vec<(u32, u64)>,
    wrote: Vec<String>,
    /// Whether the session under way stated its rule, and its number.
    begun: bool,
    /// Whether it may still carry out what earlier ones left: it makes no checkpoint before.
    replaying: bool,
    number: u64,
    lists: u64,
    /// Accesses left to the next window, and those beyond the last one.
    left: u64,
    over: u64,
    /// Paths since the last window that no operation asked for.
    spare: u64,
    /// Operations so far: every 256 of them, one more path is drawn.
    requests: u64,
    /// Since the last part: accesses, windows, and paths beyond operations.
    since: (u64, u64, u64),
    windows_uncommitted: u64,
    looked: Option<u64>,
    /// When the session last looked whether others want the volume.
    heeded: u64,
    /// Batches since the commits that a later session may start from.
    shown: VecDeque<Shown>,
    /// How many of these, the last, the session under way has to show again.
    owed: usize,
    /// The batches that were drawn.
    drawn: Vec<TraceRequest>,
    odd: Findings,
    /// A call that failed, which must come again.
    failed: Option<RecordedCall>,
    session: String,
}

impl Online {
    /// A session begins.
    pub fn begin(&mut self) {
        self.end();
        (self.begun, self.lists, self.looked) = (false, 0, None);
        self.session.clear();
        self.failed = None;
    }

    /// A session ends, by itself or not. Its last entry may be of an end.
    pub fn end(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.wrote.clear();
    }

    /// The last call failed: the store saw it, and it must come again.
    pub fn fail(&mut self, call: &RecordedCall) {
        // There may be no hint.
        if call.ranges().all(|(name, ..)| Name::of(name) == Name::Hint) {
            return;
        }
        self.failed = Some(call.clone());
        // It comes again at once.
        let wants = |name: &str| matches!(Name::of(name), Name::Want { .. });
        if call.ranges().any(|(name, ..)| wants(name)) {
            self.heeded = 0;
        }
    }

    /// Takes a call.
    pub fn take(&mut self, call: &RecordedCall) {
        // Before a read is repeated, the session looks whether another one began.
        let looks =
            call.act == RecordedAct::Len && call.ranges().all(|(name, ..)| self.is_next(name));
        let repeats = |failed: &mut RecordedCall| failed.act != RecordedAct::Read || !looks;
        if let Some(failed) = self.failed.take_if(repeats) {
            let same = (failed.act, &failed.on) == (call.act, &call.on);
            let wrong = || format!("{failed:?} failed, and then came {call:?}");
            self.odd.retries.look((!same).then(wrong));
        }
        let wrong = match call.act {
            RecordedAct::Read => self.read(call),
            RecordedAct::Write | RecordedAct::Put => return self.write(call),
            RecordedAct::Sync => {
                call.ranges().for_each(|(name, ..)| self.log.synced(name));
                None
            }
            RecordedAct::Len => self.look(call),
            RecordedAct::List => {
                self.lists += 1;
                self.looked = Some(call.at);
                let free = self.begun && self.tree.of().exclusive;
                free.then(|| "a list, where objects are created exclusively".into())
            }
            RecordedAct::Delete => return self.delete(call),
            RecordedAct::Lock | RecordedAct::Free if !self.begun => None,
            act => Some(format!("{act:?} of {:?}", call.on.first())),
        };
        self.odd.others.look(wrong);
    }

    /// Whether a name is that of the next session's claim.
    fn is_next(&self, name: &str) -> bool {
        matches!(Name::of(name), Name::Claim { number } if number == self.number + 1)
    }

    fn read(&mut self, call: &RecordedCall) -> Option<String> {
        let ranges = call.ranges().map(|(name, offset, len)| (Name::of(name), offset, len));
        let ranges: Vec<_> = ranges.collect();
        if ranges.iter().any(|range| matches!(range.0, Name::Buckets { .. })) {
            self.reads.push(ranges);
            return None;
        }
        self.begun.then(|| format!("{:?} was read in the middle of a session", call.on.first()))
    }

    fn look(&mut self, call: &RecordedCall) -> Option<String> {
        let names: Vec<Name> = call.ranges().map(|(name, ..)| Name::of(name)).collect();
        if self.begun && names == [Name::Want { session: self.session.clone() }] {
            let after = call.at.saturating_sub(self.heeded);
            self.heeded = call.at;
            return (after < HEED).then(|| format!("it was asked who wants it after {after}"));
        }
        let next = Name::Claim { number: self.number + 1 };
        if names.iter().any(|name| matches!(name, Name::Claim { .. })) {
            self.looked = Some(call.at);
        }
        let early = !self.begun;
        (!early && names != [next]).then(|| format!("a question for {:?}", call.on.first()))
    }

    fn write(&mut self, call: &RecordedCall) {
        let ranges: Vec<(String, u64, u64)> =
            call.ranges().map(|(name, offset, len)| (name.to_owned(), offset, len)).collect();
        for (object, offset, len) in ranges {
            let wrong = (offset != 0).then(|| format!("{object} was written from {offset} on"));
            self.odd.others.look(wrong);
            match Name::of(&object) {
                Name::Buckets { session, level, window } => {
                    let wrong = (session != self.session || window != self.tree.done)
                        .then(|| format!("{object} was stored in window {}", self.tree.done));
                    self.odd.windows.look(wrong);
                    self.writes.push((level, len));
                    self.wrote.push(object);
                }
                Name::Part { session, number } => {
                    let (accesses, windows, extras) = std::mem::take(&mut self.since);
                    self.caught_up();
                    (self.windows_uncommitted, self.replaying) = (0, false);
                    let key = PartKey { shape: self.tree.shape(), accesses, extras, windows };
                    let wrong = self.log.part(&object, number, len, key);
                    let other = (session != self.session).then(|| format!("{object} is another's"));
                    self.odd.parts.look(wrong.or(other));
                }
                Name::Entry { session, index } => {
                    if index == 1 {
                        self.session.clone_from(&session);
                        self.log.restart(&session);
                    }
                    let wrong = self.log.entry(&session, index, len);
                    self.odd.entries.look(wrong);
                }
                Name::Parity { number, .. } => {
                    let wrong = self.log.parity(&object, number, len);
                    self.odd.parts.look(wrong);
                }
                Name::Copy { session, index } => {
                    let wrong = self.log.copy(&session, index, len);
                    self.odd.entries.look(wrong);
                }
                Name::Pointer { session, nth } => {
                    let wrong = self.log.pointer(&session, nth, len);
                    self.odd.deletes.look(wrong);
                    // A later session starts from there at the earliest.
                    let confirmed = self.log.confirmed();
                    self.shown.retain(|shown| shown.0 >= confirmed);
                }
                Name::ClaimCopy { number } => {
                    let wrong = self.begun.then(|| format!("{object} came late, copy {number}"));
                    self.odd.others.look(wrong);
                }
                Name::Hint => {
                    let wrong = self.log.hint(len);
                    self.odd.entries.look(wrong);
                }
                Name::Header | Name::Claim { .. } | Name::Want { .. } => {}
                Name::Other => self.odd.others.note(|| format!("{object} was stored")),
            }
        }
    }

    fn delete(&mut self, call: &RecordedCall) {
        let names: BTreeSet<String> = call.ranges().map(|(name, ..)| name.to_owned()).collect();
        let wrong = self.log.delete(&names);
        self.odd.deletes.look(wrong);
    }

    /// Takes a statement of the volume. Whether it was of a batch that came again.
    pub fn hear(&mut self, said: &TraceRequest) -> bool {
        match (said.kind, &said.rule) {
            (RequestKind::Rule, Some(rule)) => {
                if let Some(of) = &rule.windows {
                    self.take_rule(rule, of, said.at);
                }
            }
            (RequestKind::Batch, _) => return self.batch(said),
            (RequestKind::Maintenance, _) => self.window(said.sweep),
            (RequestKind::Sync, _) => {
                let wrong = self.log.synced_writes();
                self.odd.entries.look(wrong);
            }
            _ => {}
        }
        false
    }

    fn take_rule(&mut self, rule: &TraceRule, of: &TraceWindowRule, at: u64) {
        if self.begun {
            self.tree.take(rule, of);
            self.log.resized();
            return;
        }
        (self.begun, self.number, self.left) = (true, of.session, of.left);
        (self.requests, self.over, self.spare, self.heeded) = (rule.requests, 0, 0, at);
        self.replaying = true;
        self.windows_uncommitted = 0;
        self.since = (0, 0, 0);
        let wrong = of.exclusive && self.lists > 0;
        self.odd.others.look(wrong.then(|| "a list, where objects are created exclusively".into()));
        self.tree.begin(rule, of, &self.session);
        self.log.begin(&self.session, of.commits, of.kept);
        self.shown.retain(|shown| shown.0 >= of.commits);
        self.owed = self.shown.len();
    }

    fn batch(&mut self, said: &TraceRequest) -> bool {
        let wrong = self.log.take_unexplained();
        self.odd.entries.look(wrong);
        let expected = self.tree.of_paths(&said.leaves, said.depth);
        self.compare(&expected);
        let accesses = said.leaves.len() as u64;
        let early = self.windows_uncommitted > 0 && !self.replaying;
        let asked = said.operations(self.requests);
        self.requests += asked;
        let extras = accesses - asked;
        let beyond = || format!("{asked} operations of a batch, {} before the window", self.left);
        // What waits was accepted when each access was to be an operation.
        let wrong = (asked > self.left + self.spare).then(beyond);
        let open = early.then(|| "a window had no checkpoint".to_owned());
        self.odd.windows.look(wrong.or(open));
        self.over += accesses.saturating_sub(self.left);
        self.left = self.left.saturating_sub(accesses);
        self.since.0 += accesses;
        self.since.2 += extras;
        self.spare += extras;
        let again = self.shown_again(said);
        let late = |looked: u64| said.at.saturating_sub(looked) > LOOK;
        let deaf = !self.replaying && said.at.saturating_sub(self.heeded) > LOOK;
        let wrong = self.looked.is_none_or(late).then(|| "no look for a minute".to_owned());
        let wrong = wrong.or(deaf.then(|| "it was not asked who wants it".to_owned()));
        self.odd.looks.look(wrong.filter(|_| !again));
        if !again {
            self.shown.push_back((self.log.commits, said.leaves.clone()));
            let wrong = self.log.batch(said.leaves.len());
            self.odd.entries.look(wrong);
            self.drawn.push(TraceRequest { rule: None, ..said.clone() });
        }
        again
    }

    /// Whether a batch is one that the session before showed, as the volume says. Then it must be
    /// the next of those.
    fn shown_again(&mut self, said: &TraceRequest) -> bool {
        if !said.sweep {
            self.caught_up();
            return false;
        }
        let next = self.shown.len().checked_sub(self.owed).and_then(|at| self.shown.get(at));
        let right = self.owed > 0 && next.is_some_and(|next| next.1 == said.leaves);
        let due = self.owed;
        self.odd
            .again
            .look((!right).then(|| {
                format!("{:?} came again, where {next:?} was due, of {due}", said.leaves)
            }));
        self.owed = self.owed.saturating_sub(1);
        true
    }

    /// Nothing more comes again: what is missing may be lost.
    fn caught_up(&mut self) {
        if !self.replaying {
            return;
        }
        let (owed, lost) = (std::mem::take(&mut self.owed), self.log.lost());
        self.odd
            .again
            .look((owed > lost).then(|| {
                format!("{owed} batches did not come again, of which {lost} may be lost")
            }));
        self.shown.truncate(self.shown.len() - owed);
        self.log.caught_up();
    }

    /// Compares the calls since the last statement with what had to be read, in one call.
    fn compare(&mut self, expected: &[tree::Spot]) {
        let calls = std::mem::take(&mut self.reads);
        let wrong = match &calls[..] {
            [] => self.tree.compare(expected, &[]),
            [one] => self.tree.compare(expected, one),
            more => Some(format!("{} calls, where one was due", more.len())),
        };
        self.tree.cache(expected);
        self.odd.reads.look(wrong);
    }

    fn window(&mut self, ahead: bool) {
        let expected = self.tree.of_window();
        self.compare(&expected);
        let number = self.tree.done;
        let due = if ahead { self.tree.is_shrinking() } else { self.left == 0 };
        let writes = std::mem::take(&mut self.writes);
        let (wrong, replaced) = match self.tree.window(&writes) {
            Ok(replaced) => (None, replaced),
            Err(wrong) => (Some(format!("window {number}: {wrong}")), Vec::new()),
        };
        let early = (!due).then(|| format!("window {number} came {} accesses early", self.left));
        self.odd.windows.look(wrong.or(early));
        if ahead {
            self.log.ahead();
        } else {
            self.spare = 0;
            let all = u64::from(self.tree.of().every) << self.tree.of().log_turns;
            self.left = all.saturating_sub(std::mem::take(&mut self.over));
        }
        self.since.1 += 1;
        self.windows_uncommitted += 1;
        let names = replaced.iter().filter_map(|(level, window)| self.tree.name(*level, *window));
        let names = names.collect();
        self.log.window(std::mem::take(&mut self.wrote), names);
    }

    /// Batches that were drawn, those shown again left out.
    pub fn drawn(&self) -> Trace {
        let depth = self.drawn.first().map_or(0, |request| request.depth);
        Trace { depth, requests: self.drawn.clone() }
    }

    /// The findings that hold exactly.
    pub fn exact(&self) -> Vec<Finding> {
        let odd = &self.odd;
        vec![
            odd.reads.finding("reads", "batches and windows read what their leaves ask for"),
            odd.windows.finding("windows", "came when due, in whole objects"),
            odd.parts.finding("parts", "are as long as their public numbers say"),
            odd.entries.finding("entries", "came when due, in their size classes"),
            odd.deletes.finding("pointers and deletions", "follow from the checkpoints"),
            odd.again.finding("shown again", "batches of sessions that broke off came again"),
            odd.retries.finding("retries", "calls that failed came again, the same"),
            odd.looks.finding("looks", "batches had one within a minute"),
            odd.others.finding("other calls", "were looked at, none out of place"),
        ]
    }

    /// Judges all of it.
    pub fn judge(&self, options: &AuditOptions) -> Report {
        let trace = self.drawn();
        let mut report = judge_chance(&trace, options, Vec::new());
        report.findings.splice(0..0, self.exact());
        report.settle();
        report
    }
}
