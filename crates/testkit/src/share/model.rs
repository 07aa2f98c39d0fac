//! Random calls to a shared volume, beside a plain model of it.

use super::rig::{Rig, SLOT, ask_id, entry_of_asks, session_of};
use super::{FreshShare, TestClock};
use crate::Dice;
use oblivio_store::share::{
    AskId, AskNumber, HistoryEntry, LEASE, Number, ScribeTerm, SealedAsk, ServerSpot, ServerTable,
    Share,
};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Calls between two starts.
const CALLS: usize = 60;
const SESSIONS: u64 = 3;

/// What the volume must hold.
#[derive(Default)]
struct Model {
    tables: BTreeMap<ServerTable, Vec<u8>>,
    next_table: u64,
    /// Sealed bytes and asks of each record.
    records: Vec<(Vec<u8>, Vec<SealedAsk>)>,
    first: u64,
    waiting: BTreeMap<AskId, SealedAsk>,
    seqs: BTreeMap<u64, u64>,
    /// Batches without answers, with what they show and its sum.
    open: BTreeMap<u64, (Vec<AskId>, Vec<u8>)>,
    /// The record of each answer.
    answers: BTreeMap<AskId, u64>,
    checkpoint: Option<(u64, Vec<u8>)>,
}

/// Random calls of each seed, with a start in between, compared with a model.
///
/// # Panics
/// At the first difference.
pub fn model(fresh: FreshShare<'_>, seeds: Range<u64>) {
    for seed in seeds {
        let clock = TestClock::default();
        let open = fresh(clock.clock());
        let (mut model, mut dice) = (Model::default(), Dice::new(seed));
        for _ in 0..3 {
            let share = open();
            clock.pass(LEASE);
            let mut rig = Rig::new(&*share).expect("the lease ended");
            assert_eq!(rig.next.0, model.next(), "seed {seed}");
            // A client repeats what has no answer.
            let asks: Vec<SealedAsk> = model.waiting.values().cloned().collect();
            share.ask(&asks).expect("they are taken");
            for _ in 0..CALLS {
                model.step(&mut rig, &mut dice);
            }
            model.compare(&*share, rig.term);
        }
    }
}

impl Model {
    fn next(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    fn step(&mut self, rig: &mut Rig<'_>, dice: &mut Dice) {
        match dice.below(10) {
            0..=2 => self.ask(rig, dice),
            3 | 4 => self.show(rig, dice),
            5 | 6 => self.tell(rig, dice),
            7 => self.switch(rig, dice),
            8 => self.again(rig, dice),
            _ if dice.percent(30) => self.save(rig, dice),
            _ => {
                let note = dice.bytes(9);
                rig.add(&HistoryEntry::Note(note.clone())).expect("a note");
                self.records.push((note, Vec::new()));
            }
        }
    }

    fn ask(&mut self, rig: &Rig<'_>, dice: &mut Dice) {
        let session = dice.below(SESSIONS);
        let seq = self.seqs.entry(session).or_default();
        let ask = SealedAsk { id: ask_id(rig.share, session, *seq), sealed: dice.bytes(30) };
        *seq += 1;
        rig.share.ask(std::slice::from_ref(&ask)).expect("an ask");
        self.waiting.insert(ask.id, ask);
    }

    fn show(&mut self, rig: &mut Rig<'_>, dice: &mut Dice) {
        let mut asks: Vec<SealedAsk> = self.waiting.values().cloned().collect();
        dice.shuffle(&mut asks);
        asks.truncate(1 + dice.index(4));
        if asks.is_empty() || self.open.len() >= 8 {
            return;
        }
        let (mut fetches, mut sums) = (Vec::new(), Vec::new());
        for ask in &asks {
            let mut sum = vec![0; SLOT];
            let mut spots = Vec::new();
            for (table, bytes) in &self.tables {
                let slot = dice.index(bytes.len() / SLOT);
                spots.push(ServerSpot { table: *table, slot: slot as u32 });
                sum.iter_mut().zip(&bytes[slot * SLOT..]).for_each(|(sum, byte)| *sum ^= byte);
            }
            fetches.push((ask.id, spots));
            sums.extend(sum);
        }
        let (intent, number) = (dice.bytes(12), rig.next);
        // Some come along, whether the server has them or not.
        let own = asks.iter().filter(|_| dice.percent(30)).cloned().collect();
        let entry = entry_of_asks(&intent, own, &fetches);
        assert_eq!(rig.share.show(rig.term, number, &entry).expect("a batch"), sums);
        rig.next.0 += 1;
        let ids: Vec<AskId> = asks.iter().map(|ask| ask.id).collect();
        ids.iter().for_each(|id| drop(self.waiting.remove(id)));
        self.records.push((intent, asks));
        self.open.insert(number.0, (ids, sums));
    }

    fn tell(&mut self, rig: &mut Rig<'_>, dice: &mut Dice) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        if open.is_empty() {
            return;
        }
        let batch = open[dice.index(open.len())];
        if let Some((ids, _)) = self.open.remove(&batch) {
            let number = rig.tell(Number(batch), &ids).expect("answers");
            self.answers.extend(ids.into_iter().map(|id| (id, number.0)));
            self.records.push((b"settle".to_vec(), Vec::new()));
        }
    }

