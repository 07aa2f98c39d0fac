//! Asks that wait for their batch, in the order in which they came.
//!
//! Each device has its own bounds. If those of many devices together are too much, the newest ask
//! of the device that has most makes room.

use super::limits::{MOST_BYTES_OF_DEVICE, MOST_OF_DEVICE, MOST_PENDING_BYTES, MOST_REFUSED};
use oblivio_store::share::{
    Arrival, AskId, AskNumber, ClientSession, MOST_ANSWERS, MOST_OF_SESSION, MOST_PENDING,
    MOST_READ_BYTES, Result, SealedAnswer, SealedAsk, ShareError,
};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// The asks.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    asks: BTreeMap<Arrival, SealedAsk>,
    by_id: BTreeMap<AskId, Arrival>,
    next: Arrival,
    bytes: usize,
    of_device: BTreeMap<u16, Load>,
    /// Answers to asks that stand in no batch.
    refused: BTreeMap<AskId, Vec<u8>>,
    /// The same in the order in which they came.
    refused_first: VecDeque<AskId>,
}

/// What waits of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    asks: usize,
    bytes: usize,
}

/// All asks of a device.
fn all_of(device: u16) -> RangeInclusive<AskId> {
    let end =
        |random, seq| AskId { session: ClientSession::of(device, random), seq: AskNumber(seq) };
    end(0, 0)..=end(u64::MAX, u64::MAX)
}

impl RequestQueue {
    /// Arrivals of the server's start of this number: later than all before.
    pub fn of_start(start: u64) -> Self {
        Self { next: Arrival(start << 40), ..Self::default() }
    }

    pub fn len(&self) -> usize {
        self.asks.len()
    }

    /// Takes an ask, or the same one again.
    pub fn take(&mut self, ask: &SealedAsk) -> Result<()> {
        if let Some(known) = self.get(ask.id) {
            return if known == ask { Ok(()) } else { Err(ShareError::OtherAsk(ask.id)) };
        }
        let session = ask.id.session;
        let of = |seq| AskId { session, seq: AskNumber(seq) };
        let waiting = self.by_id.range(of(0)..=of(u64::MAX)).take(MOST_OF_SESSION).count();
        let (device, bytes) = (session.device(), ask.sealed.len());
        let load = self.of_device.get(&device).copied().unwrap_or_default();
        let load = Load { asks: load.asks + 1, bytes: load.bytes + bytes };
        let full = load.asks > MOST_OF_DEVICE || load.bytes > MOST_BYTES_OF_DEVICE;
        if full || waiting >= MOST_OF_SESSION {
            return Err(ShareError::Busy);
        }
        while self.asks.len() >= MOST_PENDING {
            self.make_room(load, |load| load.asks)?;
        }
        while self.bytes + bytes > MOST_PENDING_BYTES {
            self.make_room(load, |load| load.bytes)?;
        }
        self.of_device.insert(device, load);
        self.bytes += bytes;
        self.by_id.insert(ask.id, self.next);
        self.asks.insert(self.next, ask.clone());
        self.next.0 += 1;
        Ok(())
    }

    /// Removes the newest ask of the device that has most by this measure, and more than `than`.
    fn make_room(&mut self, than: Load, measure: fn(&Load) -> usize) -> Result<()> {
        let most = self.of_device.iter().max_by_key(|(_, load)| measure(load));
        let more = most.filter(|(_, load)| measure(load) > measure(&than));
        let (device, _) = more.ok_or(ShareError::Busy)?;
        let newest = self.by_id.range(all_of(*device)).max_by_key(|(_, at)| **at);
        let newest = newest.map(|(id, _)| *id).ok_or(ShareError::Busy)?;
        self.remove(newest);
        Ok(())
    }

    /// How many asks of each device wait.
    pub fn waiting(&self) -> Vec<(u16, u64)> {
        self.of_device.iter().map(|(device, load)| (*device, load.asks as u64)).collect()
    }

    /// Removes all that a device asked, and answers that wait for it.
    pub fn forget_device(&mut self, device: u16) {
        let asks: Vec<AskId> = self.by_id.range(all_of(device)).map(|(id, _)| *id).collect();
        asks.into_iter().for_each(|id| self.remove(id));
        self.refused.retain(|id, _| id.session.device() != device);
        self.refused_first.retain(|id| id.session.device() != device);
    }

