//! A server in memory, with the list of what it saw. For tests and simulation.

use super::records::{
    AnswerRecord, AskRecord, BatchNumber, Build, Duty, Save, Seq, Session, Show, SlotLook,
    StoredRecord, Switch, Tell, Term, TurnRecord,
};
use super::scribe::Scribe;
use crate::pyramid::ids::{Height, Partition, TableHome, TableSpot};
use crate::{EngineError, Result};
use std::collections::{BTreeMap, VecDeque};

/// One record as the server sees it, without the bytes that only clients can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// An ask came, of this length.
    Ask(Session, Seq, usize),
    /// The asks of a batch, with the slots that each shows.
    Show(Vec<(Session, Seq, Vec<TableSpot>)>),
    /// Answers went out, of these lengths.
    Tell(usize, Vec<(Session, Seq, usize)>),
    /// A merge of this partition, to this height and into this place, reads these slots.
    Turn(TableHome, Partition, Height, Vec<TableSpot>),
    /// It has them.
    Slots(TableHome),
    /// These slots, which a batch showed, are read one by one.
    Look(BatchNumber, Vec<TableSpot>),
    /// A table of this many bytes.
    Build(TableHome, usize),
    /// A table replaces others.
    Switch(TableHome, Vec<TableHome>),
    /// Answers to asks that stand in no batch, of these lengths.
    Refuse(Vec<(Session, Seq, usize)>),
    /// A part of this many bytes of the scribe's state, after the record of this number.
    Save(u64, u32, usize),
}

/// The state of a scribe, in its sealed pieces. Number 0 is that of a new volume, without any.
#[derive(Clone, Debug, Default)]
pub struct SavedState {
    /// The number of the newest record before it.
    pub number: u64,
    /// Its pieces.
    pub pieces: Vec<Vec<u8>>,
}

/// What a server keeps.
#[derive(Default)]
pub struct MemoryServer {
    /// Tables, by their places.
    pub tables: BTreeMap<TableHome, Vec<u8>>,
    /// Asks that are in no batch yet.
    asks: VecDeque<AskRecord>,
    /// How many of them the scribe has.
    fetched: usize,
    /// The history: the records of batches and merges that are not forgotten.
    pub history: Vec<StoredRecord>,
    /// How many records before those were forgotten.
    pub forgotten: u64,
    /// The newest whole state of a scribe.
    pub saved: SavedState,
    saving: SavedState,
    /// The newest scribe.
    term: Term,
    /// Answers that clients did not fetch yet.
    answers: BTreeMap<Session, VecDeque<AnswerRecord>>,
    /// All answers whose records are not forgotten, each with its record's number.
    kept: BTreeMap<(Session, Seq), (u64, AnswerRecord)>,
    slot_bytes: usize,
    /// Batches that were shown and not answered, in their order.
    untold: VecDeque<BatchNumber>,
    /// Tables that are gone once this batch is answered.
    leaving: VecDeque<(BatchNumber, Vec<TableHome>)>,
    replies: Replies,
    /// All records so far.
    pub trace: Vec<Recorded>,
}

/// The server's reply to a duty. Give it to the scribe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DutyReply {
    /// For [`super::Scribe::shown`]: the sum of each ask's slots.
    Sums(BatchNumber, Vec<Vec<u8>>),
    /// For [`super::Scribe::gathered`]: slots, one after the other.
    Slots(TableHome, Vec<u8>),
    /// For [`super::Scribe::looked`]: slots, one after the other.
    Looked(BatchNumber, Vec<u8>),
    /// For [`super::Scribe::built`].
    Built(TableHome),
}

/// Replies that did not leave yet.
#[derive(Default)]
struct Replies {
    /// Those of batches leave in their order.
    sums: VecDeque<DutyReply>,
    /// The others in any.
    others: VecDeque<DutyReply>,
}

impl DutyReply {
    /// Gives it to the scribe.
    ///
    /// # Errors
    /// Those of the scribe.
    pub fn give(self, scribe: &mut Scribe) -> Result<()> {
        match self {
            Self::Sums(batch, sums) => scribe.shown(batch, sums),
            Self::Slots(home, slots) => scribe.gathered(home, slots),
            Self::Looked(batch, slots) => scribe.looked(batch, slots),
            Self::Built(home) => scribe.built(home),
        }
    }
}

