//! A server in memory, with the list of what it saw. For tests and simulation.

use super::records::{AnswerRecord, AskRecord, Build, Duty, Seq, Session, Show, Switch, Tell};
use crate::pyramid::ids::{Home, Spot};
use crate::{EngineError, Result};
use std::collections::{BTreeMap, VecDeque};

/// One record as the server sees it, without the bytes that only clients can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// An ask came, of this length.
    Ask(Session, Seq, usize),
    /// The asks of a batch, with the slots that each shows.
    Show(Vec<(Session, Seq, Vec<Spot>)>),
    /// Answers went out, of these lengths.
    Tell(Vec<(Session, Seq, usize)>),
    /// A merge reads these slots.
    Turn(Vec<Spot>),
    /// A table of this many bytes.
    Build(Home, usize),
    /// A table replaces others.
    Switch(Home, Vec<Home>),
}

/// What a server keeps.
#[derive(Default)]
pub struct MemoryServer {
    /// Tables, by their places.
    pub tables: BTreeMap<Home, Vec<u8>>,
    /// Asks that the scribe did not fetch yet.
    asks: VecDeque<AskRecord>,
    /// Answers that clients did not fetch yet.
    answers: BTreeMap<Session, VecDeque<AnswerRecord>>,
    slot_bytes: usize,
    /// All records so far.
    pub trace: Vec<Recorded>,
}

/// The server's reply to a duty.
pub enum Reply {
    /// Nothing.
    Done,
    /// The sum of each ask's slots.
    Sums(Vec<Vec<u8>>),
    /// Slots, one after the other.
    Slots(Vec<u8>),
}

impl MemoryServer {
    /// An empty one, for slots of this many bytes.
    pub fn new(slot_bytes: usize) -> Self {
        Self { slot_bytes, ..Self::default() }
    }

    /// Takes a client's ask.
    pub fn ask(&mut self, record: AskRecord) {
        let AskRecord { session, seq, ref sealed } = record;
        self.trace.push(Recorded::Ask(session, seq, sealed.len()));
        self.asks.push_back(record);
    }

    /// The asks for the scribe, in the order in which they came.
    pub fn asks(&mut self) -> Vec<AskRecord> {
        self.asks.drain(..).collect()
    }

    /// The next answer for a client.
    pub fn answer(&mut self, session: Session) -> Option<AnswerRecord> {
        self.answers.get_mut(&session)?.pop_front()
    }

    fn slot(&self, spot: Spot) -> Result<&[u8]> {
        let at = spot.slot.0 as usize * self.slot_bytes;
        let table = self.tables.get(&spot.home);
        let slot = table.and_then(|table| table.get(at..at + self.slot_bytes));
        slot.ok_or(EngineError::State("no such slot"))
    }

    fn sum(&self, spots: &[Spot]) -> Result<Vec<u8>> {
        let mut sum = vec![0; self.slot_bytes];
        for &spot in spots {
            sum.iter_mut().zip(self.slot(spot)?).for_each(|(sum, byte)| *sum ^= byte);
        }
        Ok(sum)
    }

    /// Does what the scribe wants.
    ///
    /// # Errors
    /// `State` for a slot that does not exist.
    pub fn carry_out(&mut self, duty: Duty) -> Result<Reply> {
        match duty {
            Duty::Wait => {}
            Duty::Show(Show { asks, .. }) => {
                let sums =
                    asks.iter().map(|(_, _, spots)| self.sum(spots)).collect::<Result<_>>()?;
                self.trace.push(Recorded::Show(asks));
                return Ok(Reply::Sums(sums));
            }
            Duty::Turn(turn) => {
                let mut slots = Vec::with_capacity(turn.spots.len() * self.slot_bytes);
                for &spot in &turn.spots {
                    slots.extend_from_slice(self.slot(spot)?);
                }
                self.trace.push(Recorded::Turn(turn.spots));
                return Ok(Reply::Slots(slots));
            }
            Duty::Tell(Tell { answers, .. }) => {
                let seen =
                    |answer: &AnswerRecord| (answer.session, answer.seq, answer.sealed.len());
                self.trace.push(Recorded::Tell(answers.iter().map(seen).collect()));
                for answer in answers {
                    self.answers.entry(answer.session).or_default().push_back(answer);
                }
            }
            Duty::Build(Build { home, sealed }) => {
                self.trace.push(Recorded::Build(home, sealed.len()));
                self.tables.insert(home, sealed);
            }
            Duty::Switch(Switch { home, replaced }) => {
                replaced.iter().for_each(|gone| drop(self.tables.remove(gone)));
                self.trace.push(Recorded::Switch(home, replaced));
            }
        }
        Ok(Reply::Done)
    }
}