    pub fn get(&self, id: AskId) -> Option<&SealedAsk> {
        self.by_id.get(&id).and_then(|at| self.asks.get(at))
    }

    /// Removes one that is in a batch.
    pub fn remove(&mut self, id: AskId) {
        if let Some(at) = self.by_id.remove(&id) {
            let bytes = self.asks.remove(&at).map_or(0, |ask| ask.sealed.len());
            self.bytes -= bytes;
            let device = id.session.device();
            if let Some(load) = self.of_device.get_mut(&device) {
                *load = Load { asks: load.asks - 1, bytes: load.bytes - bytes };
                if load.asks == 0 {
                    self.of_device.remove(&device);
                }
            }
        }
    }

    /// Takes the answer to one that will be in no batch, and removes the ask. An empty answer is to
    /// an ask that did not open: nobody waits for it.
    pub fn refuse(&mut self, answer: &SealedAnswer) {
        self.remove(answer.id);
        if answer.sealed.is_empty() {
            return;
        }
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
    pub fn refused(&self, session: ClientSession, from: AskNumber) -> Vec<SealedAnswer> {
        let range = AskId { session, seq: from }..=AskId { session, seq: AskNumber(u64::MAX) };
        let found = self.refused.range(range).take(MOST_ANSWERS);
        found.map(|(id, sealed)| SealedAnswer { id: *id, sealed: sealed.clone() }).collect()
    }

    /// Those that came at `from` or later, and where to go on.
    pub fn since(&self, from: Arrival) -> (Vec<SealedAsk>, Arrival) {
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

    fn ask(session: u64, seq: u64, byte: u8) -> SealedAsk {
        SealedAsk {
            id: AskId { session: ClientSession(session), seq: AskNumber(seq) },
            sealed: vec![byte; 4],
        }
    }

    #[test]
    fn asks_wait_in_order_and_once() {
        let mut queue = RequestQueue::of_start(2);
        for it in [ask(2, 0, 1), ask(1, 0, 2), ask(1, 0, 2)] {
            queue.take(&it).unwrap();
        }
        assert!(matches!(queue.take(&ask(1, 0, 3)), Err(ShareError::OtherAsk(_))));
        let (asks, next) = queue.since(Arrival(0));
        assert_eq!(asks, [ask(2, 0, 1), ask(1, 0, 2)]);
        assert_eq!(next, Arrival((2 << 40) + 2));
        assert!(queue.since(next).0.is_empty());
        queue.remove(asks[0].id);
        assert_eq!(queue.since(Arrival(0)).0, [ask(1, 0, 2)]);
        queue.remove(ask(1, 0, 2).id);
        assert_eq!(queue.len(), 0);
    }

    /// Four devices have as much as they may, and all together as much as there may be. A fifth
    /// one is served all the same, and feels its own bound only.
    #[test]
    fn who_has_most_makes_room() {
        let of = |device, at: u64| ask(ClientSession::of(device, at / 1024).0, at % 1024, 0);
        let mut queue = RequestQueue::default();
        for device in 1..=4 {
            (0..MOST_OF_DEVICE as u64).for_each(|at| queue.take(&of(device, at)).unwrap());
            let more = of(device, MOST_OF_DEVICE as u64);
            assert!(matches!(queue.take(&more), Err(ShareError::Busy)));
        }
        assert_eq!(queue.len(), MOST_PENDING);
        (0..100).for_each(|at| queue.take(&of(5, at)).unwrap());
        assert_eq!(queue.len(), MOST_PENDING);
        assert!((0..100).all(|at| queue.get(of(5, at).id).is_some()));
        assert!((1..=4).all(|device| queue.get(of(device, 0).id).is_some()), "the newest ones go");
        queue.forget_device(1);
        let left = queue.waiting();
        assert!(left.iter().all(|(device, _)| *device != 1) && left.last() == Some(&(5, 100)));
        assert_eq!(queue.len() as u64, left.iter().map(|it| it.1).sum::<u64>());
    }

    #[test]
    fn a_session_has_its_limit() {
        let mut queue = RequestQueue::default();
        for seq in 0..MOST_OF_SESSION as u64 {
            queue.take(&ask(1, seq, 0)).unwrap();
        }
        assert!(matches!(queue.take(&ask(1, u64::MAX, 0)), Err(ShareError::Busy)));
        queue.take(&ask(1, 0, 0)).unwrap();
        queue.take(&ask(2, 0, 0)).unwrap();
    }
}
