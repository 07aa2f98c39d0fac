//! Compares the volume's statements with the calls of the store.

use super::places::{Places, object_of};
use super::{Observer, WINDOWS, Window};
use crate::trace::{RequestKind, TraceRequest};

/// Bytes of the journal's record of a change of size: a page.
const RESIZE: u64 = 4096;

impl Observer {
    pub(super) fn hear(&mut self, said: &TraceRequest) {
        if self.now.volume.engine == WINDOWS {
            return self.hear_windows(said);
        }
        match said.kind {
            RequestKind::Rule => self.hear_rule(said),
            RequestKind::Sync => {
                let wrong =
                    self.journal.take_newest(said.bytes_written, "a record of written bytes");
                self.sight.odd.journal.look(wrong);
                self.take_request(said.clone());
            }
            _ => self.hear_round(said),
        }
    }

    /// Of a tree in windows, only drawn paths are kept here.
    fn hear_windows(&mut self, said: &TraceRequest) {
        let again = self.online.hear(said);
        if said.kind == RequestKind::Batch {
            self.now.trace.requests.push(said.clone());
        }
        if again {
            self.now.replayed = self.now.trace.requests.len();
            self.now.confirmed = self.now.replayed;
        }
    }

    /// Processes a request with the numbers counted at the store.
    fn take_request(&mut self, request: TraceRequest) {
        let at = self.now.trace.requests.len();
        let wrong = self.model.see(&request).map(|wrong| format!("request {at}: {wrong}"));
        self.sight.odd.shape.look(wrong);
        self.now.trace.requests.push(request);
    }

    fn hear_rule(&mut self, said: &TraceRequest) {
        let begins = said.rule.as_ref().is_some_and(|rule| rule.stored.is_some());
        let opening = if begins { std::mem::take(&mut self.window) } else { Window::default() };
        self.look_at_scan();
        let Some(rule) = &said.rule else { return self.take_request(said.clone()) };
        let after_commit =
            self.now.trace.requests.last().is_some_and(|r| r.kind == RequestKind::Commit);
        if rule.stored.is_some() {
            self.take_request(said.clone());
            self.hear_start(said);
            return self.look_at_homes(&opening);
        }
        if !after_commit {
            self.since.resized = true;
            // A replay finds it already in the journal.
            if self.settled || self.journal.waits() {
                let wrong = self.journal.take_newest(RESIZE, "a change of size");
                self.sight.odd.journal.look(wrong);
            }
        }
        self.take_request(said.clone());
        self.since.resized |= self.model.sweeping();
    }

    /// Handles the statement of the stored buckets at the start of a session.
    fn hear_start(&mut self, said: &TraceRequest) {
        let Some(rule) = &said.rule else { return };
        self.now.ahead = rule.ahead;
        let restored = self.now.session.accept_rollback;
        self.since.resized = self.model.sweeping();
        let Some(table) = Places::named(rule, |bucket| self.model.slots_of(bucket)) else {
            return self
                .sight
                .odd
                .places
                .look(Some("a session does not say where buckets lie".into()));
        };
        self.begun = true;
        let mut wrong = None;
        match self.committed_turn {
            Some(turn) if rule.turn < turn => {
                self.owed.clear();
                self.now.restored = restored;
                wrong = (!restored).then(|| {
                    format!(
                        "it begins after {} scheduled paths, the last commit was at {turn}",
                        rule.turn
                    )
                });
            }
            // Sessions in between are not in the record.
            Some(turn) if rule.turn > turn => {
                self.owed.clear();
                self.scan.forget();
            }
            // Only the next session shows whether the last commit of a broken-off one was complete.
            Some(_) if self.was_committing => {
                self.owed.clear();
                self.places.revert();
            }
            Some(_) => {
                self.places.revert();
                self.now.restored = restored && !self.owed.is_empty();
                wrong = (!self.places.is(&table) && !restored).then(|| {
                    "a session says that buckets lie elsewhere than they were written".into()
                });
            }
            None => self.owed.clear(),
        }
        self.was_committing = false;
        self.requests = rule.requests;
        let twice = self.places.begin(table);
        self.sight.odd.places.look(wrong.or(twice));
        self.committed_turn = Some(rule.turn);
    }

    /// Checks that an opening read the stored versions of the buckets that a log has, and no other.
    fn look_at_homes(&mut self, opening: &Window) {
        let homes = self.model.homes();
        let places = homes.iter().map(|&(bucket, bytes)| {
            self.places.of(bucket).map(|(object, offset)| (object.as_str(), *offset, bytes))
        });
        let shown =
            opening.reads.iter().map(|(object, offset, len)| Some((&**object, *offset, *len)));
        let wrong = (!places.eq(shown)).then(|| {
            format!(
                "an opening read {} buckets, where the log of the top has {} others",
                opening.reads.len(),
                homes.len()
            )
        });
        self.sight.odd.places.look(wrong);
    }

