//! The start and end of sessions, and the meaning of each store call.

use super::places::is_slab;
use super::states::{commit_of, pair_of};
use super::{ObservedSession, Observer, WINDOWS};
use crate::record::{RecordedAct, RecordedCall, RecordedSession, VolumeLine};
use crate::schedule::Model;

/// The object of a tree's log of its top.
const TOP_LOG: &str = "top-log";
/// The engine whose adversary sees no reads.
const SEQUENTIAL: &str = "sequential";

impl Observer {
    pub(super) fn begin_session(&mut self, session: &RecordedSession) {
        self.end_session();
        self.under_way = true;
        self.now = ObservedSession { session: session.clone(), ..ObservedSession::default() };
        self.model = Model::default();
        self.window = Default::default();
        self.scan.begin();
        self.journal.begin();
        self.states.begin();
        self.since = Default::default();
        self.sequential.begin();
        self.online.begin();
        (self.begun, self.journal_read, self.settled) = (false, false, false);
        self.hints.clear();
    }

    pub(super) fn end_session(&mut self) {
        self.settle_all();
        if !self.under_way && self.now.calls == 0 && self.now.trace.requests.is_empty() {
            return;
        }
        // The end of `check`, or of a round that was cut short.
        self.ending = true;
        self.look_at_scan();
        self.ending = false;
        self.was_committing |= self.states.committing;
        self.owed.extend(self.uncommitted.drain(..));
        if let Some(first) = self.now.trace.requests.first() {
            self.now.trace.depth = first.depth;
        }
        self.sight.sessions.push(std::mem::take(&mut self.now));
        self.under_way = false;
    }

    pub(super) fn take_volume(&mut self, volume: &VolumeLine) {
        let before =
            self.sight.sessions.iter().rev().map(|seen| &seen.volume.id).find(|id| !id.is_empty());
        if before.is_some_and(|id| *id != volume.id) {
            // Another volume: nothing is known of it.
            self.places = Default::default();
            self.scan.forget();
            self.owed.clear();
            self.committed_turn = None;
        }
        self.now.volume = volume.clone();
    }

    pub(super) fn take_call(&mut self, call: &RecordedCall) {
        if self.now.volume.engine == SEQUENTIAL {
            let wrong = self.sequential.take(call);
            self.sight.odd.sequential.look(wrong);
        }
        let buckets = call.ranges().next().is_some_and(|(object, ..)| is_slab(object));
        if !(buckets && matches!(call.act, RecordedAct::Read | RecordedAct::Write)) {
            let line = |(object, offset, len): (&str, u64, u64)| {
                (call.act, object.to_owned(), offset, len)
            };
            self.now.outline.extend(call.ranges().map(line));
        }
        match &*self.now.volume.engine {
            SEQUENTIAL => {}
            WINDOWS => self.online.take(call),
            _ => self.take_tree_call(call),
        }
    }

    fn take_tree_call(&mut self, call: &RecordedCall) {
        if call.act == RecordedAct::Read
            && call.ranges().next().is_some_and(|(object, ..)| is_slab(object))
        {
            self.window.calls.push(self.window.reads.len());
        }
        match call.act {
            RecordedAct::Sync => self.take_sync(call),
            RecordedAct::MayRoundUp => {
                call.ranges().for_each(|(object, _, len)| self.places.round_up(object, len));
            }
            RecordedAct::MayKeep => self.take_hint(call),
            RecordedAct::Lock | RecordedAct::Free | RecordedAct::List | RecordedAct::Len => {}
            _ => {
                for (object, offset, len) in call.ranges() {
                    let wrong = self.take_range(call.act, object, offset, len);
                    self.sight.odd.others.look(wrong);
                }
            }
        }
    }