    fn switch(&mut self, rig: &mut Rig<'_>, dice: &mut Dice) {
        let table = ServerTable(self.next_table.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        self.next_table += 1;
        let bytes = rig.build(table, 1 + dice.index(5)).expect("a table");
        let gone: Vec<ServerTable> =
            self.tables.keys().filter(|_| dice.percent(40)).copied().collect();
        rig.switch(table, &gone).expect("a switch");
        gone.iter().for_each(|table| drop(self.tables.remove(table)));
        self.tables.insert(table, bytes);
        self.records.push((b"merged".to_vec(), Vec::new()));
    }

    /// Calls whose replies were lost.
    fn again(&mut self, rig: &Rig<'_>, dice: &mut Dice) {
        for (batch, (_, sums)) in &self.open {
            let again = rig.share.sums(rig.term, Number(*batch)).expect("it has no answers");
            assert_eq!(again, *sums);
        }
        for (table, bytes) in self.tables.iter().filter(|_| dice.percent(30)) {
            let slots = (bytes.len() / SLOT) as u32;
            let spots: Vec<ServerSpot> =
                (0..slots).rev().map(|slot| ServerSpot { table: *table, slot }).collect();
            let read = rig.share.slots(rig.term, rig.next, &spots).expect("slots");
            assert!(read.chunks(SLOT).eq(bytes.chunks(SLOT).rev()));
        }
    }

    fn save(&mut self, rig: &mut Rig<'_>, dice: &mut Dice) {
        let most = self.open.first_key_value().map_or(self.next(), |(batch, _)| *batch);
        let keep_from = self.first + dice.below(most - self.first + 1);
        let at = self.next();
        if self.checkpoint.as_ref().is_some_and(|(known, _)| *known == at) {
            return;
        }
        let len = 1 + dice.index(200);
        let bytes = dice.bytes(len);
        rig.save(Number(at), Number(keep_from), &bytes).expect("a checkpoint");
        self.records.drain(..(keep_from - self.first) as usize);
        self.first = keep_from;
        self.answers.retain(|_, number| *number >= keep_from);
        self.checkpoint = Some((at, bytes));
    }

    fn compare(&self, share: &dyn Share, term: ScribeTerm) {
        let now = Duration::ZERO;
        for (from, (sealed, asks)) in (self.first..).zip(&self.records) {
            let found = share.records(Number(from), 0, now).expect("a record");
            assert_eq!((&found[0].sealed, &found[0].asks), (sealed, asks));
        }
        for session in 0..SESSIONS {
            let found =
                share.answers(session_of(share, session), AskNumber(0), now).expect("answers");
            let ids: Vec<AskId> = found.iter().map(|answer| answer.id).collect();
            let is_of = |id: &&AskId| id.session == session_of(share, session);
            let expected: Vec<AskId> = self.answers.keys().filter(is_of).copied().collect();
            assert_eq!(ids, expected);
        }
        let (waiting, _) = share.asks(term, oblivio_store::share::Arrival(0), now).expect("asks");
        let mut waiting: Vec<AskId> = waiting.iter().map(|ask| ask.id).collect();
        waiting.sort_unstable();
        assert!(waiting.iter().eq(self.waiting.keys()));
        let status = share.status().expect("a status");
        assert_eq!(status.tables, self.tables.len() as u64);
        let found = share.checkpoint().expect("a checkpoint");
        assert_eq!(found.map(|it| it.at.0), self.checkpoint.as_ref().map(|it| it.0));
        if let Some((at, bytes)) = &self.checkpoint {
            let read = share.read_checkpoint(Number(*at), 0, bytes.len()).expect("it is there");
            assert_eq!(read, *bytes);
        }
    }
}
