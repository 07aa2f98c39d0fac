//! What any client may ask.

use super::super::history_index::AnswerPlace;
use super::super::keeper::{Change, Keeper};
use super::{Shared, State, lock};
use oblivio_store::share::{
    AskNumber, ClientSession, HistoryEntry, MOST_ASK_BYTES, MOST_FETCHES, MOST_HEADER_BYTES,
    MOST_READ_BYTES, MOST_SLOT_BYTES, Number, Result, SealedAnswer, SealedAsk, SealedNotice,
    ShareError, ShareParameters, Status, StoredEntry, decode,
};
use std::sync::PoisonError;
use std::time::Duration;

impl<K: Keeper> Shared<K> {
    pub(super) fn put_parameters(&self, after: u64, slot_bytes: u32, header: &[u8]) -> Result<u64> {
        if header.len() > MOST_HEADER_BYTES || slot_bytes == 0 || slot_bytes > MOST_SLOT_BYTES {
            return Err(ShareError::invalid("a header or slot of this length"));
        }
        let _building = lock(&self.building);
        let known = self.state().catalog.parameters.clone();
        let version = known.as_ref().map_or(0, |it| it.version);
        if version != after {
            return Err(ShareError::Version(version));
        }
        if known.is_some_and(|it| it.slot_bytes != slot_bytes) {
            return Err(ShareError::invalid("slots of another length"));
        }
        let parameters =
            ShareParameters { version: version + 1, slot_bytes, header: header.to_vec() };
        self.commit(&[Change::Parameters(parameters)])?;
        Ok(version + 1)
    }

    pub(super) fn ask(&self, asks: &[SealedAsk]) -> Result<()> {
        let mut state = self.state();
        state.usable()?;
        state.slot_bytes()?;
        self.within(&state, 0)?;
        if asks.len() > MOST_FETCHES {
            return Err(ShareError::invalid("too many asks at once"));
        }
        for ask in asks {
            if ask.sealed.len() > MOST_ASK_BYTES {
                return Err(ShareError::invalid("the ask is too long"));
            }
            // The answer to one that is in a batch is there, or comes.
            if !state.index.is_ordered(ask.id) {
                state.queue.take(ask)?;
            }
        }
        drop(state);
        self.asks_came.notify_all();
        Ok(())
    }

    /// How many asks of each device wait.
    pub fn waiting(&self) -> Vec<(u16, u64)> {
        self.state().queue.waiting()
    }

    /// Removes the asks of a device that is gone.
    pub fn forget_device(&self, device: u16) {
        self.state().queue.forget_device(device);
    }

    pub(super) fn answers(
        &self,
        session: ClientSession,
        from: AskNumber,
        wait: Duration,
    ) -> Result<Vec<SealedAnswer>> {
        let mut state = self.state();
        let find = |state: &State| {
            (state.index.answers(session, from), state.queue.refused(session, from))
        };
        let is_none = |found: &(Vec<_>, Vec<_>)| found.0.is_empty() && found.1.is_empty();
        let mut found = find(&state);
        if is_none(&found) && !wait.is_zero() {
            let none = |state: &mut State| is_none(&find(state));
            let came = state.waiting.enter(session);
            let waited = came.wait_timeout_while(state, wait, none);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.waiting.leave(session);
            found = find(&state);
        }
        let (places, refused) = found;
        // An answer names the newest record. No crash may take back what a client has seen: it
        // would hold an honest server for one that goes back.
        let newest = places.iter().map(|(_, place)| Number(place.number.0 + 1)).max();
        let seen = if refused.is_empty() { newest } else { Some(state.index.next()) };
        drop(state);
        seen.map_or(Ok(()), |seen| self.sync_before(seen))?;
        let read = |(id, place): (_, AnswerPlace)| {
            let sealed = self.keeper.part(place.number, place.offset, place.len)?;
            Ok(SealedAnswer { id, sealed })
        };
        let mut answers: Vec<SealedAnswer> = places.into_iter().map(read).collect::<Result<_>>()?;
        answers.extend(refused);
        answers.sort_by_key(|answer| answer.id);
        Ok(answers)
    }

    pub(super) fn notices(&self, from: Number, wait: Duration) -> Result<Vec<SealedNotice>> {
        let mut state = self.state();
        state.usable()?;
        // No crash may take back what a client heard of: another notice would take its place.
        let find = |state: &State| state.index.notices.of(from, state.synced);
        let mut found = find(&state);
        if found.is_empty() && !wait.is_zero() {
            let none = |state: &mut State| find(state).is_empty() && !state.failed;
            let waited = self.records_came.wait_timeout_while(state, wait, none);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            found = find(&state);
        }
        Ok(found)
    }

