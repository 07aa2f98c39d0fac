//! The scribe: it puts asks in order, reads what they show, answers them, and merges.
//!
//! It is no proxy. Any client with the key can do it, and nothing of it is kept outside the server.
//! Batches are shown before earlier ones are answered, and merges go on beside them. The answers of
//! a batch wait for those of all earlier ones.

use super::ask::{Answer, Ask, Compare, encode_answer, place};
use super::chain::Chain;
use super::groups::{Groups, Open};
use super::head::Head;
use super::history::{decode, encode_intent, encode_merged, encode_settle};
use super::records::{
    AnswerRecord, AskRecord, Batch, Build, Duty, Seq, Session, Show, Stored, Switch, Tell,
    TurnRecord,
};
use crate::pyramid::history::Event;
use crate::pyramid::ids::{Home, Name};
use crate::pyramid::operation::{Effect, Operation};
use crate::pyramid::oram::PyramidOram;
use crate::pyramid::shown::{Round, Shown};
use crate::{Action, EngineError, Result};
use oblivio_crypto::{Kind, Sealer};
use std::collections::{BTreeMap, VecDeque};

/// The most asks of a batch.
const MOST: usize = 64;

/// A batch that was shown and not answered.
struct Pending {
    batch: Batch,
    opens: Vec<Open>,
    /// The sum of what each of its asks shows, once it is there.
    sums: Option<Vec<Vec<u8>>>,
}

/// One client that serves all.
pub struct Scribe {
    oram: PyramidOram,
    sealer: Sealer,
    waiting: Groups,
    /// The next ask of each session.
    expected: BTreeMap<Session, Seq>,
    /// The newest batch.
    batch: Batch,
    chain: Chain,
    /// In their order: they are the engine's rounds under way.
    pending: VecDeque<Pending>,
    /// What is to be sent next.
    ready: VecDeque<Duty>,
    closed: bool,
}

impl Scribe {
    /// The scribe of a volume. The sealer opens asks and seals answers.
    pub fn new(oram: PyramidOram, sealer: Sealer) -> Self {
        let chain = Chain::new(oram.keys.volume);
        Self {
            oram,
            sealer,
            chain,
            waiting: Groups::default(),
            expected: BTreeMap::new(),
            batch: Batch(0),
            pending: VecDeque::new(),
            ready: VecDeque::new(),
            closed: false,
        }
    }

    /// The engine, to look at.
    pub fn oram(&self) -> &PyramidOram {
        &self.oram
    }

    /// Takes the place of a scribe that is gone. The engine is empty, and the history all that the
    /// server keeps. Open merges are read again, and batches that were shown and not answered are
    /// shown again, the same bytes in the same order.
    ///
    /// # Errors
    /// `State` for a history that does not hold together.
    pub fn take_over(oram: PyramidOram, sealer: Sealer, history: &[Stored]) -> Result<Self> {
        let mut scribe = Self::new(oram, sealer);
        let mut intents = VecDeque::new();
        for Stored { sealed, asks } in history {
            let plain = scribe.chain.open(&mut scribe.sealer, sealed)?;
            let told = decode(&plain, scribe.oram.config.block_bytes)?;
            match &told.event {
                Event::Intent(_) => {
                    let whose = asks.iter().map(|ask| (ask.session, ask.seq));
                    if !whose.eq(told.asks) {
                        return Err(EngineError::State("a batch has other asks"));
                    }
                    scribe.restore_batch(asks)?;
                    intents.push_back(sealed.clone());
                }
                Event::Settle(_) => {
                    scribe.pending.pop_front();
                    intents.pop_front();
                }
                Event::Merged(_) => {}
            }
            scribe.oram.replay(told.event)?;
        }
        let again = scribe.pending.iter().zip(scribe.oram.rounds.iter()).zip(intents);
        let shows =
            again.map(|((pending, round), intent)| Duty::Show(show(pending, round, intent)));
        scribe.ready = shows.collect();
        Ok(scribe)
    }

    /// A batch of an earlier scribe.
    fn restore_batch(&mut self, asks: &[AskRecord]) -> Result<()> {
        self.batch.0 += 1;
        let mut opens = Vec::with_capacity(asks.len());
        for ask in asks {
            let (open, _) = self.open_ask(ask)?;
            self.count(&open)?;
            opens.push(open);
        }
        self.pending.push_back(Pending { batch: self.batch, opens, sums: None });
        Ok(())
    }

    /// Takes an ask. One that it had before is not carried out again.
    ///
    /// # Errors
    /// `State` for an ask out of order, or that does not open: then it is not taken. `Forked` if
    /// its client knows another history; then this scribe does nothing more.
    pub fn take(&mut self, record: &AskRecord) -> Result<()> {
        let expected = self.expected.get(&record.session).copied().unwrap_or_default();
        if record.seq < expected {
            return Ok(());
        }
        let (open, head) = self.open_ask(record)?;
        // Before its number: an old history has lost asks too.
        if !self.chain.contains(head) {
            self.closed = true;
            return Err(EngineError::Forked);
        }
        self.count(&open)?;
        self.waiting.add(open)
    }

