//! Where asks come in: each is opened, and judged by its session and by the head that it names.

use super::answer::{AskRefusal, Outcome};
use super::ask::{decode, ends, place};
use super::chain::{Chain, Known};
use super::groups::{Groups, Open};
use super::head::Head;
use super::notice;
use super::public_rules::MOST_EARLY;
use super::records::{AnswerRecord, AskRecord, BatchNumber, Seq, Session};
use super::sessions::Sessions;
use crate::pyramid::oram::PyramidOram;
use crate::{EngineError, Result};
use oblivio_crypto::{Kind, Sealer, Tag, VolumeId};
use std::collections::BTreeMap;

/// What became of an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// It waits for a batch.
    Waits,
    /// It was taken before. Its answer comes, or came.
    Again,
    /// An ask of its session before it is missing, and must come first.
    Early,
    /// It will be answered with a refusal.
    Refused(AskRefusal),
}

/// The asks that came in, with what tells whether they may.
pub(super) struct Admission {
    pub volume: VolumeId,
    block_bytes: usize,
    pub sealer: Sealer,
    pub chain: Chain,
    pub sessions: Sessions,
    pub waiting: Groups,
    /// The next ask of each session of which some wait.
    expected: BTreeMap<Session, Seq>,
    /// Asks before which one is missing.
    early: BTreeMap<(Session, Seq), AskRecord>,
    /// Refusals, each with the newest batch then: they go out after its answers.
    refused: BTreeMap<(Session, Seq), (BatchNumber, AskRefusal)>,
    /// The newest batch.
    pub batch: BatchNumber,
    /// The number of the head that the newest notice has; 0 before this scribe's first.
    noticed: u64,
}

impl Admission {
    /// That of a new volume.
    pub fn new(oram: &PyramidOram, sealer: Sealer) -> Self {
        Self {
            volume: oram.keys.volume,
            block_bytes: oram.config.block_bytes,
            sealer,
            chain: Chain::new(oram.keys.volume, &oram.config),
            sessions: Sessions::default(),
            waiting: Groups::default(),
            expected: BTreeMap::new(),
            early: BTreeMap::new(),
            refused: BTreeMap::new(),
            batch: BatchNumber(0),
            noticed: 0,
        }
    }

    fn expected(&self, session: Session) -> Seq {
        self.expected.get(&session).copied().unwrap_or_else(|| self.sessions.next(session))
    }

    /// Takes an ask, and those that waited for it.
    ///
    /// # Errors
    /// `State` for an ask that does not open, or that is no part of the transaction before it:
    /// then it is not taken.
    pub fn take(&mut self, record: &AskRecord) -> Result<Admitted> {
        let taken = self.take_one(record)?;
        if taken == Admitted::Waits {
            for seq in (record.seq.0 + 1..).map(Seq) {
                let Some(next) = self.early.remove(&(record.session, seq)) else { break };
                self.take_one(&next)?;
            }
        }
        Ok(taken)
    }

    fn take_one(&mut self, record: &AskRecord) -> Result<Admitted> {
        let (session, seq) = (record.session, record.seq);
        let expected = self.expected(session);
        if seq < expected && !self.sessions.is_gone(session, seq) {
            return Ok(Admitted::Again);
        }
        let (open, head) = self.open(record)?;
        if self.sessions.has_ended(session) {
            return Ok(self.refuse(session, seq, AskRefusal::Ended));
        }
        if seq < expected {
            return Ok(self.refuse(session, seq, AskRefusal::Gone));
        }
        // Before its number: an old history has lost asks too.
        match self.sessions.judge(session, head, &self.chain) {
            Known::Yes => {}
            Known::No => return Ok(self.refuse(session, seq, AskRefusal::Forked)),
            Known::Old => return Ok(self.refuse(session, seq, AskRefusal::Old)),
        }
        if seq > expected {
            if self.early.len() < MOST_EARLY {
                self.early.insert((session, seq), record.clone());
            }
            return Ok(Admitted::Early);
        }
        let is_new = |session: Session| !self.sessions.lives(session);
        if is_new(session) && !self.expected.contains_key(&session) {
            let new = self.expected.keys().filter(|session| is_new(**session)).count();
            if !self.sessions.has_room(new) {
                return Ok(self.refuse(session, seq, AskRefusal::Crowded));
            }
        }
        self.waiting.add(open)?;
        self.expected.insert(session, Seq(seq.0 + 1));
        Ok(Admitted::Waits)
    }

