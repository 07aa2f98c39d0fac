//! Asks that wait for a batch. Those of a transaction wait until all of them are there, and stand
//! side by side in one batch. Meanwhile those of other sessions pass.

use super::ask::TransactionPart;
use super::records::{Seq, Session};
use crate::{EngineError, Result};
use oblivio_privatefs::Ask;
use std::collections::{BTreeMap, VecDeque};

/// An ask that was opened.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub session: Session,
    pub seq: Seq,
    pub part: TransactionPart,
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
    /// Whether an ask is the next part of its transaction, or a new one's first.
    pub fn follows(&self, open: &Open) -> bool {
        let (part, parts) = (open.part, self.parts.get(&open.session));
        let last = parts.and_then(|parts| parts.last());
        match last.map(|last| last.part) {
            None => part.index == 0,
            Some(last) => part.index == last.index + 1 && part.of == last.of,
        }
    }

    /// Adds an ask, the next of its session.
    ///
    /// # Errors
    /// `State` if it is not the next part of its transaction.
    pub fn add(&mut self, open: Open) -> Result<()> {
        if !self.follows(&open) {
            return Err(EngineError::State("a part of a transaction is out of order"));
        }
        let (session, of) = (open.session, open.part.of as usize);
        let parts = self.parts.entry(session).or_default();
        parts.push(open);
        if parts.len() == of {
            self.whole.extend(self.parts.remove(&session));
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

    /// Takes out all asks of a session, whole or not.
    pub fn take_session(&mut self, session: Session) -> Vec<Open> {
        let of_it = |group: &Vec<Open>| group.iter().any(|open| open.session == session);
        let (taken, whole) = self.whole.drain(..).partition::<Vec<_>, _>(of_it);
        self.whole = whole.into();
        let parts = self.parts.remove(&session).into_iter().flatten();
        taken.into_iter().flatten().chain(parts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;
    use crate::pyramid::ids::Name;
    use crate::pyramid::operation::Operation;

    fn open(session: u64, seq: u64, index: u32, of: u32) -> Open {
        let read = Operation { action: Action::Read, and_read: false };
        let ask = Ask::new(Name { owner: [0; 16], index: 0 }, read);
        Open { session: Session(session), seq: Seq(seq), part: TransactionPart { index, of }, ask }
    }

    fn whole(groups: &Groups) -> Vec<(u64, u64)> {
        groups.iter().map(|open| (open.session.0, open.seq.0)).collect()
    }

    #[test]
    fn a_transaction_without_its_last_part_holds_up_nobody_else() {
        let mut groups = Groups::default();
        groups.add(open(1, 0, 0, 2)).expect("the first part");
        groups.add(open(2, 0, 0, 1)).expect("alone");
        groups.add(open(3, 0, 0, 3)).expect("the first part");
        assert_eq!(whole(&groups), [(2, 0)]);
        groups.add(open(3, 1, 1, 3)).expect("the second");
        groups.add(open(3, 2, 2, 3)).expect("the last");
        assert_eq!(whole(&groups), [(2, 0), (3, 0), (3, 1), (3, 2)]);
        assert_eq!(groups.first(2), [1], "it is not parted");
        assert_eq!(groups.first(4), [1, 3]);
        assert_eq!(groups.take(4).len(), 4);
        assert_eq!(groups.iter().count(), 0);
        groups.add(open(1, 1, 1, 2)).expect("the last part of the first");
        assert_eq!(whole(&groups), [(1, 0), (1, 1)]);
    }

    #[test]
    fn parts_come_in_order_and_go_with_their_session() {
        let mut groups = Groups::default();
        assert!(groups.add(open(1, 0, 1, 2)).is_err(), "the first part is missing");
        groups.add(open(1, 0, 0, 3)).expect("the first part");
        assert!(groups.add(open(1, 1, 1, 2)).is_err(), "of another length");
        assert!(groups.add(open(1, 1, 2, 3)).is_err(), "one is left out");
        groups.add(open(2, 0, 0, 1)).expect("alone");
        groups.add(open(1, 1, 1, 3)).expect("the second");
        assert_eq!(groups.take_session(Session(1)).len(), 2);
        assert_eq!(groups.take_session(Session(2)).len(), 1);
        assert!(groups.whole.is_empty() && groups.parts.is_empty());
    }
}
