//! The scribe: it puts asks in order, reads what they show, answers them, and merges.
//!
//! It is no proxy. Any client with the key can do it, and nothing of it is kept outside the server.
//! Batches are shown before earlier ones are answered, and merges go on beside them. The answers of
//! a batch wait for those of all earlier ones. Where slots are damaged, what they held is lost, and
//! all else goes on (`looks`).

use super::admission::{Admission, Admitted};
use super::ask::effect;
use super::checkpoint::Saves;
use super::groups::Open;
use super::head::Head;
use super::history::{encode_intent, encode_merged, encode_settle};
use super::looks::Sums;
use super::public_rules::MOST_OF_BATCH;
use super::records::{
    AskRecord, BatchNumber, Build, DamagedSlot, Duty, Session, Show, Switch, Tell, Term, TurnRecord,
};
use super::tables::{TableId, table_ids};
use crate::pyramid::ids::{Name, TableHome, TableSpot};
use crate::pyramid::merge::Gathered;
use crate::pyramid::operation::Effect;
use crate::pyramid::oram::PyramidOram;
use crate::pyramid::shown::Round;
use crate::{EngineError, Result};
use oblivio_crypto::Sealer;
use oblivio_privatefs::Does;
use std::collections::VecDeque;

/// A batch that was shown and not answered.
struct Pending {
    batch: BatchNumber,
    opens: Vec<Open>,
    /// What each of its asks shows, once the sums are there.
    sums: Option<Sums>,
}

/// One client that serves all.
pub struct Scribe {
    pub(super) oram: PyramidOram,
    admission: Admission,
    saves: Saves,
    /// In their order: they are the engine's rounds under way.
    pending: VecDeque<Pending>,
    /// What is to be sent next.
    ready: VecDeque<Duty>,
    /// Whether a piece of a state went out since the last batch: they go by turns.
    piece_went: bool,
    /// Damaged slots that were met and not named.
    damaged: Vec<DamagedSlot>,
    closed: bool,
}

impl Scribe {
    /// The scribe of a new volume. The sealer opens asks and seals answers.
    ///
    /// # Errors
    /// `State` for term 0.
    pub fn new(oram: PyramidOram, sealer: Sealer, term: Term) -> Result<Self> {
        let mut admission = Admission::new(&oram, sealer);
        admission.chain.begin_term(term)?;
        Ok(Self::of(oram, admission, Saves::default()))
    }

    pub(super) fn of(oram: PyramidOram, admission: Admission, saves: Saves) -> Self {
        let (pending, ready) = (VecDeque::new(), VecDeque::new());
        let (piece_went, damaged, closed) = (false, Vec::new(), false);
        Self { oram, admission, saves, pending, ready, piece_went, damaged, closed }
    }

    /// The engine, to look at.
    pub fn oram(&self) -> &PyramidOram {
        &self.oram
    }

    /// The newest record.
    pub fn head(&self) -> Head {
        self.admission.chain.head()
    }

    /// The sessions that asked and did not end.
    pub fn live_sessions(&self) -> impl Iterator<Item = Session> {
        self.admission.sessions.iter()
    }

    /// What a later scribe needs, when no batch is under way: the state that is due now.
    ///
    /// # Errors
    /// `Invalid` while one is.
    pub(super) fn state(&mut self) -> Result<Vec<u8>> {
        self.saves.begin(&self.oram, &mut self.admission)?;
        self.saves.state(&self.oram, &self.admission)
    }

    /// Shows batches of an earlier scribe again, with the records that they have.
    pub(super) fn show_again(&mut self, shown: VecDeque<(Vec<Open>, Vec<u8>)>) {
        let first = self.admission.batch.0 + 1 - shown.len() as u64;
        for ((batch, (opens, intent)), round) in (first..).zip(shown).zip(self.oram.rounds.iter()) {
            let pending = Pending { batch: BatchNumber(batch), opens, sums: None };
            self.ready.push_back(Duty::Show(show(&pending, round, intent)));
            self.pending.push_back(pending);
        }
    }

    /// Takes an ask. One that it had before is not carried out again.
    ///
    /// # Errors
    /// `State` for an ask that does not open: then it is not taken.
    pub fn take(&mut self, record: &AskRecord) -> Result<Admitted> {
        self.admission.take(record)
    }

    /// Asks that wait for a batch.
    pub fn waiting(&self) -> usize {
        self.admission.waiting.iter().count()
    }

    /// What to do next. Replies may come later: of merges in any order, of batches in theirs.
    ///
    /// # Errors
    /// `Closed` after an error.
    pub fn duty(&mut self) -> Result<Duty> {
        self.expect_open()?;
        let duty = self.next();
        self.close_on_error(duty)
    }