    fn open_ask(&mut self, record: &AskRecord) -> Result<(Open, Head)> {
        let AskRecord { session, seq, sealed } = record;
        let place = place(self.oram.keys.volume, Kind::Ask, *session, *seq);
        let plain = self.sealer.open_vec(&place, sealed);
        let plain = plain.map_err(|_| EngineError::State("an ask does not open"))?;
        let ask = Ask::decode(&plain);
        let (ask, head) = ask.ok_or(EngineError::State("an ask does not parse"))?;
        Ok((Open { session: *session, seq: *seq, ask }, head))
    }

    /// Counts an ask, which must be the next of its session.
    fn count(&mut self, open: &Open) -> Result<()> {
        let expected = self.expected.entry(open.session).or_default();
        if open.seq != *expected {
            return Err(EngineError::State("an ask before this one is missing"));
        }
        expected.0 += 1;
        Ok(())
    }

    /// What to do next. Replies may come later: of merges in any order, of batches in theirs.
    ///
    /// # Errors
    /// `Closed` after an error.
    pub fn duty(&mut self) -> Result<Duty> {
        self.expect_open()?;
        // Answers wait for what merges read, so it goes first.
        let after = self.chain.head().number;
        if let Some(merge) = self.oram.merges.take_open() {
            let (home, partition, height) = (merge.home, merge.partition, merge.height);
            let spots = merge.spots().collect();
            return Ok(Duty::Turn(TurnRecord { home, partition, height, after, spots }));
        }
        if let Some(duty) = self.ready.pop_front() {
            return Ok(duty);
        }
        let shown = self.show();
        let shown = self.close_on_error(shown)?;
        Ok(shown.map_or(Duty::Wait, Duty::Show))
    }

    fn expect_open(&self) -> Result<()> {
        if self.closed { Err(EngineError::Closed) } else { Ok(()) }
    }

    fn close_on_error<T>(&mut self, result: Result<T>) -> Result<T> {
        self.closed |= result.is_err();
        result
    }

    /// Shows asks until the next turn, or until a table was read too often. A transaction is not
    /// parted: the turn waits for its last ask. None if no asks wait, or if they must wait longer.
    fn show(&mut self) -> Result<Option<Show>> {
        let most = (self.oram.asks_allowed() as usize).min(MOST);
        let sizes = self.waiting.first(most);
        let asks = self.waiting.iter().take(sizes.iter().sum());
        let asks: Vec<(Name, Effect)> =
            asks.map(|open| (open.ask.name, open.ask.effect())).collect();
        let Some(round) = self.oram.show_round(asks, &sizes) else { return Ok(None) };
        let opens = self.waiting.take(round.asks.len());
        self.batch.0 += 1;
        let whose: Vec<_> = opens.iter().map(|open| (open.session, open.seq)).collect();
        let intent = self.chain.seal(&mut self.sealer, &encode_intent(&round.intent(), &whose))?;
        let pending = Pending { batch: self.batch, opens, sums: None };
        let show = show(&pending, round, intent);
        self.pending.push_back(pending);
        Ok(Some(show))
    }

    /// Takes the sum of each ask's slots. Those of earlier batches come first.
    ///
    /// # Errors
    /// `TamperedTable` if any bit of any slot was changed; then no answer is given.
    pub fn shown(&mut self, batch: Batch, sums: Vec<Vec<u8>>) -> Result<()> {
        self.expect_open()?;
        let next = self.pending.iter_mut().find(|pending| pending.sums.is_none());
        let next = next.filter(|next| next.batch == batch && next.opens.len() == sums.len());
        let done = match next {
            Some(next) => {
                next.sums = Some(sums);
                self.advance()
            }
            None => Err(EngineError::State("the server gave slots of another batch")),
        };
        self.close_on_error(done)
    }

    /// Takes the slots of a merge, one after the other.
    ///
    /// # Errors
    /// `TamperedTable` if a slot is not what was sealed there.
    pub fn gathered(&mut self, home: Home, mut slots: Vec<u8>) -> Result<()> {
        self.expect_open()?;
        let number = self.oram.merges.at_home(home);
        let number = number.ok_or(EngineError::State("the server gave slots of another merge"));
        let done = number.and_then(|number| self.oram.gather(number, &mut slots));
        let done = done.and_then(|()| self.advance());
        self.close_on_error(done)
    }

    /// Uses a table, now that it is stored.
    ///
    /// # Errors
    /// `State` for a table that was not made.
    pub fn built(&mut self, home: Home) -> Result<()> {
        self.expect_open()?;
        let done = self.switch(home);
        self.close_on_error(done)
    }