    pub(super) fn records(
        &self,
        from: Number,
        most_bytes: usize,
        wait: Duration,
    ) -> Result<Vec<StoredEntry>> {
        let next = {
            let mut state = self.state();
            state.usable()?;
            if from >= state.index.next() && !wait.is_zero() {
                let none = |state: &mut State| from >= state.synced && !state.failed;
                let waited = self.records_came.wait_timeout_while(state, wait, none);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            if from < state.index.first() {
                return Err(ShareError::Gone(state.index.first()));
            }
            state.index.next()
        };
        // A client may take a record for the newest only if no crash takes it back.
        self.sync_before(next)?;
        let (mut records, mut bytes) = (Vec::new(), 0);
        for number in from.0..next.0 {
            let encoded = self.keeper.record(Number(number))?;
            bytes += encoded.len();
            if bytes > most_bytes.min(MOST_READ_BYTES) && !records.is_empty() {
                break;
            }
            records.push(stored(Number(number), decode(&encoded)?));
        }
        Ok(records)
    }

    pub(super) fn status(&self) -> Status {
        let state = self.state();
        Status {
            term: state.lease.term(),
            lease_left: state.lease.left((self.clock)()),
            pending: state.queue.len() as u64,
            unanswered: state.index.unanswered(),
            first: state.index.first(),
            next: state.index.next(),
            tables: state.index.objects.tables(),
            used_bytes: self.used(&state),
            quota_bytes: state.catalog.quota,
        }
    }
}

fn stored(number: Number, entry: HistoryEntry) -> StoredEntry {
    match entry {
        HistoryEntry::Show(show) => StoredEntry { number, sealed: show.intent, asks: show.own },
        HistoryEntry::Tell(tell) => StoredEntry { number, sealed: tell.settle, asks: Vec::new() },
        HistoryEntry::Switch(switch) => {
            StoredEntry { number, sealed: switch.merged, asks: Vec::new() }
        }
        HistoryEntry::Note(sealed) => StoredEntry { number, sealed, asks: Vec::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::keeper::Catalog;
    use super::super::super::memory::Memory;
    use super::*;
    use oblivio_store::share::{AskId, Fetch, ScribeTerm, SealedShow, SealedTell};
    use std::sync::Arc;

    #[test]
    fn answers_leave_once_their_records_are_durable() {
        let clock = Arc::new(|| Duration::ZERO);
        let shared = Shared::new(Memory::default(), Catalog::default(), clock);
        shared.put_parameters(0, 64, b"header").unwrap();
        let term = shared.claim(ScribeTerm(0)).unwrap();
        let ask = |seq| SealedAsk {
            id: AskId { session: ClientSession(1), seq: AskNumber(seq) },
            sealed: vec![1],
        };
        let answer = |seq| SealedAnswer { id: ask(seq).id, sealed: vec![2] };
        shared.ask(&[ask(0), ask(1)]).unwrap();
        let first = shared.state().index.next();
        let fetches = vec![Fetch { ask: ask(0).id, spots: Vec::new() }];
        let show = HistoryEntry::Show(SealedShow { intent: vec![3], own: Vec::new(), fetches });
        shared.append(term, first, &show).unwrap();
        shared.sums(term, first).unwrap();
        let second = Number(first.0 + 1);
        let answers = vec![answer(0)];
        let tell = SealedTell { batch: first, settle: vec![4], notice: vec![6], answers };
        shared.append(term, second, &HistoryEntry::Tell(tell)).unwrap();
        assert_eq!(shared.state().synced, second, "nobody waited for it yet");
        let notices = || shared.notices(Number(0), Duration::ZERO).unwrap();
        assert_eq!(notices(), [], "it is not durable yet");
        assert_eq!(
            shared.answers(ClientSession(1), AskNumber(0), Duration::ZERO).unwrap(),
            [answer(0)]
        );
        assert_eq!(shared.state().synced, Number(second.0 + 1));
        assert_eq!(notices(), [SealedNotice { number: second, sealed: vec![6] }]);
        // A refusal names the newest record too.
        let third = shared.state().index.next();
        shared.append(term, third, &HistoryEntry::Note(vec![5])).unwrap();
        shared.refuse(term, &[answer(1)]).unwrap();
        assert_eq!(
            shared.answers(ClientSession(1), AskNumber(1), Duration::ZERO).unwrap(),
            [answer(1)]
        );
        assert_eq!(shared.state().synced, Number(third.0 + 1));
    }
}
