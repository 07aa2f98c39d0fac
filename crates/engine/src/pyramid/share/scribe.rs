//! The scribe: it puts asks in order, reads what they show, answers them, and merges.
//!
//! It is no proxy. Any client with the key can do it, and nothing of it is kept outside the server.

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
use crate::pyramid::ids::Name;
use crate::pyramid::merge::{Made, Merge};
use crate::pyramid::operation::Operation;
use crate::pyramid::oram::{PyramidOram, Unsettled};
use crate::{Action, EngineError, Result};
use oblivio_crypto::{Kind, Sealer};
use std::collections::{BTreeMap, VecDeque};

/// The most asks of a batch.
const MOST: usize = 64;

/// What the scribe waits for, or does next.
enum Phase {
    Next,
    /// The sums of what these asks show.
    Shown(Vec<Open>, Unsettled),
    /// The slots of a merge.
    Gathered(Merge),
    /// A table to be used, now that it is stored.
    Switch(Box<Made>),
    Closed,
}

/// One client that serves all.
pub struct Scribe {
    oram: PyramidOram,
    sealer: Sealer,
    waiting: Groups,
    /// The next ask of each session.
    expected: BTreeMap<Session, Seq>,
    batch: Batch,
    chain: Chain,
    /// What is to be sent before the next phase.
    ready: VecDeque<Duty>,
    phase: Phase,
}

impl Scribe {
    /// The scribe of a volume. The sealer opens asks and seals answers.
    pub fn new(oram: PyramidOram, sealer: Sealer) -> Self {
        let chain = Chain::new(oram.volume);
        Self {
            oram,
            sealer,
            chain,
            waiting: Groups::default(),
            expected: BTreeMap::new(),
            batch: Batch(0),
            ready: VecDeque::new(),
            phase: Phase::Next,
        }
    }

    /// The engine, to look at.
    pub fn oram(&self) -> &PyramidOram {
        &self.oram
    }