    fn switch(&mut self, home: Home) -> Result<()> {
        let number = self.oram.merges.at_home(home);
        let number = number.ok_or(EngineError::State("the server stored another table"))?;
        let replaced = self.oram.merges.get(number).map(|merge| merge.replaced());
        let merged = self.oram.switch(number)?;
        let plain = encode_merged(&merged, self.oram.config.block_bytes)?;
        let merged = self.chain.seal(&mut self.sealer, &plain)?;
        let replaced = replaced.unwrap_or_default();
        self.ready.push_back(Duty::Switch(Switch { home, merged, replaced }));
        self.advance()
    }

    /// Answers the batches that can be, and makes the tables that can be.
    fn advance(&mut self) -> Result<()> {
        while let Some(Pending { sums: Some(_), .. }) = self.pending.front()
            && let Some(number) = self.oram.rounds.first().map(|round| round.number)
            && self.oram.may_serve(number)
        {
            self.answer()?;
        }
        while let Some(number) = self.oram.next_to_make() {
            let home = self.oram.merges.get(number).map(|merge| merge.home);
            let sealed = self.oram.make(number)?;
            let home = home.ok_or(EngineError::State("no such merge"))?;
            self.ready.push_back(Duty::Build(Build { home, sealed }));
        }
        Ok(())
    }

    /// Answers the first batch.
    fn answer(&mut self) -> Result<()> {
        let round = self.oram.rounds.first().cloned();
        let (Some(pending), Some(round)) = (self.pending.pop_front(), round) else { return Ok(()) };
        let Pending { batch, opens, sums } = pending;
        // All are checked before any is answered.
        let sums = sums.unwrap_or_default();
        for ((open, shown), mut sum) in opens.iter().zip(&round.shown).zip(sums) {
            self.oram.open_sum(open.ask.name, shown, &mut sum)?;
        }
        let mut served = Vec::with_capacity(opens.len());
        let (mut opens_left, mut shown_left) = (&opens[..], &round.shown[..]);
        while let Some(first) = opens_left.first() {
            let count = (first.ask.part.of as usize).min(opens_left.len());
            let (group, rest) = opens_left.split_at(count);
            let (shown, shown_rest) = shown_left.split_at(count);
            served.append(&mut self.serve(group, shown));
            (opens_left, shown_left) = (rest, shown_rest);
        }
        let forgot = |at: usize| opens[at].ask.forgets && served[at].done;
        let (_, settle) = self.oram.settle(forgot)?;
        let block_bytes = self.oram.config.block_bytes;
        let plain = encode_settle(&settle, block_bytes);
        let settle = self.chain.seal(&mut self.sealer, &plain)?;
        let mut answers = Vec::with_capacity(opens.len());
        for (Open { session, seq, .. }, answer) in opens.into_iter().zip(served) {
            let plain = encode_answer(self.chain.head(), &answer, block_bytes);
            let place = place(self.oram.keys.volume, Kind::Answer, session, seq);
            let sealed = self.sealer.seal_vec(&place, &plain)?;
            answers.push(AnswerRecord { session, seq, sealed });
        }
        self.ready.push_back(Duty::Tell(Tell { batch, settle, answers }));
        Ok(())
    }

    /// Carries out a transaction. All comparisons see the state before it.
    fn serve(&mut self, group: &[Open], shown: &[Shown]) -> Vec<Answer> {
        for (Open { ask, .. }, shown) in group.iter().zip(shown) {
            self.oram.age(ask.name, shown);
        }
        let forgets = group.iter().filter(|open| open.ask.forgets).count();
        let done = self.oram.may_forget(forgets)
            && group
                .iter()
                .all(|Open { ask, .. }| holds(&ask.compare, self.oram.stash.content(ask.name)));
        let serve = |(Open { ask, .. }, shown): (&Open, &Shown)| {
            let content = if done && ask.forgets {
                self.oram.serve_forget(ask.name, shown);
                None
            } else if done {
                self.oram.serve_operation(ask.name, shown, &ask.operation)
            } else {
                let read = Operation { action: Action::Read, ..ask.operation };
                Some(ask)
                    .filter(|_| ask.operation.and_read)
                    .and_then(|ask| self.oram.serve_operation(ask.name, shown, &read))
            };
            Answer { done, content }
        };
        group.iter().zip(shown).map(serve).collect()
    }
}

/// Whether a comparison holds of a block.
fn holds(compare: &Compare, content: Option<&Vec<u8>>) -> bool {
    match compare {
        Compare::Always => true,
        Compare::Absent => content.is_none(),
        Compare::Exists => content.is_some(),
        Compare::Bytes(at, bytes) => {
            content.is_some_and(|content| content[*at..].starts_with(bytes))
        }
    }
}

fn show(pending: &Pending, round: &Round, intent: Vec<u8>) -> Show {
    let shown = pending.opens.iter().zip(&round.shown);
    let asks = shown.map(|(open, shown)| (open.session, open.seq, shown.spots.clone()));
    Show { batch: pending.batch, intent, asks: asks.collect() }
}
