//! A session with every call of its store: one that breaks off, the next that replays it, and pairs
//! of sessions.

use super::{EVERY, Flaw, Session};
use crate::planted::call_log::CallLog;
use crate::planted::distortion::Distortion;
use crate::record::RecordLine;
use crate::trace::{RequestKind, TraceRequest, TraceRule};

/// Sessions with every call of their store.
pub(in crate::planted) struct Recording(Session);

impl Recording {
    pub(in crate::planted) fn of(distortion: Distortion) -> Self {
        Recording(Session::taped(Flaw::None, Some(CallLog::new(distortion))))
    }

    fn distortion(&self) -> Distortion {
        self.0.tape.as_ref().map_or(Distortion::None, |tape| tape.distortion)
    }

    fn take(&mut self) -> Vec<RecordLine> {
        self.0.tape.as_mut().map(|tape| std::mem::take(&mut tape.lines)).unwrap_or_default()
    }

    /// A long session that breaks off, one that replays its end, and one more.
    pub(in crate::planted) fn lines(mut self) -> Vec<RecordLine> {
        self.0.work();
        for file in 0..30 {
            self.0.batch(file);
        }
        self.show_again();
        self.0.commit(0, false);
        // Two checkpoints of one size take a while.
        if self.distortion() == Distortion::LongCheckpoint {
            self.0.work();
        }
        self.reopen();
        for file in 0..30 {
            self.0.batch(file);
        }
        self.0.commit(0, false);
        self.take()
    }

    /// Two sessions of 447 paths or a few more. The second begins at the state of the first.
    pub(in crate::planted) fn two_sessions(mut self) -> (Vec<RecordLine>, Vec<RecordLine>) {
        self.0.commit(0, false);
        self.reopen();
        self.take();
        let begun = self.0.accesses;
        // The first session begins anew, so that its record includes its start.
        self.reopen();
        while self.0.accesses < begun + 447 {
            self.0.batch(0);
        }
        let (first, shown) = (self.take(), self.0.shown.clone());
        if self.distortion() == Distortion::None {
            self.0.commit(0, false);
            self.take();
        }
        self.reopen();
        for (at, request) in shown.iter().enumerate().filter(|(_, r)| r.kind == RequestKind::Batch)
        {
            let mut leaves = request.parts().0.to_vec();
            let keeps = match self.distortion() {
                Distortion::SameFile => at > 0,
                Distortion::EverySecond => at % 2 == 0,
                _ => false,
            };
            if !keeps {
                let depth = self.0.model.depth();
                leaves.iter_mut().for_each(|leaf| *leaf = self.0.rng.below(1 << depth));
            }
            let before = self.0.accesses;
            self.0.accesses += leaves.len();
            let due = self.0.accesses / EVERY - before / EVERY;
            self.0.show(RequestKind::Batch, leaves, due, 0);
        }
        (first, self.take())
    }

    /// Ends a session, cleanly or not, and begins another at the last commit.
    fn reopen(&mut self) {
        let session = &mut self.0;
        let Some(kept) = session.kept.clone() else { return };
        let stored = kept.model.stored();
        let lacking = |missing: u32| {
            let slots = kept.rule.slots - missing;
            runs(stored.iter().copied().filter(|&bucket| kept.model.slots_of(bucket) == slots))
        };
        session.rule = TraceRule {
            lacking: (1..kept.rule.slots).map(lacking).collect(),
            leaf_slots: kept.model.leaf_slots(),
            swept: kept.model.swept(),
            ..kept.rule.clone()
        };
        (session.turns, session.accesses) = (kept.turns, kept.accesses);
        session.committed = false;
        session.shown.clear();
        if let Some(tape) = &mut session.tape {
            tape.break_off();
        }
        session.start(kept.model.depth(), runs(stored.into_iter()));
    }

    /// Begins another session, which replays everything since the last commit.
    fn show_again(&mut self) {
        let shown = self.0.shown.clone();
        self.reopen();
        if self.distortion() == Distortion::NotShownAgain {
            return;
        }
        if let Some(tape) = &mut self.0.tape {
            tape.read_journal();
        }
        for request in shown {
            let mut request = TraceRequest { reads: 0, writes: 0, ..request };
            if self.distortion() == Distortion::OtherAgain && request.kind == RequestKind::Batch {
                request.leaves[0] ^= 1;
            }
            self.0.turns += request.scheduled as u64;
            self.0.accesses += request.parts().0.len();
            self.0.read_and_write(request, 0, false);
        }
    }
}

/// Ascending numbers as runs: the first of each, and the count.
fn runs(ascending: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in ascending {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}
