//! The judged form of a record: the calls of the store, compared with the public rule and with the
//! volume's statements.
//!
//! It yields the sequence of paths for the statistics. A volume states which paths a request
//! showed. For each of them, the store must have read every bucket that the rule demands, at its
//! last place, in heap order and nothing else. So the paths are those that the store saw. Only the
//! order within a request is taken from the volume's statement.

mod deviation;
mod journal;
mod judge;
mod lanes;
mod places;
mod scan;
mod scanned;
mod sequential;
mod session;
mod shown;
mod states;

use crate::online::Online;
use crate::record::{RecordLine, RecordedAct, RecordedCall, RecordedSession, VolumeLine};
use crate::schedule::Model;
use crate::trace::{Trace, TraceRequest};
use journal::Journal;
use places::Places;
use scan::Scan;
use sequential::Sequential;
pub(crate) use states::Since;
use states::States;
use std::collections::{HashMap, VecDeque};

pub(crate) use deviation::Deviation;
pub(crate) use journal::{ahead, intent, size_class};
pub use judge::{compare_records, compare_where, contrast_records, judge_records};
pub(crate) use places::object_of;

/// The engine of stores of whole objects.
const WINDOWS: &str = "windows";

/// Calls that may still turn out to have failed.
const LATELY: usize = 2;

/// A call other than a read or write of buckets, for comparisons: its kind, object, offset and
/// length.
pub type Outline = (RecordedAct, String, u64, u64);

/// The store's view of one session.
#[derive(Clone, Debug, Default)]
pub struct ObservedSession {
    /// The public facts at its start.
    pub session: RecordedSession,
    /// Its volume, if its header was read.
    pub volume: VolumeLine,
    /// Its requests, counted at the store.
    pub trace: Trace,
    /// The end of the rounds that replay a broken-off session: an index into the requests, of which
    /// the rule is the first. 0 if there are none.
    pub replayed: usize,
    /// The end of those that are known to be the same, because that session is in the record.
    pub confirmed: usize,
    /// Whether it begins at a commit from which another session of the record continued, because
    /// the user declared a restored backup.
    pub restored: bool,
    /// Calls of the store.
    pub calls: u64,
    /// Whether reads may begin before their record is durable.
    pub ahead: bool,
    /// All but the reads and writes of buckets.
    pub outline: Vec<Outline>,
}

/// The content of a record: its sessions, and their deviations.
#[derive(Clone, Debug, Default)]
pub struct TraceObserver {
    /// The sessions in order.
    pub sessions: Vec<ObservedSession>,
    /// What there is of a volume on the tree in windows.
    pub online: Option<Box<Online>>,
    odd: Findings,
}

/// Deviations from each rule.
#[derive(Clone, Debug, Default)]
struct Findings {
    shape: Deviation,
    places: Deviation,
    journal: Deviation,
    states: Deviation,
    others: Deviation,
    again: Deviation,
    sequential: Deviation,
}

/// The calls of the store since the volume's last statement.
#[derive(Clone, Debug, Default)]
struct Window {
    reads: Vec<(String, u64, u64)>,
    /// The start of each call among them.
    calls: Vec<usize>,
    writes: Vec<(String, u64, u64)>,
    /// Of the log of the top: offset and bytes of each.
    entries: Vec<(u64, u64)>,
    /// Whether an intent came before the first of them: durable, unless records run ahead of syncs.
    announced: bool,
}

/// Reads a record line by line.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    sight: TraceObserver,
    now: ObservedSession,
    /// Whether a session is under way.
    under_way: bool,
    lately: VecDeque<(u64, RecordedCall)>,
    window: Window,
    scan: Scan,
    model: Model,
    places: Places,
    journal: Journal,
    states: States,
    since: Since,
    sequential: Sequential,
    online: Box<Online>,
    /// Whether this session has stated its stored buckets, read the journal, and committed.
    begun: bool,
    journal_read: bool,
    settled: bool,
    /// Rounds since the last commit.
    uncommitted: Vec<TraceRequest>,
    /// Those of a broken-off session, until they are replayed.
    owed: VecDeque<TraceRequest>,
    /// Scheduled paths at the last commit of the last volume.
    committed_turn: Option<u64>,
    /// Operations so far.
    requests: u64,
    /// Whether the previous session broke off during a commit.
    was_committing: bool,
    /// Whether this one ends now.
    ending: bool,
    /// Hints of the bytes to keep, by the length of the interval and the progress in it.
    hints: HashMap<(u64, u64), u64>,
}

impl Observer {
    /// Processes a line.
    pub fn see(&mut self, line: &RecordLine) {
        match line {
            RecordLine::Session(session) => self.begin_session(session),
            RecordLine::Volume(volume) => self.take_volume(volume),
            RecordLine::Call(call) => {
                self.lately.push_back((self.now.calls, call.clone()));
                self.now.calls += 1;
                while self.lately.len() > LATELY {
                    self.settle_one();
                }
            }
            // The call is repeated, or the session ends: a failed call does not count.
            RecordLine::Failed(number) => self.take_failure(*number),
            RecordLine::Said(said) => {
                self.settle_all();
                self.hear(said);
            }
        }
    }

    /// Requests of the session under way, so far.
    pub fn requests(&self) -> usize {
        self.now.trace.requests.len()
    }

    /// The sight of the whole record.
    pub fn finish(mut self) -> TraceObserver {
        self.end_session();
        if self.sight.sessions.iter().any(|seen| seen.volume.engine == WINDOWS) {
            self.sight.online = Some(self.online);
        }
        self.sight
    }

    fn take_failure(&mut self, number: u64) {
        if self.now.volume.engine == WINDOWS {
            while self.lately.front().is_some_and(|(call, _)| *call < number) {
                self.settle_one();
            }
            if let Some((_, call)) = self.lately.front().filter(|(call, _)| *call == number) {
                self.online.fail(call);
            }
        }
        self.lately.retain(|(call, _)| *call != number);
    }

    fn settle_one(&mut self) {
        if let Some((_, call)) = self.lately.pop_front() {
            self.take_call(&call);
        }
    }

    fn settle_all(&mut self) {
        while !self.lately.is_empty() {
            self.settle_one();
        }
    }
}

/// The sight of a record in memory.
pub fn sight_of<'a>(lines: impl IntoIterator<Item = &'a RecordLine>) -> TraceObserver {
    let mut observer = Observer::default();
    lines.into_iter().for_each(|line| observer.see(line));
    observer.finish()
}