    /// The fault of a call outside buckets, records and states, which have their own tests.
    fn take_range(
        &mut self,
        act: RecordedAct,
        object: &str,
        offset: u64,
        len: u64,
    ) -> Option<String> {
        match (object, act) {
            (object, RecordedAct::Read) if is_slab(object) => {
                let announced = self.now.ahead || self.journal.is_durable();
                self.window.announced |= announced && self.journal.waits();
                self.window.reads.push((object.into(), offset, len));
                None
            }
            (object, RecordedAct::Write) if is_slab(object) => {
                self.window.writes.push((object.into(), offset, len));
                None
            }
            (TOP_LOG, RecordedAct::Write) => {
                self.window.entries.push((offset, len));
                None
            }
            (TOP_LOG, RecordedAct::Read) => self.late(act, object),
            (TOP_LOG, RecordedAct::Truncate) => None,
            // Before the table is known, everything beyond it is cut off.
            (object, RecordedAct::Truncate) if is_slab(object) => self.places.cut(object, len),
            (object, RecordedAct::Discard) if is_slab(object) => {
                self.places.discard(object, offset, len)
            }
            ("journal", RecordedAct::Write) => {
                self.journal.wrote(offset, len);
                None
            }
            ("journal", RecordedAct::Truncate) => {
                self.journal.cut(len);
                None
            }
            ("journal", RecordedAct::Read) => {
                self.journal_read = true;
                self.late(act, object)
            }
            (object, RecordedAct::Write) if commit_of(object).is_some() => {
                let copy = commit_of(object).into_iter();
                let wrong = copy.filter_map(|copy| self.states.wrote_commit(copy, (offset, len)));
                let wrong = wrong.last();
                self.sight.odd.states.look(wrong);
                None
            }
            (object, RecordedAct::Read) if commit_of(object).is_some() => self.late(act, object),
            ("header" | "header-2", RecordedAct::Read | RecordedAct::Put | RecordedAct::Write) => {
                None
            }
            (object, RecordedAct::Read) if pair_of(object).is_some() => {
                if !self.has_scanned() {
                    pair_of(object).into_iter().for_each(|pair| self.states.read(pair, len));
                }
                self.late(act, object)
            }
            (object, RecordedAct::Write) if pair_of(object).is_some() => {
                self.take_state(object, offset, len);
                None
            }
            (_, RecordedAct::Allocate | RecordedAct::Delete) => None,
            _ => Some(format!("{act:?} of {object:?} at {offset}, {len} bytes")),
        }
    }

    /// Checks that the objects read at the start of a session are read at no other time.
    fn late(&self, act: RecordedAct, object: &str) -> Option<String> {
        let early = !self.settled && self.now.trace.requests.len() <= self.now.replayed.max(1);
        (!early && !self.has_scanned())
            .then(|| format!("{act:?} of {object:?} in the middle of a session"))
    }

    fn take_state(&mut self, object: &str, offset: u64, len: u64) {
        let Some(pair) = pair_of(object) else { return };
        let size = (self.model.rule().blocks, self.model.depth(), self.model.stored_end());
        self.since.index = self.model.index_bytes();
        let wrong = self.states.wrote(pair, (offset, len), &self.since, size);
        self.sight.odd.states.look(wrong);
    }

    fn take_sync(&mut self, call: &RecordedCall) {
        for (object, ..) in call.ranges() {
            match object {
                "journal" => self.journal.synced(),
                "commit" if self.states.committed() => self.take_commit(),
                _ => {}
            }
        }
    }

    /// Handles a durable commit: it covers everything shown before.
    fn take_commit(&mut self) {
        let model = &self.model;
        self.places.forget_dropped(|bucket| model.has(bucket));
        self.places.committed();
        let wrong = self.journal.restart();
        self.sight.odd.journal.look(wrong);
        self.expect_shown_again();
        self.uncommitted.clear();
        self.since = Default::default();
        self.settled = true;
        self.committed_turn = self.begun.then(|| self.model.turns());
    }

    /// Checks that the bytes to keep follow from the distance to the next commit.
    fn take_hint(&mut self, call: &RecordedCall) {
        let Some((_, _, bytes)) = call.ranges().next().filter(|_| self.begun) else { return };
        let begun = self.committed_turn.unwrap_or(0);
        let interval = self.model.rule().flush_at.saturating_sub(begun);
        let done = self.model.turns().saturating_sub(begun);
        let before = *self.hints.entry((interval, done)).or_insert(bytes);
        self.sight.odd.others.look((before != bytes).then(|| {
            format!("{bytes} bytes may be kept, where it was {before} as far from a commit")
        }));
    }
}
