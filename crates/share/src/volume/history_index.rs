//! What a shared volume knows of its history and objects, without their bytes.

use super::limits::{MOST_NOTICE_BYTES, MOST_UNANSWERED};
use super::notices::Notices;
use super::objects::Objects;
use super::request_queue::RequestQueue;
use oblivio_store::share::{
    AskId, AskNumber, ClientSession, Fetch, HistoryEntry, MOST_ANSWERS, MOST_ASK_BYTES,
    MOST_ENTRY_BYTES, MOST_FETCHES, MOST_READ_BYTES, MOST_SPOTS, Number, Result, SealedAnswer,
    SealedShow, SealedSwitch, SealedTell, ServerSpot, ServerTable, ShareError, encode,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Where an answer stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerPlace {
    pub number: Number,
    pub offset: u32,
    pub len: u32,
}

/// A batch whose answers are not durable.
#[derive(Clone, Debug)]
struct Batch {
    fetches: Arc<Vec<Fetch>>,
    told: Option<Number>,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct HistoryIndex {
    first: Number,
    /// One for each record that is kept.
    digests: VecDeque<[u8; 32]>,
    ordered: BTreeMap<AskId, Number>,
    answered: BTreeMap<AskId, AnswerPlace>,
    batches: BTreeMap<Number, Batch>,
    pub objects: Objects,
    pub notices: Notices,
}

/// What a show must be the same in when it is repeated: all but the asks, whose bytes come along
/// with it or not.
fn digest(entry: &HistoryEntry) -> [u8; 32] {
    let bytes = match entry {
        HistoryEntry::Show(show) => {
            encode(&HistoryEntry::Show(SealedShow { own: Vec::new(), ..show.clone() }))
        }
        _ => encode(entry),
    };
    *blake3::hash(&bytes).as_bytes()
}

/// Where the answers of an encoded `Tell` stand: their asks, offsets and lengths.
fn answer_places(encoded: &[u8], tell: &SealedTell) -> Vec<(AskId, u32, u32)> {
    let answers: usize = tell.answers.iter().map(|answer| answer.sealed.len()).sum();
    let mut at = encoded.len().saturating_sub(answers) as u32;
    let place = |answer: &SealedAnswer| {
        let len = answer.sealed.len() as u32;
        at += len;
        (answer.id, at - len, len)
    };
    tell.answers.iter().map(place).collect()
}

fn all_of(session: ClientSession, from: AskNumber) -> std::ops::RangeInclusive<AskId> {
    AskId { session, seq: from }..=AskId { session, seq: AskNumber(u64::MAX) }
}

impl HistoryIndex {
    /// Those of a history that begins here, with these objects.
    pub fn new(first: Number, objects: Objects) -> Self {
        Self { first, objects, ..Self::default() }
    }

    pub fn first(&self) -> Number {
        self.first
    }

    pub fn next(&self) -> Number {
        Number(self.first.0 + self.digests.len() as u64)
    }

    /// Batches that have no answers.
    pub fn unanswered(&self) -> u64 {
        self.batches.values().filter(|batch| batch.told.is_none()).count() as u64
    }

    pub fn is_ordered(&self, id: AskId) -> bool {
        self.ordered.contains_key(&id)
    }

    /// Whether this record is there already; an error if another one is, or if it is not the next.
    pub fn is_repeat(&self, number: Number, entry: &HistoryEntry) -> Result<bool> {
        if number >= self.next() {
            return if number == self.next() {
                Ok(false)
            } else {
                Err(ShareError::Gap(self.next()))
            };
        }
        let Some(at) = number.0.checked_sub(self.first.0) else {
            return Err(ShareError::Gone(self.first));
        };
        match self.digests.get(at as usize) {
            Some(known) if *known == digest(entry) => Ok(true),
            _ => Err(ShareError::Differs(number)),
        }
    }

    /// Whether a new record may be appended.
    pub fn check(&self, entry: &HistoryEntry, queue: &RequestQueue, slot_bytes: u32) -> Result<()> {
        match entry {
            HistoryEntry::Show(show) => self.check_show(show, queue, slot_bytes),
            HistoryEntry::Tell(tell) => self.check_tell(tell),
            HistoryEntry::Switch(switch) => self.check_switch(switch),
            HistoryEntry::Note(_) => Ok(()),
        }?;
        match entry.sealed().len() > MOST_ENTRY_BYTES / 2 {
            true => Err(ShareError::invalid("the record is too long")),
            false => Ok(()),
        }
    }

    fn check_show(&self, show: &SealedShow, queue: &RequestQueue, slot_bytes: u32) -> Result<()> {
        if self.batches.len() >= MOST_UNANSWERED {
            return Err(ShareError::Busy);
        }
        let sums = show.fetches.len().saturating_mul(slot_bytes as usize);
        let asks = show.fetches.len();
        if asks == 0 || asks > MOST_FETCHES || sums > MOST_READ_BYTES {
            return Err(ShareError::invalid("a batch of no asks, or of too many"));
        }
        let own: BTreeMap<AskId, &[u8]> =
            show.own.iter().map(|ask| (ask.id, &*ask.sealed)).collect();
        let asks: BTreeSet<AskId> = show.fetches.iter().map(|fetch| fetch.ask).collect();
        if asks.len() != show.fetches.len()
            || own.len() != show.own.len()
            || own.keys().any(|id| !asks.contains(id))
        {
            return Err(ShareError::invalid("an ask twice, or one that shows nothing"));
        }
        for fetch in &show.fetches {
            if self.is_ordered(fetch.ask) {
                return Err(ShareError::invalid("an ask that is in an earlier batch"));
            }
            match (queue.get(fetch.ask), own.get(&fetch.ask)) {
                (None, None) => return Err(ShareError::NoAsk(fetch.ask)),
                (Some(waiting), Some(own)) if waiting.sealed != *own => {
                    return Err(ShareError::OtherAsk(fetch.ask));
                }
                (None, Some(own)) if own.len() > MOST_ASK_BYTES => {
                    return Err(ShareError::invalid("the ask is too long"));
                }
                _ => {}
            }
            self.check_spots(&fetch.spots, slot_bytes)?;
        }
        Ok(())
    }

    fn check_spots(&self, spots: &[ServerSpot], slot_bytes: u32) -> Result<()> {
        if spots.len() > MOST_SPOTS {
            return Err(ShareError::invalid("an ask shows too many slots"));
        }
        spots.iter().try_for_each(|spot| self.objects.check_slot(*spot, slot_bytes))
    }

    fn check_tell(&self, tell: &SealedTell) -> Result<()> {
        let batch = self.batches.get(&tell.batch).filter(|batch| batch.told.is_none());
        let batch = batch.ok_or(ShareError::invalid("no such batch without answers"))?;
        let asked = batch.fetches.iter().map(|fetch| fetch.ask);
        if !asked.eq(tell.answers.iter().map(|answer| answer.id)) {
            return Err(ShareError::invalid("not the answers of this batch"));
        }
        if tell.notice.len() > MOST_NOTICE_BYTES {
            return Err(ShareError::invalid("a notice is too long"));
        }
        match tell.answers.iter().any(|answer| answer.sealed.len() > MOST_ASK_BYTES) {
            true => Err(ShareError::invalid("an answer is too long")),
            false => Ok(()),
        }
    }

    fn check_switch(&self, switch: &SealedSwitch) -> Result<()> {
        if switch.replaced.len() > MOST_SPOTS {
            return Err(ShareError::invalid("too many tables at once"));
        }
        let distinct: BTreeSet<_> = switch.replaced.iter().collect();
        if distinct.len() != switch.replaced.len() {
            return Err(ShareError::invalid("a table is replaced twice"));
        }
        self.objects.check_switch(switch)
    }

    /// Takes a new record into the index. `encoded` has the asks of a batch.
    pub fn take(&mut self, entry: &HistoryEntry, encoded: &[u8]) {
        let number = self.next();
        self.digests.push_back(digest(entry));
        match entry {
            HistoryEntry::Show(show) => {
                self.ordered.extend(show.fetches.iter().map(|fetch| (fetch.ask, number)));
                let batch = Batch { fetches: Arc::new(show.fetches.clone()), told: None };
                self.batches.insert(number, batch);
            }
            HistoryEntry::Tell(tell) => {
                // Of a batch that is gone, only the answers are kept.
                if let Some(batch) = self.batches.get_mut(&tell.batch) {
                    batch.told = Some(number);
                }
                self.notices.take(number, &tell.notice);
                let places = answer_places(encoded, tell).into_iter();
                self.answered.extend(
                    places.map(|(id, offset, len)| (id, AnswerPlace { number, offset, len })),
                );
            }
            HistoryEntry::Switch(switch) => self.objects.switch(number, switch),
            HistoryEntry::Note(_) => {}
        }
    }

    /// Takes a record of the last start's, whose effect the catalog has.
    pub fn take_applied(&mut self, entry: &HistoryEntry) {
        self.digests.push_back(digest(entry));
    }

    /// What a batch shows, as long as its answers are not durable.
    pub fn fetches(&self, number: Number) -> Result<Arc<Vec<Fetch>>> {
        let batch = self.batches.get(&number);
        let batch = batch.ok_or(ShareError::invalid("no such batch without durable answers"))?;
        Ok(Arc::clone(&batch.fetches))
    }

    /// Records before this one are durable. Returns tables that nobody needs any more.
    pub fn durable(&mut self, before: Number) -> Vec<ServerTable> {
        self.batches.retain(|_, batch| batch.told.is_none_or(|told| told >= before));
        if !self.objects.has_replaced() {
            return Vec::new();
        }
        let needed = self.needed();
        self.objects.take_replaced(before, &needed)
    }

    /// Tables that a batch reads whose answers are not durable.
    pub fn needed(&self) -> BTreeSet<ServerTable> {
        let fetches = self.batches.values().flat_map(|batch| batch.fetches.iter());
        fetches.flat_map(|fetch| &fetch.spots).map(|spot| spot.table).collect()
    }

    /// Answers of a session, in order.
    pub fn answers(&self, session: ClientSession, from: AskNumber) -> Vec<(AskId, AnswerPlace)> {
        let found = self.answered.range(all_of(session, from));
        let mut bytes = 0;
        let room = |it: &(&AskId, &AnswerPlace)| {
            bytes += it.1.len as usize;
            bytes <= MOST_READ_BYTES
        };
        let some = found.take(MOST_ANSWERS).take_while(room);
        some.map(|(id, place)| (*id, *place)).collect()
    }

    /// Whether records before this one may go.
    pub fn may_forget(&self, before: Number) -> bool {
        before <= self.next() && self.batches.first_key_value().is_none_or(|it| *it.0 >= before)
    }

    /// Removes records before this one.
    pub fn forget(&mut self, before: Number) {
        if before <= self.first {
            return;
        }
        self.digests.drain(..((before.0 - self.first.0) as usize).min(self.digests.len()));
        self.first = before;
        self.ordered.retain(|_, number| *number >= before);
        self.answered.retain(|_, place| place.number >= before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_answers_are_right() {
        let id = |seq| AskId { session: ClientSession(7 << 40), seq: AskNumber(seq) };
        let answer = |seq| SealedAnswer { id: id(seq), sealed: vec![seq as u8; 3] };
        let (settle, notice, answers) = (vec![2; 30], vec![6; 7], vec![answer(2), answer(3)]);
        let tell = SealedTell { batch: Number(9), settle, notice, answers };
        let bytes = encode(&HistoryEntry::Tell(tell.clone()));
        for ((id, at, len), answer) in answer_places(&bytes, &tell).into_iter().zip(&tell.answers) {
            assert_eq!(id, answer.id);
            assert_eq!(bytes[at as usize..][..len as usize], *answer.sealed);
        }
    }
}