    fn next(&mut self) -> Result<Duty> {
        // Answers wait for what merges read, so it goes first.
        let after = self.admission.chain.head().number;
        if let Some(merge) = self.oram.merges.take_open() {
            let (home, partition, height) = (merge.home, merge.partition, merge.height);
            let (spots, replaced) = (merge.spots().collect(), merge.replaced());
            let id = |home: TableHome| self.oram.table_id(home).map(|table| (home, table));
            let tables = replaced.into_iter().filter_map(id).collect();
            return Ok(Duty::Turn(TurnRecord { home, partition, height, after, tables, spots }));
        }
        if let Some(duty) = self.ready.pop_front() {
            return Ok(duty);
        }
        let answered = BatchNumber(self.admission.batch.0 - self.pending.len() as u64);
        let refusals = self.admission.refusals(answered, self.oram.live_blocks())?;
        if !refusals.is_empty() {
            return Ok(Duty::Refuse(refusals));
        }
        let piece_is_next = self.saves.is_under_way() && !self.piece_went;
        if !piece_is_next && let Some(show) = self.show()? {
            self.piece_went = false;
            return Ok(Duty::Show(show));
        }
        self.piece_went = true;
        let save = self.saves.next(&mut self.admission)?;
        Ok(save.map_or(Duty::Wait, Duty::Save))
    }

    fn expect_open(&self) -> Result<()> {
        if self.closed { Err(EngineError::Closed) } else { Ok(()) }
    }

