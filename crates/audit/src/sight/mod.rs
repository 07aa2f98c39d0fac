//! A record as it is judged: what the store was asked, held against the public rule and against
//! what the volume says that it showed.
//!
//! The sequence of paths that the statistics judge comes from here. A volume says which paths a
//! request showed; of each of them every bucket that the rule asks for must have been read at the
//! store, where it was written last, in heap order and nothing beside it. So the paths are those
//! that the store saw, and what a volume says beyond that (the order within a request) is all that
//! is taken from it.

mod journal;
mod judge;
mod odd;
mod places;
mod sequential;
mod session;
mod shown;
mod states;

use crate::record::{Act, Call, Line, Session, VolumeLine};
use crate::schedule::Model;
use crate::trace::{Request, Trace};
use journal::Journal;
use odd::Odd;
use places::Places;
use sequential::Sequential;
pub(crate) use states::Since;
use states::States;
use std::collections::{HashMap, VecDeque};

pub(crate) use journal::{ahead, intent, size_class};
pub use judge::{compare_records, compare_where, contrast_records, judge_records};
pub(crate) use places::object_of;
pub(crate) use shown::operations;

/// Calls that may still turn out to have failed.
const LATELY: usize = 2;

/// A call that is no read or write of buckets, for comparisons: what, of which object, where, how
/// long.
pub type Outline = (Act, String, u64, u64);

/// One session as the store saw it.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// What is public of it from its beginning.
    pub session: Session,
    /// Which volume it is of, if its header was read.
    pub volume: VolumeLine,
    /// Its requests, counted at the store.
    pub trace: Trace,
    /// Where the rounds end that show again what a session that broke off had shown: an index into
    /// the requests, of which the rule is the first. 0 if there are none.
    pub replayed: usize,
    /// Where those of them end that are known to be the same, as that session is in the record.
    pub confirmed: usize,
    /// Whether it begins at a commit from which another session of the record went on, because the
    /// user said that a backup was restored.
    pub restored: bool,
    /// Calls of the store.
    pub calls: u64,
    /// All but those that read and write buckets.
    pub outline: Vec<Outline>,
}

/// What a record says once it was read: its sessions, and what is wrong with them.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// The sessions in order.
    pub sessions: Vec<Seen>,
    odd: Findings,
}

/// Deviations from each rule.
#[derive(Clone, Debug, Default)]
struct Findings {
    shape: Odd,
    places: Odd,
    journal: Odd,
    states: Odd,
    others: Odd,
    again: Odd,
    sequential: Odd,
}

/// What the store was asked for since the volume said something last.
#[derive(Clone, Debug, Default)]
struct Window {
    reads: Vec<(String, u64, u64)>,
    /// Where each call begins among them.
    calls: Vec<usize>,
    writes: Vec<(String, u64, u64)>,
    /// Whether an intent was durable when the first of them came.
    announced: bool,
}

/// Reads a record line by line.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    sight: Sight,
    now: Seen,
    /// Whether a session is under way.
    under_way: bool,
    lately: VecDeque<(u64, Call)>,
    window: Window,
    model: Model,
    places: Places,
    journal: Journal,
    states: States,
    since: Since,
    sequential: Sequential,
    /// Whether this session said what was stored when it began, has read the journal, has
    /// committed.
    begun: bool,
    journal_read: bool,
    settled: bool,
    /// Rounds that were shown since the last commit.
    uncommitted: Vec<Request>,
    /// Those of a session that broke off, until they are shown again.
    owed: VecDeque<Request>,
    /// Scheduled paths at the last commit, of the volume that was seen last.
    committed_turn: Option<u64>,
    /// Operations so far.
    requests: u64,
    /// Whether the session before this one broke off while it committed.
    was_committing: bool,
    /// Whether this one ends now.
    ending: bool,
    /// Hints of how much may be kept, by the length of the interval and what was done of it.
    hints: HashMap<(u64, u64), u64>,
}

impl Observer {
    /// Takes a line up.
    pub fn see(&mut self, line: &Line) {
        match line {
            Line::Session(session) => self.begin_session(session),
            Line::Volume(volume) => self.take_volume(volume),
            Line::Call(call) => {
                self.lately.push_back((self.now.calls, call.clone()));
                self.now.calls += 1;
                while self.lately.len() > LATELY {
                    self.settle_one();
                }
            }
            // It is asked for again, or the session ends: it is the answer that is the store's own.
            Line::Failed(number) => self.lately.retain(|(call, _)| call != number),
            Line::Said(said) => {
                self.settle_all();
                self.hear(said);
            }
        }
    }

    /// Requests of the session under way, so far.
    pub fn requests(&self) -> usize {
        self.now.trace.requests.len()
    }

    /// What was seen in all.
    pub fn finish(mut self) -> Sight {
        self.end_session();
        self.sight
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

/// The sight of records that are in memory.
pub fn sight_of<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Sight {
    let mut observer = Observer::default();
    lines.into_iter().for_each(|line| observer.see(line));
    observer.finish()
}
