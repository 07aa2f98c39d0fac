//! A client that is not the scribe: it seals asks, and opens the answers.

use super::ask::{Ask, decode_answer, place};
use super::head::Head;
use super::records::{AnswerRecord, AskRecord, Seq, Session};
use crate::{BlockAnswer, EngineError, Result};
use oblivio_crypto::{Kind, Sealer, VolumeId};

/// One session of a client.
pub struct Follower {
    session: Session,
    volume: VolumeId,
    block_bytes: usize,
    sealer: Sealer,
    /// The number of the next ask.
    next: Seq,
    /// The number of the next answer: they come in order.
    answered: Seq,
    /// The newest head that it knows. A client must keep it from session to session.
    head: Head,
}

impl Follower {
    /// A new session. Its number must be random.
    pub fn new(session: Session, volume: VolumeId, block_bytes: usize, sealer: Sealer) -> Self {
        let (next, answered, head) = (Seq(0), Seq(0), Head::default());
        Self { session, volume, block_bytes, sealer, next, answered, head }
    }

    /// With the head that an earlier session of this client knew.
    #[must_use]
    pub fn knowing(mut self, head: Head) -> Self {
        self.head = head;
        self
    }

    /// The newest head that it knows.
    pub fn head(&self) -> Head {
        self.head
    }

    /// Seals an ask. To ask again, send the same record.
    ///
    /// # Errors
    /// `Invalid` for an ask that does not fit; those of the sealer.
    pub fn ask(&mut self, ask: &Ask) -> Result<AskRecord> {
        let plain = ask.encode(self.head, self.block_bytes)?;
        let (session, seq) = (self.session, self.next);
        let place = place(self.volume, Kind::Ask, session, seq);
        let sealed = self.sealer.seal_vec(&place, &plain)?;
        self.next.0 += 1;
        Ok(AskRecord { session, seq, sealed })
    }

    /// Opens the next answer; none for one that it had before.
    ///
    /// # Errors
    /// `State` for an answer of another session, out of order, or that does not open; `Forked` if
    /// it is of another history than the answers before it.
    pub fn answer(&mut self, record: &AnswerRecord) -> Result<Option<(Seq, BlockAnswer)>> {
        let AnswerRecord { session, seq, sealed } = record;
        if *session == self.session && *seq < self.answered {
            return Ok(None);
        }
        if *session != self.session || *seq != self.answered || self.answered >= self.next {
            return Err(EngineError::State("an answer to something that was not asked"));
        }
        let place = place(self.volume, Kind::Answer, *session, *seq);
        let plain = self.sealer.open_vec(&place, sealed);
        let plain = plain.map_err(|_| EngineError::State("an answer does not open"))?;
        let answer = decode_answer(&plain);
        let (answer, head) = answer.ok_or(EngineError::State("an answer does not parse"))?;
        let same = head.number > self.head.number || head == self.head;
        if !same {
            return Err(EngineError::Forked);
        }
        self.answered.0 += 1;
        self.head = head;
        Ok(Some((*seq, answer)))
    }
}
