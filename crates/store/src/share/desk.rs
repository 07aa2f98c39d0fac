//! Asks that wait for their batch, in the order in which they came.

use super::error::{Result, ShareError};
use super::ids::{Arrival, AskId, Seq, Session};
use super::limits::{
    MOST_ANSWERS, MOST_OF_SESSION, MOST_PENDING, MOST_PENDING_BYTES, MOST_READ_BYTES, MOST_REFUSED,
};
use super::records::{Answer, Ask};
use std::collections::{BTreeMap, VecDeque};

/// The asks.
#[derive(Debug, Default)]
pub(super) struct Desk {
    asks: BTreeMap<Arrival, Ask>,
    by_id: BTreeMap<AskId, Arrival>,
    next: Arrival,
    bytes: usize,
    /// Answers to asks that stand in no batch.
    refused: BTreeMap<AskId, Vec<u8>>,
    /// The same in the order in which they came.
    refused_first: VecDeque<AskId>,
}

impl Desk {
    /// Arrivals of the server's start of this number: later than all before.
    pub fn of_start(start: u64) -> Self {
        Self { next: Arrival(start << 40), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.asks.len()
    }

    /// Takes an ask, or the same one again.
    pub fn take(&mut self, ask: &Ask) -> Result<()> {
        if let Some(known) = self.get(ask.id) {
            return if known == ask { Ok(()) } else { Err(ShareError::OtherAsk(ask.id)) };
        }
        let session = ask.id.session;
        let of = |seq| AskId { session, seq: Seq(seq) };
        let waiting = self.by_id.range(of(0)..=of(u64::MAX)).take(MOST_OF_SESSION).count();
        let bytes = self.bytes + ask.sealed.len();
        let full = self.asks.len() >= MOST_PENDING || bytes > MOST_PENDING_BYTES;
        if full || waiting >= MOST_OF_SESSION {
            return Err(ShareError::Busy);
        }
        self.bytes = bytes;
        self.by_id.insert(ask.id, self.next);
        self.asks.insert(self.next, ask.clone());
        self.next.0 += 1;
        Ok(())
    }

    pub fn get(&self, id: AskId) -> Option<&Ask> {
        self.by_id.get(&id).and_then(|at| self.asks.get(at))
    }

    /// Removes one that is in a batch.
    pub fn remove(&mut self, id: AskId) {
        if let Some(at) = self.by_id.remove(&id) {
            let gone = self.asks.remove(&at);
            self.bytes -= gone.map_or(0, |ask| ask.sealed.len());
        }
    }

    /// Takes the answer to one that will be in no batch, and removes the ask.
    pub fn refuse(&mut self, answer: &Answer) {
        self.remove(answer.id);
        if self.refused.insert(answer.id, answer.sealed.clone()).is_none() {
            self.refused_first.push_back(answer.id);
        }
        if self.refused.len() > MOST_REFUSED
            && let Some(oldest) = self.refused_first.pop_front()
        {
            self.refused.remove(&oldest);
        }
    }

    /// Answers to asks of a session that are in no batch.
    pub fn refused(&self, session: Session, from: Seq) -> Vec<Answer> {
        let range = AskId { session, seq: from }..=AskId { session, seq: Seq(u64::MAX) };
        let found = self.refused.range(range).take(MOST_ANSWERS);
        found.map(|(id, sealed)| Answer { id: *id, sealed: sealed.clone() }).collect()
    }

    /// Those that came at `from` or later, and where to go on.
    pub fn since(&self, from: Arrival) -> (Vec<Ask>, Arrival) {
        let (mut asks, mut next, mut bytes) = (Vec::new(), from, 0);
        for (at, ask) in self.asks.range(from..).take(MOST_ANSWERS) {
            bytes += ask.sealed.len();
            if bytes > MOST_READ_BYTES && !asks.is_empty() {
                break;
            }
            asks.push(ask.clone());
            next = Arrival(at.0 + 1);
        }
        (asks, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(session: u64, seq: u64, byte: u8) -> Ask {
        Ask { id: AskId { session: Session(session), seq: Seq(seq) }, sealed: vec![byte; 4] }
    }

    #[test]
    fn asks_wait_in_order_and_once() {
        let mut desk = Desk::of_start(2);
        for it in [ask(2, 0, 1), ask(1, 0, 2), ask(1, 0, 2)] {
            desk.take(&it).unwrap();
        }
        assert!(matches!(desk.take(&ask(1, 0, 3)), Err(ShareError::OtherAsk(_))));
        let (asks, next) = desk.since(Arrival(0));
        assert_eq!(asks, [ask(2, 0, 1), ask(1, 0, 2)]);
        assert_eq!(next, Arrival((2 << 40) + 2));
        assert!(desk.since(next).0.is_empty());
        desk.remove(asks[0].id);
        assert_eq!(desk.since(Arrival(0)).0, [ask(1, 0, 2)]);
        desk.remove(ask(1, 0, 2).id);
        assert_eq!(desk.len(), 0);
    }

    #[test]
    fn a_session_has_its_limit() {
        let mut desk = Desk::default();
        for seq in 0..MOST_OF_SESSION as u64 {
            desk.take(&ask(1, seq, 0)).unwrap();
        }
        assert!(matches!(desk.take(&ask(1, u64::MAX, 0)), Err(ShareError::Busy)));
        desk.take(&ask(1, 0, 0)).unwrap();
        desk.take(&ask(2, 0, 0)).unwrap();
    }
}