impl MemoryServer {
    /// An empty one, for slots of this many bytes.
    pub fn new(slot_bytes: usize) -> Self {
        Self { slot_bytes, ..Self::default() }
    }

    /// Takes a client's ask. One that was answered is answered again.
    pub fn ask(&mut self, record: AskRecord) {
        let AskRecord { session, seq, ref sealed } = record;
        self.trace.push(Recorded::Ask(session, seq, sealed.len()));
        match self.kept.get(&(session, seq)) {
            Some((_, answer)) => self.deliver(answer.clone()),
            None => self.asks.push_back(record),
        }
    }

    fn deliver(&mut self, answer: AnswerRecord) {
        self.answers.entry(answer.session).or_default().push_back(answer);
    }

    /// The number of the newest record.
    pub fn newest(&self) -> u64 {
        self.forgotten + self.history.len() as u64
    }

    /// Another client becomes the scribe.
    pub fn claim(&mut self) -> Term {
        self.term.0 += 1;
        self.fetched = 0;
        self.replies = Replies::default();
        self.term
    }

    /// The asks that the scribe does not have yet, in the order in which they came.
    pub fn asks(&mut self) -> Vec<AskRecord> {
        let new = self.asks.iter().skip(self.fetched).cloned().collect();
        self.fetched = self.asks.len();
        new
    }

    /// The next answer for a client.
    pub fn answer(&mut self, session: Session) -> Option<AnswerRecord> {
        self.answers.get_mut(&session)?.pop_front()
    }

    fn slot(&self, spot: TableSpot) -> Result<&[u8]> {
        let at = spot.slot.0 as usize * self.slot_bytes;
        let table = self.tables.get(&spot.home);
        let slot = table.and_then(|table| table.get(at..at + self.slot_bytes));
        slot.ok_or(EngineError::State("no such slot"))
    }

    fn slots(&self, spots: &[TableSpot]) -> Result<Vec<u8>> {
        let mut slots = Vec::with_capacity(spots.len() * self.slot_bytes);
        for &spot in spots {
            slots.extend_from_slice(self.slot(spot)?);
        }
        Ok(slots)
    }

    fn sum(&self, spots: &[TableSpot]) -> Result<Vec<u8>> {
        let mut sum = vec![0; self.slot_bytes];
        for &spot in spots {
            sum.iter_mut().zip(self.slot(spot)?).for_each(|(sum, byte)| *sum ^= byte);
        }
        Ok(sum)
    }

    /// How many replies wait.
    pub fn waiting(&self) -> usize {
        usize::from(!self.replies.sums.is_empty()) + self.replies.others.len()
    }

    /// Lets one of the replies that wait leave, the oldest for number 0. The batches' leave in
    /// their order.
    pub fn reply(&mut self, number: usize) -> Option<DutyReply> {
        let Replies { sums, others } = &mut self.replies;
        let reply = match number.checked_sub(others.len()) {
            Some(_) => sums.pop_front(),
            None => others.remove(number),
        }?;
        if let DutyReply::Slots(home, _) = &reply {
            self.trace.push(Recorded::Slots(*home));
        }
        Some(reply)
    }

    /// Stores the record of a batch with its asks, unless it is shown again.
    fn store_show(&mut self, show: &Show) {
        if self.history.iter().any(|stored| stored.sealed == show.intent) {
            return;
        }
        self.untold.push_back(show.batch);
        let mut asks = Vec::with_capacity(show.asks.len());
        for (session, seq, _) in &show.asks {
            let is_it = |ask: &AskRecord| (ask.session, ask.seq) == (*session, *seq);
            if let Some(at) = self.asks.iter().position(is_it) {
                asks.extend(self.asks.remove(at));
                self.fetched -= usize::from(at < self.fetched);
            }
        }
        self.history.push(StoredRecord { sealed: show.intent.clone(), asks });
    }

    fn store(&mut self, sealed: Vec<u8>) {
        self.history.push(StoredRecord { sealed, asks: Vec::new() });
    }

