//! What the scribe does to the history.

use super::super::keeper::{Change, Keeper};
use super::super::limits::BEYOND_QUOTA;
use super::super::request_queue::RequestQueue;
use super::{Shared, State, lock};
use oblivio_store::share::{
    Arrival, HistoryEntry, MOST_ASK_BYTES, MOST_ENTRY_BYTES, MOST_READ_BYTES, Number, Object,
    Result, ScribeTerm, SealedAnswer, SealedAsk, SealedShow, ServerSpot, ShareError, encode,
};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

impl<K: Keeper> Shared<K> {
    pub(super) fn claim(&self, previous: ScribeTerm) -> Result<ScribeTerm> {
        let _building = lock(&self.building);
        let now = (self.clock)();
        let (term, next) = {
            let state = self.state();
            state.usable()?;
            (state.lease.next(previous, now)?, state.index.next())
        };
        self.sync_before(next)?;
        self.commit(&[Change::Term(term)])?;
        let unnamed = {
            let mut state = self.state();
            state.lease.take(term, (self.clock)());
            state.index.objects.take_unnamed()
        };
        self.asks_came.notify_all();
        unnamed.into_iter().try_for_each(|object| self.keeper.delete(object))?;
        Ok(term)
    }

    pub(super) fn asks(
        &self,
        term: ScribeTerm,
        from: Arrival,
        wait: Duration,
    ) -> Result<(Vec<SealedAsk>, Arrival)> {
        let state = self.admit(term)?;
        let idle =
            |state: &mut State| state.lease.term() == term && state.queue.since(from).0.is_empty();
        let waited = self.asks_came.wait_timeout_while(state, wait, idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.admit(term, (self.clock)())?;
        Ok(state.queue.since(from))
    }

    pub(super) fn append(
        &self,
        term: ScribeTerm,
        number: Number,
        entry: &HistoryEntry,
    ) -> Result<()> {
        let mut state = self.admit(term)?;
        if state.index.is_repeat(number, entry)? {
            return Ok(());
        }
        let slot_bytes = state.slot_bytes()?;
        state.index.check(entry, &state.queue, slot_bytes)?;
        let beyond = if matches!(entry, HistoryEntry::Show(_)) { 0 } else { BEYOND_QUOTA };
        self.within(&state, beyond)?;
        let encoded = match entry {
            HistoryEntry::Show(show) => encode(&with_asks(show, &state.queue)),
            _ => encode(entry),
        };
        if encoded.len() > MOST_ENTRY_BYTES {
            return Err(ShareError::invalid("the record is too long"));
        }
        self.keeper.append(number, &encoded)?;
        state.index.take(entry, &encoded);
        if let HistoryEntry::Show(show) = entry {
            show.fetches.iter().for_each(|fetch| state.queue.remove(fetch.ask));
        }
        let waiting = match entry {
            HistoryEntry::Tell(tell) => state.waiting.of(&tell.answers),
            _ => Vec::new(),
        };
        drop(state);
        waiting.iter().for_each(|waiting| waiting.notify_all());
        Ok(())
    }

    pub(super) fn refuse(&self, term: ScribeTerm, answers: &[SealedAnswer]) -> Result<()> {
        let mut state = self.admit(term)?;
        if answers.iter().any(|answer| answer.sealed.len() > MOST_ASK_BYTES) {
            return Err(ShareError::invalid("an answer is too long"));
        }
        answers.iter().for_each(|answer| state.queue.refuse(answer));
        let waiting = state.waiting.of(answers);
        drop(state);
        waiting.iter().for_each(|waiting| waiting.notify_all());
        Ok(())
    }

    pub(super) fn durable(&self, term: ScribeTerm, number: Number) -> Result<()> {
        let state = self.admit(term)?;
        let next = state.index.next();
        drop(state);
        if number >= next {
            return Err(ShareError::Gap(next));
        }
        self.sync_before(Number(number.0 + 1))
    }

    pub(super) fn sums(&self, term: ScribeTerm, number: Number) -> Result<Vec<u8>> {
        let state = self.admit(term)?;
        let (fetches, slot_bytes) = (state.index.fetches(number)?, state.slot_bytes()?);
        drop(state);
        self.sync_before(Number(number.0 + 1))?;
        let bytes = slot_bytes as usize;
        let mut sums = vec![0; fetches.len() * bytes];
        let spots = fetches
            .iter()
            .enumerate()
            .flat_map(|(at, it)| it.spots.iter().map(move |spot| (at, *spot)));
        let spots: Vec<(usize, ServerSpot)> = spots.collect();
        // Many are read at once, and no more than memory has room for.
        let most = (MOST_READ_BYTES / bytes).max(1);
        let mut slots = vec![0; spots.len().min(most) * bytes];
        for some in spots.chunks(most) {
            let slots = &mut slots[..some.len() * bytes];
            self.read_slots(some.iter().map(|it| it.1), slots, bytes)?;
            for ((at, _), slot) in some.iter().zip(slots.chunks_exact(bytes)) {
                let sum = &mut sums[at * bytes..(at + 1) * bytes];
                sum.iter_mut().zip(slot).for_each(|(sum, byte)| *sum ^= byte);
            }
        }
        Ok(sums)
    }

    /// Reads slots. Those that follow each other in a table are one read.
    fn read_slots(
        &self,
        spots: impl Iterator<Item = ServerSpot>,
        into: &mut [u8],
        slot_bytes: usize,
    ) -> Result<()> {
        let spots: Vec<ServerSpot> = spots.collect();
        match self.read_runs(&spots, into, slot_bytes) {
            Err(error) if self.keeper.goes_without(&error) => {
                self.read_without(&spots, into, slot_bytes)
            }
            done => done,
        }
    }

    /// Reads slots one by one, with zeros for those that are lost.
    fn read_without(&self, spots: &[ServerSpot], into: &mut [u8], slot_bytes: usize) -> Result<()> {
        for (spot, slot) in spots.iter().zip(into.chunks_exact_mut(slot_bytes)) {
            let offset = u64::from(spot.slot) * slot_bytes as u64;
            match self.keeper.read(Object::Table(spot.table), offset, slot) {
                Err(error) if self.keeper.goes_without(&error) => slot.fill(0),
                done => done?,
            }
        }
        Ok(())
    }

    fn read_runs(&self, spots: &[ServerSpot], into: &mut [u8], slot_bytes: usize) -> Result<()> {
        let mut runs: Vec<(ServerSpot, usize)> = Vec::new();
        for &spot in spots {
            match runs.last_mut() {
                Some((first, count))
                    if first.table == spot.table
                        && u64::from(first.slot) + *count as u64 == u64::from(spot.slot) =>
                {
                    *count += 1;
                }
                _ => runs.push((spot, 1)),
            }
        }
        let mut rest = into;
        let mut reads = Vec::with_capacity(runs.len());
        for (first, count) in runs {
            let (part, after) = rest.split_at_mut(count * slot_bytes);
            rest = after;
            let offset = u64::from(first.slot) * slot_bytes as u64;
            reads.push((Object::Table(first.table), offset, part));
        }
        self.keeper.read_all(&mut reads)
    }

    pub(super) fn slots(
        &self,
        term: ScribeTerm,
        after: Number,
        spots: &[ServerSpot],
    ) -> Result<Vec<u8>> {
        let state = self.admit(term)?;
        let (slot_bytes, next) = (state.slot_bytes()?, state.index.next());
        if spots.len().saturating_mul(slot_bytes as usize) > MOST_READ_BYTES {
            return Err(ShareError::invalid("too many slots at once"));
        }
        if after > next {
            return Err(ShareError::Gap(next));
        }
        spots.iter().try_for_each(|spot| state.index.objects.check_stored(*spot, slot_bytes))?;
        drop(state);
        self.sync_before(after)?;
        let mut slots = vec![0; spots.len() * slot_bytes as usize];
        self.read_slots(spots.iter().copied(), &mut slots, slot_bytes as usize)?;
        Ok(slots)
    }
}

/// A batch with all of its asks.
fn with_asks(show: &SealedShow, queue: &RequestQueue) -> HistoryEntry {
    let own: BTreeMap<_, _> = show.own.iter().map(|ask| (ask.id, ask)).collect();
    let asks = show
        .fetches
        .iter()
        .filter_map(|fetch| queue.get(fetch.ask).or_else(|| own.get(&fetch.ask).copied()).cloned());
    HistoryEntry::Show(SealedShow { own: asks.collect(), ..show.clone() })
}