    fn refuse(&mut self, session: Session, seq: Seq, refusal: AskRefusal) -> Admitted {
        self.refused.insert((session, seq), (self.batch, refusal));
        Admitted::Refused(refusal)
    }

    /// Opens an ask.
    ///
    /// # Errors
    /// `State` if it does not open.
    pub fn open(&mut self, record: &AskRecord) -> Result<(Open, Head)> {
        let AskRecord { session, seq, sealed } = record;
        let place = place(self.volume, Kind::Ask, *session, *seq);
        let plain = self.sealer.open_vec(&place, sealed);
        let plain = plain.map_err(|_| EngineError::State("an ask does not open"))?;
        let (ask, part, head) =
            decode(&plain).ok_or(EngineError::State("an ask does not parse"))?;
        Ok((Open { session: *session, seq: *seq, part, ask }, head))
    }

    /// Asks stand in a batch, whose record comes next.
    ///
    /// # Errors
    /// `State` if one is not the next of its session.
    pub fn order(&mut self, opens: &[Open]) -> Result<()> {
        for open in opens {
            self.sessions.order(open.session, open.seq)?;
            if self.expected.get(&open.session) == Some(&self.sessions.next(open.session)) {
                self.expected.remove(&open.session);
            }
        }
        Ok(())
    }

    /// The record of a batch is written: the sessions that it ends have ended.
    pub fn ordered(&mut self, opens: &[Open]) {
        let number = self.chain.head().number;
        for session in opens.iter().filter_map(|open| ends(&open.ask)) {
            self.sessions.end(session, number);
            self.expected.remove(&session);
            let waiting = self.waiting.take_session(session);
            let early = self.early.range((session, Seq(0))..=(session, Seq(u64::MAX)));
            let early = early.map(|((_, seq), _)| *seq);
            let seqs: Vec<_> = waiting.iter().map(|open| open.seq).chain(early).collect();
            for seq in seqs {
                self.early.remove(&(session, seq));
                self.refuse(session, seq, AskRefusal::Ended);
            }
        }
        self.sessions.forget(&self.chain);
    }

    /// The record of its answers is written.
    pub fn answered(&mut self, opens: &[Open]) {
        let head = self.chain.head();
        for open in opens {
            self.sessions.answer(open.session, head);
        }
    }

    /// Seals the answer to an ask of a batch, whose record is written.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal_answer(
        &mut self,
        session: Session,
        seq: Seq,
        outcome: &Outcome,
    ) -> Result<AnswerRecord> {
        let before = self.sessions.answer(session, self.chain.head());
        self.seal(session, seq, outcome, before.tag)
    }

    fn seal(
        &mut self,
        session: Session,
        seq: Seq,
        outcome: &Outcome,
        before: Tag,
    ) -> Result<AnswerRecord> {
        let plain = outcome.encode(self.chain.head(), before, self.block_bytes);
        let place = place(self.volume, Kind::Answer, session, seq);
        Ok(AnswerRecord { session, seq, sealed: self.sealer.seal_vec(&place, &plain)? })
    }

    /// Seals what a batch changed. The record of its answers is written.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal_notice(&mut self, opens: &[Open], outcomes: &[Outcome]) -> Result<Vec<u8>> {
        let head = self.chain.head();
        let plain = notice::encode(head, self.noticed, opens, outcomes);
        self.noticed = head.number;
        Ok(self.sealer.seal_vec(&notice::place(self.volume, head.number), &plain)?)
    }

    /// The refusals that may go out, now that all batches up to this one are answered.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn refusals(
        &mut self,
        answered: BatchNumber,
        live_blocks: u64,
    ) -> Result<Vec<AnswerRecord>> {
        let due = self.refused.extract_if(.., |_, (batch, _)| *batch <= answered);
        let due: Vec<_> = due.collect();
        let seal = |((session, seq), (_, refusal))| {
            self.seal(session, seq, &Outcome::refused(refusal, live_blocks), Tag::default())
        };
        due.into_iter().map(seal).collect()
    }
}