    /// Takes the place of a scribe that is gone. The engine is empty, and the history all that the
    /// server keeps. A batch that was shown and not answered is shown again, the same bytes.
    ///
    /// # Errors
    /// `State` for a history that does not hold together.
    pub fn take_over(oram: PyramidOram, sealer: Sealer, history: &[Stored]) -> Result<Self> {
        let mut scribe = Self::new(oram, sealer);
        let mut opens = Vec::new();
        for Stored { sealed, asks } in history {
            let plain = scribe.chain.open(&mut scribe.sealer, sealed)?;
            let told = decode(&plain, scribe.oram.config.block_bytes)?;
            if let Event::Intent(_) = &told.event {
                scribe.batch.0 += 1;
                let whose = asks.iter().map(|ask| (ask.session, ask.seq));
                if !whose.eq(told.asks) {
                    return Err(EngineError::State("a batch has other asks"));
                }
                opens.clear();
                for ask in asks {
                    let (open, _) = scribe.open_ask(ask)?;
                    scribe.count(&open)?;
                    opens.push(open);
                }
            }
            scribe.oram.replay(told.event)?;
        }
        if let Some(round) = scribe.oram.unsettled.take() {
            let intent = history.last().map(|stored| stored.sealed.clone()).unwrap_or_default();
            let show = scribe.wait_for(opens, round, intent);
            scribe.ready.push_back(Duty::Show(show));
        }
        Ok(scribe)
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
            self.phase = Phase::Closed;
            self.ready.clear();
            return Err(EngineError::Forked);
        }
        self.count(&open)?;
        self.waiting.add(open)
    }

    fn open_ask(&mut self, record: &AskRecord) -> Result<(Open, Head)> {
        let AskRecord { session, seq, sealed } = record;
        let place = place(self.oram.volume, Kind::Ask, *session, *seq);
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

    /// What to do next. Another call confirms that the last duty was done.
    ///
    /// # Errors
    /// `Closed` after an error; `Invalid` while a duty's result is missing.
    pub fn duty(&mut self) -> Result<Duty> {
        if let Some(duty) = self.ready.pop_front() {
            return Ok(duty);
        }
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Next => {}
            Phase::Switch(made) => {
                self.phase = Phase::Next;
                let (home, replaced) = (made.home(), made.replaced());
                let plain = encode_merged(&made.merged(), self.oram.config.block_bytes)?;
                let merged = self.chain.seal(&mut self.sealer, &plain)?;
                self.oram.switch(*made);
                return Ok(Duty::Switch(Switch { home, merged, replaced }));
            }
            Phase::Closed => return Err(EngineError::Closed),
            waits => {
                self.phase = waits;
                return Err(EngineError::Invalid("the server's reply is missing".into()));
            }
        }
        self.phase = Phase::Next;
        if let Some(merge) = self.oram.due() {
            let (partition, height) = (merge.partition, merge.height);
            let spots = merge.spots().collect();
            self.phase = Phase::Gathered(merge);
            return Ok(Duty::Turn(TurnRecord { partition, height, spots }));
        }
        if self.waiting.is_empty() {
            return Ok(Duty::Wait);
        }
        Ok(Duty::Show(self.show()?))
    }

    /// Shows asks until the next turn, or until a table was read too often. A transaction is not
    /// parted: the turn waits for its last ask.
    fn show(&mut self) -> Result<Show> {
        let most = (self.oram.asks_left() as usize).min(MOST);
        let sizes = self.waiting.first(most);
        let asks = self.waiting.iter().take(sizes.iter().sum());
        let asks: Vec<(Name, bool)> =
            asks.map(|open| (open.ask.name, open.ask.operation.action.creates())).collect();
        let round = self.oram.show_round(asks, &sizes);
        let opens = self.waiting.take(round.asks.len());
        self.batch.0 += 1;
        let whose: Vec<_> = opens.iter().map(|open| (open.session, open.seq)).collect();
        let intent = self.chain.seal(&mut self.sealer, &encode_intent(&round.intent(), &whose))?;
        Ok(self.wait_for(opens, round, intent))
    }

    fn wait_for(&mut self, opens: Vec<Open>, round: Unsettled, intent: Vec<u8>) -> Show {
        let shown = opens.iter().zip(&round.shown);
        let asks = shown.map(|(open, shown)| (open.session, open.seq, shown.spots.clone()));
        let show = Show { batch: self.batch, intent, asks: asks.collect() };
        self.phase = Phase::Shown(opens, round);
        show
    }

    /// Takes the sum of each ask's slots.
    ///
    /// # Errors
    /// `TamperedTable` if any bit of any slot was changed; then no answer is given.
    pub fn shown(&mut self, sums: Vec<Vec<u8>>) -> Result<()> {
        let Phase::Shown(opens, round) = std::mem::replace(&mut self.phase, Phase::Closed) else {
            return Err(EngineError::Invalid("nothing was shown".into()));
        };
        if sums.len() != opens.len() {
            return Err(EngineError::State("the server gave another number of slots"));
        }
        // All are checked before any is answered.
        for ((open, shown), mut sum) in opens.iter().zip(&round.shown).zip(sums) {
            let found = self.oram.open_sum(open.ask.name, shown, &mut sum)?;
            self.oram.keep(found);
        }
        let block_bytes = self.oram.config.block_bytes;
        let mut served = Vec::with_capacity(opens.len());
        let mut rest = &opens[..];
        while let Some(first) = rest.first() {
            let (group, after) = rest.split_at((first.ask.part.of as usize).min(rest.len()));
            served.append(&mut self.serve(group));
            rest = after;
        }
        let plain = encode_settle(&self.oram.settled(&round.asks), block_bytes);
        let settle = self.chain.seal(&mut self.sealer, &plain)?;
        let mut answers = Vec::with_capacity(opens.len());
        for (Open { session, seq, .. }, answer) in opens.into_iter().zip(served) {
            let plain = encode_answer(self.chain.head(), &answer, block_bytes);
            let place = place(self.oram.volume, Kind::Answer, session, seq);
            let sealed = self.sealer.seal_vec(&place, &plain)?;
            answers.push(AnswerRecord { session, seq, sealed });
        }
        self.ready.push_back(Duty::Tell(Tell { batch: self.batch, settle, answers }));
        self.phase = Phase::Next;
        Ok(())
    }

    /// Carries out a transaction. All comparisons see the state before it.
    fn serve(&mut self, group: &[Open]) -> Vec<Answer> {
        let done = group.iter().all(|Open { ask, .. }| {
            let content = self.oram.stash.content(ask.name);
            match &ask.compare {
                Compare::Always => true,
                Compare::Absent => content.is_none(),
                Compare::Exists => content.is_some(),
                Compare::Bytes(at, bytes) => {
                    content.is_some_and(|content| content[*at..].starts_with(bytes))
                }
            }
        });
        let serve = |Open { ask, .. }: &Open| {
            let content = if done {
                self.oram.serve_operation(ask.name, &ask.operation)
            } else {
                let read = Operation { action: Action::Read, ..ask.operation };
                Some(ask)
                    .filter(|_| ask.operation.and_read)
                    .and_then(|ask| self.oram.serve_operation(ask.name, &read))
            };
            Answer { done, content }
        };
        group.iter().map(serve).collect()
    }

    /// Takes the slots of a merge, one after the other.
    ///
    /// # Errors
    /// `TamperedTable` if a slot is not what was sealed there.
    pub fn gathered(&mut self, mut slots: Vec<u8>) -> Result<()> {
        let Phase::Gathered(mut merge) = std::mem::replace(&mut self.phase, Phase::Closed) else {
            return Err(EngineError::Invalid("no merge is under way".into()));
        };
        if slots.len() != merge.spots().count() * self.oram.config.slot_bytes() {
            return Err(EngineError::State("the server gave another number of slots"));
        }
        self.oram.gather(&mut merge, &mut slots)?;
        let mut made = self.oram.make(merge)?;
        let sealed = std::mem::take(&mut made.sealed);
        self.ready.push_back(Duty::Build(Build { home: made.home(), sealed }));
        self.phase = Phase::Switch(Box::new(made));
        Ok(())
    }
}