    /// Stores a piece of a state. With the last one, the state takes the place of the one before
    /// it, and of old records.
    fn save(&mut self, save: Save) {
        let Save { number, piece, of, forget, sealed } = save;
        self.trace.push(Recorded::Save(number, piece, sealed.len()));
        if piece == 0 {
            self.saving = SavedState { number, pieces: Vec::new() };
        }
        self.saving.pieces.push(sealed);
        if piece + 1 == of {
            self.saved = std::mem::take(&mut self.saving);
            let gone = forget.saturating_sub(self.forgotten) as usize;
            self.history.drain(..gone);
            self.forgotten += gone as u64;
            self.kept.retain(|_, (record, _)| *record > forget);
        }
    }

    /// Delivers answers to asks that stand in no batch. They are not kept.
    fn refuse(&mut self, answers: Vec<AnswerRecord>) {
        for AnswerRecord { session, seq, .. } in &answers {
            let is_it = |ask: &AskRecord| (ask.session, ask.seq) == (*session, *seq);
            while let Some(at) = self.asks.iter().position(is_it) {
                self.asks.remove(at);
                self.fetched -= usize::from(at < self.fetched);
            }
        }
        self.trace.push(Recorded::Refuse(lengths(&answers)));
        answers.into_iter().for_each(|answer| self.deliver(answer));
    }

    /// A batch is answered: the tables that only it showed are gone.
    fn store_tell(&mut self, batch: BatchNumber) {
        self.untold.retain(|&untold| untold > batch);
        while self.leaving.front().is_some_and(|(until, _)| *until <= batch)
            && let Some((_, homes)) = self.leaving.pop_front()
        {
            homes.iter().for_each(|gone| drop(self.tables.remove(gone)));
        }
    }

    /// Does what the scribe of this term wants. The reply waits for [`Self::reply`].
    ///
    /// # Errors
    /// `State` for an older term, and for a slot that does not exist.
    pub fn carry_out(&mut self, term: Term, duty: Duty) -> Result<()> {
        if term != self.term {
            return Err(EngineError::State("another client is the scribe"));
        }
        match duty {
            Duty::Wait => {}
            Duty::Show(show) => {
                self.store_show(&show);
                let asks = show.asks;
                let sums =
                    asks.iter().map(|(_, _, spots)| self.sum(spots)).collect::<Result<_>>()?;
                self.trace.push(Recorded::Show(asks));
                self.replies.sums.push_back(DutyReply::Sums(show.batch, sums));
            }
            Duty::Turn(turn) => {
                let slots = self.slots(&turn.spots)?;
                let TurnRecord { home, partition, height, spots, .. } = turn;
                self.trace.push(Recorded::Turn(home, partition, height, spots));
                self.replies.others.push_back(DutyReply::Slots(home, slots));
            }
            Duty::Look(SlotLook { batch, spots, .. }) => {
                let slots = self.slots(&spots)?;
                self.trace.push(Recorded::Look(batch, spots));
                self.replies.others.push_back(DutyReply::Looked(batch, slots));
            }
            Duty::Tell(Tell { batch, settle, notice, answers }) => {
                self.store(settle);
                self.store_tell(batch);
                self.trace.push(Recorded::Tell(notice.len(), lengths(&answers)));
                let record = self.newest();
                for answer in answers {
                    self.kept.insert((answer.session, answer.seq), (record, answer.clone()));
                    self.deliver(answer);
                }
            }
            Duty::Refuse(answers) => self.refuse(answers),
            Duty::Save(save) => self.save(save),
            Duty::Build(Build { home, sealed, .. }) => {
                self.trace.push(Recorded::Build(home, sealed.len()));
                self.tables.insert(home, sealed);
                self.replies.others.push_back(DutyReply::Built(home));
            }
            Duty::Switch(Switch { home, merged, replaced, .. }) => {
                self.store(merged);
                self.trace.push(Recorded::Switch(home, replaced.clone()));
                match self.untold.back() {
                    Some(&batch) => self.leaving.push_back((batch, replaced)),
                    None => replaced.iter().for_each(|gone| drop(self.tables.remove(gone))),
                }
            }
        }
        Ok(())
    }
}

fn lengths(answers: &[AnswerRecord]) -> Vec<(Session, Seq, usize)> {
    answers.iter().map(|answer| (answer.session, answer.seq, answer.sealed.len())).collect()
}
