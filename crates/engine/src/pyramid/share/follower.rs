//! A client that is not the scribe: it seals asks, and opens the answers.

use super::answer::{AskRefusal, Outcome};
use super::ask::{TransactionPart, encode, place};
use super::head::Head;
use super::records::{AnswerRecord, AskRecord, Seq, Session};
use crate::{EngineError, Result};
use oblivio_crypto::{Kind, Sealer, Tag, VolumeId};
use oblivio_privatefs::{Ask, MOST_ASKS};
use std::collections::VecDeque;

/// One session of a client.
pub struct Follower {
    session: Session,
    volume: VolumeId,
    block_bytes: usize,
    sealer: Sealer,
    /// The number of the next ask.
    next: Seq,
    /// The asks without an answer: they come in order.
    open: VecDeque<AskRecord>,
    /// The newest head that it knows. A client must keep it from session to session.
    head: Head,
    /// That of this session's last answer; none if an answer was gone.
    answered: Option<Tag>,
    over: Option<AskRefusal>,
}

impl Follower {
    /// A new session. Its number must be random.
    pub fn new(session: Session, volume: VolumeId, block_bytes: usize, sealer: Sealer) -> Self {
        let (next, open, head) = (Seq(0), VecDeque::new(), Head::default());
        let (answered, over) = (Some(Tag::default()), None);
        Self { session, volume, block_bytes, sealer, next, open, head, answered, over }
    }

    /// With the head that an earlier session of this client knew. A client that knows none takes
    /// the newest one that the server shows: then its first ask is known to be recent.
    #[must_use]
    pub fn knowing(mut self, head: Head) -> Self {
        self.head = head;
        self
    }

    /// Its session.
    pub fn session(&self) -> Session {
        self.session
    }

    /// The newest head that it knows.
    pub fn head(&self) -> Head {
        self.head
    }

    /// The asks without an answer, in order. After a lost line, send them again as they are.
    pub fn open_asks(&self) -> impl Iterator<Item = &AskRecord> {
        self.open.iter()
    }

    /// Why its session is over, if it is. Its client goes on with a new one.
    pub fn over(&self) -> Option<AskRefusal> {
        self.over
    }

    /// Seals the asks of a transaction: they are carried out together, or not at all.
    ///
    /// # Errors
    /// `Invalid` for none or more than [`MOST_ASKS`]; otherwise as [`Self::ask`].
    pub fn transaction(&mut self, asks: &[Ask]) -> Result<Vec<AskRecord>> {
        if asks.is_empty() || asks.len() > MOST_ASKS {
            return Err(EngineError::Invalid("a transaction has one to eight asks".into()));
        }
        let part = |index| TransactionPart { index, of: asks.len() as u32 };
        // All or none: a transaction that misses a part would hold up its session.
        for (index, ask) in (0..).zip(asks) {
            encode(ask, part(index), self.head, self.block_bytes)?;
        }
        (0..).zip(asks).map(|(index, ask)| self.ask_part(ask, part(index))).collect()
    }

    /// Seals an ask. To ask again, send the same record.
    ///
    /// # Errors
    /// `Invalid` for an ask that does not fit; `Closed` once the session is over; those of the
    /// sealer.
    pub fn ask(&mut self, ask: &Ask) -> Result<AskRecord> {
        self.ask_part(ask, TransactionPart::ALONE)
    }

    fn ask_part(&mut self, ask: &Ask, part: TransactionPart) -> Result<AskRecord> {
        if self.over.is_some() {
            return Err(EngineError::Closed);
        }
        let plain = encode(ask, part, self.head, self.block_bytes)?;
        let (session, seq) = (self.session, self.next);
        let place = place(self.volume, Kind::Ask, session, seq);
        let sealed = self.sealer.seal_vec(&place, &plain)?;
        self.next.0 += 1;
        let record = AskRecord { session, seq, sealed };
        self.open.push_back(record.clone());
        Ok(record)
    }

    /// Opens the next answer; none for one that it had before.
    ///
    /// # Errors
    /// `State` for an answer of another session, out of order, or that does not open; `Forked` if
    /// it is of another history than the answers before it, or says that its ask was.
    pub fn answer(&mut self, record: &AnswerRecord) -> Result<Option<(Seq, Outcome)>> {
        let AnswerRecord { session, seq, .. } = record;
        let expected = self.open.front().map_or(self.next, |ask| ask.seq);
        if *session == self.session && *seq < expected {
            return Ok(None);
        }
        if *session != self.session || *seq != expected || self.open.is_empty() {
            return Err(EngineError::State("an answer to something that was not asked"));
        }
        let (outcome, head, before) = self.opened(record)?;
        let same = head.number > self.head.number || head == self.head;
        match outcome.refusal {
            // The scribe does not know the head that the ask named.
            Some(AskRefusal::Forked) => return Err(EngineError::Forked),
            // It was sealed after answers that are yet to come.
            Some(AskRefusal::Gone) => self.answered = None,
            // The one before it named the head that this one names as such.
            None | Some(AskRefusal::Full | AskRefusal::Lost) => {
                let follows = self.answered.is_none_or(|answered| answered == before);
                if !same || !follows {
                    return Err(EngineError::Forked);
                }
                (self.head, self.answered) = (head, Some(head.tag));
            }
            // It stands in no batch. Its client goes on with what it knows, as far as it can.
            Some(refusal) => {
                if !same {
                    return Err(EngineError::Forked);
                }
                if refusal == AskRefusal::Old {
                    self.head = head;
                }
                self.over = self.over.or(Some(refusal));
            }
        }
        self.open.pop_front();
        Ok(Some((*seq, outcome)))
    }

    /// What an answer to an open ask says, before its record is durable: for the client that is
    /// the scribe and made it. The batch is durable, so a later scribe gives the same answer. It
    /// must come once more, to [`Self::answer`]: until then its head is not known to be durable.
    ///
    /// # Errors
    /// `State` for an answer to something else, or that does not open.
    pub fn answer_early(&mut self, record: &AnswerRecord) -> Result<Outcome> {
        let is_open = |ask: &AskRecord| (ask.session, ask.seq) == (record.session, record.seq);
        if !self.open.iter().any(is_open) {
            return Err(EngineError::State("an answer to something that was not asked"));
        }
        Ok(self.opened(record)?.0)
    }

    fn opened(&mut self, record: &AnswerRecord) -> Result<(Outcome, Head, Tag)> {
        let AnswerRecord { session, seq, sealed } = record;
        let place = place(self.volume, Kind::Answer, *session, *seq);
        let plain = self.sealer.open_vec(&place, sealed);
        let plain = plain.map_err(|_| EngineError::State("an answer does not open"))?;
        Outcome::decode(&plain).ok_or(EngineError::State("an answer does not parse"))
    }
}