    fn close_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        self.closed |= result.is_err();
        result
    }

    /// Whether asks wait for the state that is due: for the batches before it, and for the one
    /// before it to be sent.
    fn waits_for_state(&mut self) -> Result<bool> {
        if !self.saves.is_due(&self.oram) {
            return Ok(false);
        }
        if self.saves.is_under_way() || !self.pending.is_empty() {
            return Ok(true);
        }
        self.saves.begin(&self.oram, &mut self.admission)?;
        Ok(false)
    }

    /// Shows asks until the next turn, or until a table was read too often. A transaction is not
    /// parted: the turn waits for its last ask. None if no asks wait, or if they must wait longer.
    fn show(&mut self) -> Result<Option<Show>> {
        if self.waits_for_state()? {
            return Ok(None);
        }
        let most = (self.oram.asks_allowed() as usize).min(MOST_OF_BATCH);
        let sizes = self.admission.waiting.first(most);
        let asks = self.admission.waiting.iter().take(sizes.iter().sum());
        let asks: Vec<(Name, Effect)> =
            asks.map(|open| (open.ask.name, effect(&open.ask))).collect();
        let Some(round) = self.oram.show_round(asks, &sizes) else { return Ok(None) };
        let opens = self.admission.waiting.take(round.asks.len());
        self.admission.order(&opens)?;
        self.admission.batch.0 += 1;
        let whose: Vec<_> = opens.iter().map(|open| (open.session, open.seq)).collect();
        let plain = encode_intent(&round.intent(), &whose);
        let intent = self.admission.chain.seal(&mut self.admission.sealer, &plain)?;
        self.admission.ordered(&opens);
        let pending = Pending { batch: self.admission.batch, opens, sums: None };
        let show = show(&pending, round, intent);
        self.pending.push_back(pending);
        Ok(Some(show))
    }

    /// Takes the sum of each ask's slots. Those of earlier batches come first. Where a bit of a
    /// slot was changed, the slots are to be [looked](Self::looked) at one by one.
    ///
    /// # Errors
    /// `State` for sums of another batch.
    pub fn shown(&mut self, batch: BatchNumber, sums: Vec<Vec<u8>>) -> Result<()> {
        self.expect_open()?;
        let done = self.open_sums(batch, sums).and_then(|()| self.advance());
        self.close_on_error(done)
    }

    fn open_sums(&mut self, batch: BatchNumber, sums: Vec<Vec<u8>>) -> Result<()> {
        let wrong = EngineError::State("the server gave slots of another batch");
        let mut under_way = self.pending.iter_mut().zip(self.oram.rounds.iter());
        let next = under_way.find(|(pending, _)| pending.sums.is_none());
        let is_it = |next: &Pending| next.batch == batch && next.opens.len() == sums.len();
        let (next, round) = next.filter(|(next, _)| is_it(next)).ok_or(wrong)?;
        let sums = Sums::open(&self.oram, &next.opens, round, sums)?;
        self.ready.extend(sums.look(batch, round).map(Duty::Look));
        next.sums = Some(sums);
        Ok(())
    }

    /// Takes the slots of a [`Duty::Look`], one after the other. What a damaged one held is lost.
    ///
    /// # Errors
    /// `State` for slots of another batch.
    pub fn looked(&mut self, batch: BatchNumber, slots: Vec<u8>) -> Result<()> {
        self.expect_open()?;
        let done = self.look(batch, slots).and_then(|()| self.advance());
        self.close_on_error(done)
    }

    fn look(&mut self, batch: BatchNumber, slots: Vec<u8>) -> Result<()> {
        let wrong = || EngineError::State("the server gave slots of another batch");
        let slot_bytes = self.oram.config.slot_bytes();
        let mut under_way = self.pending.iter_mut().zip(self.oram.rounds.iter());
        let (pending, round) = under_way.find(|(it, _)| it.batch == batch).ok_or_else(wrong)?;
        let sums = pending.sums.as_mut().ok_or_else(wrong)?;
        self.damaged.extend(sums.looked(slot_bytes, &pending.opens, round, slots)?);
        Ok(())
    }

    /// Takes the slots of a merge, one after the other. If one is damaged, the merge reads once
    /// more; then what such a slot held is lost.
    ///
    /// # Errors
    /// `State` for slots of another merge.
    pub fn gathered(&mut self, home: TableHome, slots: Vec<u8>) -> Result<()> {
        self.expect_open()?;
        let done = self.gather(home, slots).and_then(|()| self.advance());
        self.close_on_error(done)
    }

    fn gather(&mut self, home: TableHome, mut slots: Vec<u8>) -> Result<()> {
        let number = self.oram.merges.at_home(home);
        let number = number.ok_or(EngineError::State("the server gave slots of another merge"))?;
        let Gathered { found, damaged } = Gathered::open(&self.oram, number, &mut slots)?;
        if !damaged.is_empty() && self.oram.merges.read_again(number) {
            return Ok(());
        }
        for TableSpot { home, slot } in damaged {
            let table = self.oram.table_id(home);
            self.damaged.extend(table.map(|table| DamagedSlot { table, slot: slot.0 }));
        }
        self.oram.gather(number, found);
        Ok(())
    }

    /// Slots that were found to be damaged since the last call.
    pub fn take_damaged(&mut self) -> Vec<DamagedSlot> {
        std::mem::take(&mut self.damaged)
    }

    /// Uses a table, now that it is stored.
    ///
    /// # Errors
    /// `State` for a table that was not made.
    pub fn built(&mut self, home: TableHome) -> Result<()> {
        self.expect_open()?;
        let done = self.switch(home);
        self.close_on_error(done)
    }

    fn switch(&mut self, home: TableHome) -> Result<()> {
        let number = self.oram.merges.at_home(home);
        let number = number.ok_or(EngineError::State("the server stored another table"))?;
        let replaced = self.oram.merges.get(number).map(|merge| merge.replaced());
        let replaced = replaced.unwrap_or_default();
        let gone = replaced.iter().filter_map(|home| self.oram.table_id(*home)).collect();
        let merged = self.oram.switch(number)?;
        let table = TableId::of(merged.attempt);
        let plain = encode_merged(&merged, self.oram.config.block_bytes)?;
        let merged = self.admission.chain.seal(&mut self.admission.sealer, &plain)?;
        self.ready.push_back(Duty::Switch(Switch { table, home, merged, replaced, gone }));
        self.advance()
    }

    /// Answers the batches that can be, and makes the tables that can be.
    fn advance(&mut self) -> Result<()> {
        while let Some(Pending { sums: Some(sums), .. }) = self.pending.front()
            && sums.are_known()
            && let Some(number) = self.oram.rounds.first().map(|round| round.number)
            && self.oram.may_serve(number)
        {
            self.answer()?;
        }
        while let Some(number) = self.oram.next_to_make() {
            let home = self.oram.merges.get(number).map(|merge| merge.home);
            let sealed = self.oram.make(number)?;
            let home = home.ok_or(EngineError::State("no such merge"))?;
            let table = self.oram.merges.get(number).and_then(|merge| merge.attempt());
            let table = table.ok_or(EngineError::State("no such table"))?;
            self.ready.push_back(Duty::Build(Build { table: TableId::of(table), home, sealed }));
        }
        Ok(())
    }

    /// Answers the first batch.
    fn answer(&mut self) -> Result<()> {
        let round = self.oram.rounds.first().cloned();
        let (Some(pending), Some(round)) = (self.pending.pop_front(), round) else { return Ok(()) };
        let Pending { batch, opens, sums } = pending;
        // All are there before any is answered.
        for found in sums.into_iter().flat_map(Sums::into_found) {
            self.oram.keep(found);
        }
        let served = self.serve_batch(&opens, &round.shown);
        let forgot = |at: usize| opens[at].ask.does == Does::Forget && served[at].answer.done;
        let (_, settle) = self.oram.settle(forgot)?;
        let plain = encode_settle(&settle, self.oram.config.block_bytes);
        let settle = self.admission.chain.seal(&mut self.admission.sealer, &plain)?;
        let notice = self.admission.seal_notice(&opens, &served)?;
        let mut answers = Vec::with_capacity(opens.len());
        for (Open { session, seq, .. }, answer) in opens.into_iter().zip(served) {
            answers.push(self.admission.seal_answer(session, seq, &answer)?);
        }
        self.ready.push_back(Duty::Tell(Tell { batch, settle, notice, answers }));
        Ok(())
    }
}

fn show(pending: &Pending, round: &Round, intent: Vec<u8>) -> Show {
    let shown = pending.opens.iter().zip(&round.shown);
    let asks = shown.map(|(open, shown)| (open.session, open.seq, shown.spots.clone()));
    let mut tables: Vec<_> = round.shown.iter().flat_map(table_ids).collect();
    tables.sort_unstable();
    tables.dedup();
    Show { batch: pending.batch, intent, asks: asks.collect(), tables }
}
