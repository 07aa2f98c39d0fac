//! The scribe's own asks. They stand in the records like any others; but they come with the batch,
//! so the scribe waits for one round trip only.

use super::answer::Answer;
use super::ask::Ask;
use super::follower::Follower;
use super::records::{AnswerRecord, AskRecord, Batch, Seq, Session};
use crate::Result;
use std::collections::VecDeque;

/// The scribe as a client of itself.
pub(super) struct Own {
    follower: Follower,
    /// Asks that the server does not have yet.
    unsent: VecDeque<AskRecord>,
    /// Answers whose batches are not durable yet, by these.
    untold: VecDeque<(Batch, Vec<AnswerRecord>)>,
    answers: Vec<(Seq, Answer)>,
}

impl Own {
    pub fn new(follower: Follower) -> Self {
        let (unsent, untold) = (VecDeque::new(), VecDeque::new());
        Self { follower, unsent, untold, answers: Vec::new() }
    }

    /// Seals the asks of a transaction.
    ///
    /// # Errors
    /// As [`Follower::transaction`].
    pub fn ask(&mut self, asks: &[Ask]) -> Result<Vec<AskRecord>> {
        let records = self.follower.transaction(asks)?;
        self.unsent.extend(records.iter().cloned());
        Ok(records)
    }

    /// Those of its asks that stand in this batch and that the server does not have.
    pub fn sent(&mut self, batch: impl Iterator<Item = (Session, Seq)>) -> Vec<AskRecord> {
        let mut sent = Vec::new();
        for key in batch {
            let is_next = |ask: &AskRecord| (ask.session, ask.seq) == key;
            if self.unsent.front().is_some_and(is_next) {
                sent.extend(self.unsent.pop_front());
            }
        }
        sent
    }

    /// Those of a batch's answers that are its own wait until the batch is durable.
    pub fn answered(&mut self, batch: Batch, records: &[AnswerRecord]) {
        let session = self.follower.session();
        let own = records.iter().filter(|record| record.session == session);
        let own: Vec<_> = own.cloned().collect();
        if !own.is_empty() {
            self.untold.push_back((batch, own));
        }
    }

    /// Refusals after this batch. They are in no record: they wait for the batch only.
    ///
    /// # Errors
    /// As [`Follower::answer`].
    pub fn refused(&mut self, batch: Batch, records: &[AnswerRecord]) -> Result<()> {
        let waits = !self.untold.is_empty();
        self.answered(batch, records);
        if waits { Ok(()) } else { self.durable(batch) }
    }

    /// All batches up to this one are durable.
    ///
    /// # Errors
    /// As [`Follower::answer`].
    pub fn durable(&mut self, batch: Batch) -> Result<()> {
        while self.untold.front().is_some_and(|(of, _)| *of <= batch)
            && let Some((_, records)) = self.untold.pop_front()
        {
            for record in &records {
                self.answers.extend(self.follower.answer(record)?);
            }
        }
        Ok(())
    }

    /// The answers since the last call.
    pub fn take_answers(&mut self) -> Vec<(Seq, Answer)> {
        std::mem::take(&mut self.answers)
    }

    /// The client goes on as a follower. Its open asks must be sent again.
    pub fn into_follower(self) -> Follower {
        self.follower
    }
}