    /// Handles paths, or a part of a commit.
    fn hear_round(&mut self, said: &TraceRequest) {
        let mut window = std::mem::take(&mut self.window);
        // A round is read in one call, if it reads at all. Earlier reads are judged separately.
        if let Some(&last) = window.calls.last() {
            let own = if self.reads_nothing(said, &window) { window.reads.len() } else { last };
            let reads = window.reads.split_off(own);
            window.calls.retain(|&call| call < own);
            let (reads, calls) =
                (std::mem::replace(&mut window.reads, reads), std::mem::take(&mut window.calls));
            self.window = Window { reads, calls, ..Window::default() };
            self.look_at_scan();
        }
        let request = TraceRequest {
            reads: window.reads.len() as u32,
            writes: window.writes.len() as u32,
            entries: window.entries.len() as u32,
            bytes_read: window.reads.iter().map(|read| read.2).sum(),
            bytes_written: window.writes.iter().map(|write| write.2).sum(),
            ..said.clone()
        };
        let replays = self.hear_intent(&request, &window);
        let operations = request.operations(self.requests);
        let most = self.model.rule().slots;
        self.take_request(request.clone());
        let wrong = self.look_at_places(&window, most);
        let at = self.now.trace.requests.len();
        self.sight.odd.places.look(wrong.map(|wrong| format!("request {}: {wrong}", at - 1)));
        self.since.paths += request.leaves.len() as u64;
        self.since.operations += operations;
        self.requests += operations;
        self.since.resized |= self.model.sweeping();
        if !request.leaves.is_empty() {
            self.uncommitted.push(request);
        }
        if replays {
            self.now.replayed = at;
        }
    }

    /// Whether a round reads no bucket, so that the last reads are those of a scan.
    fn reads_nothing(&self, said: &TraceRequest, window: &Window) -> bool {
        match said.kind {
            RequestKind::Flush | RequestKind::Commit => true,
            _ if window.announced => false,
            // It takes a copy of the model to tell.
            _ => self.may_scan(window) && self.model.clone().cost(said).0 == 0,
        }
    }

    /// Checks the announcement of a round. True if it replays a broken-off session.
    fn hear_intent(&mut self, request: &TraceRequest, window: &Window) -> bool {
        let is_shown = matches!(
            request.kind,
            RequestKind::Batch | RequestKind::Map | RequestKind::Maintenance | RequestKind::Repair
        );
        if !is_shown {
            return false;
        }
        if !self.settled && self.journal_read && !self.journal.waits() {
            self.look_at_replay(request);
            return true;
        }
        self.expect_shown_again();
        let operations = match request.kind {
            RequestKind::Map => return false,
            RequestKind::Maintenance | RequestKind::Repair => 0,
            _ => request.operations(self.requests),
        };
        let wrong = self.journal.take_intent(operations);
        let late = !window.reads.is_empty() && !window.announced;
        let late = late.then(|| "paths were read before their record was durable".to_owned());
        let ahead = self.journal.showed(operations);
        self.sight.odd.journal.look(wrong.or(late).or(ahead));
        false
    }

    fn look_at_replay(&mut self, request: &TraceRequest) {
        let Some(owed) = self.owed.pop_front() else { return };
        let key = |r: &TraceRequest| (r.kind, r.leaves.clone(), r.scheduled, r.depth);
        // The request itself comes next.
        self.now.confirmed = self.now.trace.requests.len() + 1;
        let same = key(&owed) == key(request);
        self.sight.odd.again.look((!same).then(|| {
            format!("a round of {} paths is shown again as other paths", owed.leaves.len())
        }));
    }

    /// From here on a session shows its own paths: replays must come before.
    pub(super) fn expect_shown_again(&mut self) {
        if self.owed.is_empty() {
            return;
        }
        let rounds = self.owed.len();
        self.owed.clear();
        if !self.now.restored {
            self.sight.odd.again.look(Some(format!(
                "a session broke off, and {rounds} rounds of its paths were not shown again before \
                 others: they can be repeated"
            )));
        }
    }

    /// Checks that the buckets that the rule demands were read and written at their places.
    fn look_at_places(&mut self, window: &Window, most: u32) -> Option<String> {
        let listed = self.model.listed().clone();
        let mut wrong = None;
        for (at, &(bucket, bytes)) in listed.read.iter().enumerate() {
            let place = self.places.of(bucket);
            let right = place.map(|(object, offset)| (object.as_str(), *offset, bytes));
            let shown =
                window.reads.get(at).map(|(object, offset, len)| (&**object, *offset, *len));
            if right != shown {
                wrong = Some(format!(
                    "it says that it read bucket {bucket}, which lies at {right:?}; the store was \
                     asked for {shown:?}"
                ));
                break;
            }
        }
        if let Some(more) = window.reads.get(listed.read.len()) {
            wrong = wrong.or(Some(format!("the store was asked for {more:?} beside its paths")));
        }
        for (&(bucket, bytes), (object, offset, len)) in listed.written.iter().zip(&window.writes) {
            let right = object_of(self.model.slots_of(bucket), most);
            let other = (bytes != *len || right != *object).then(|| {
                format!(
                    "bucket {bucket} of {bytes} bytes in {right} was written as {len} in {object}"
                )
            });
            let misplaced = self.places.write(bucket, object, *offset);
            wrong = wrong.or(other).or(misplaced);
        }
        let misplaced = listed.entries.iter().zip(&window.entries).find(|(due, seen)| due != seen);
        wrong = wrong.or(misplaced.map(|(due, seen)| {
            format!("an entry of the log was due at {due:?}, and was written at {seen:?}")
        }));
        self.since.buckets.extend(listed.written.iter().map(|written| written.0));
        self.since.buckets.extend(&listed.dropped);
        self.places.drop_all(&listed.dropped);
        wrong
    }
}
