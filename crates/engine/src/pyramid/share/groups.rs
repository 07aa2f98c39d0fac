//! Asks that wait for a batch. Those of a transaction wait until all of them are there, and stand
//! side by side in one batch.

use super::ask::Ask;
use super::records::{Seq, Session};
use crate::{EngineError, Result};
use std::collections::{BTreeMap, VecDeque};

/// An ask that was opened.
pub(super) struct Open {
    pub session: Session,
    pub seq: Seq,
    pub ask: Ask,
}

/// The asks that wait.
#[derive(Default)]
pub(super) struct Groups {
    /// Whole transactions and single asks, in the order in which they became whole.
    whole: VecDeque<Vec<Open>>,
    /// The parts of each session's next transaction.
    parts: BTreeMap<Session, Vec<Open>>,
}

impl Groups {
    /// Adds an ask, the next of its session.
    ///
    /// # Errors
    /// `State` if it is not the next part of its transaction.
    pub fn add(&mut self, open: Open) -> Result<()> {
        let parts = self.parts.entry(open.session).or_default();
        let part = open.ask.part;
        let follows = parts.last().is_none_or(|last| last.ask.part.of == part.of);
        if part.index as usize != parts.len() || !follows {
            return Err(EngineError::State("a part of a transaction is out of order"));
        }
        parts.push(open);
        if parts.len() == part.of as usize {
            self.whole.push_back(std::mem::take(parts));
        }
        Ok(())
    }

    /// The sizes of the first groups that fit into `most` asks; the first one always fits.
    pub fn first(&self, most: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        let mut count = 0;
        for group in &self.whole {
            if count > 0 && count + group.len() > most {
                break;
            }
            count += group.len();
            sizes.push(group.len());
        }
        sizes
    }

    /// The asks of all groups, the first one first.
    pub fn iter(&self) -> impl Iterator<Item = &Open> {
        self.whole.iter().flatten()
    }

    /// Takes the first `asks` asks: whole groups.
    pub fn take(&mut self, asks: usize) -> Vec<Open> {
        let mut taken = Vec::with_capacity(asks);
        while taken.len() < asks
            && let Some(group) = self.whole.pop_front()
        {
            taken.extend(group);
        }
        taken
    }
}
