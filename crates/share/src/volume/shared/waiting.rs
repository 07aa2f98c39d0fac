//! Who waits for answers, by session: a batch wakes those only who have some.

use oblivio_store::share::{ClientSession, SealedAnswer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar};

/// The sessions for whose answers somebody waits, and how many do.
#[derive(Debug, Default)]
pub(super) struct Waiting(BTreeMap<ClientSession, (Arc<Condvar>, usize)>);

impl Waiting {
    /// Somebody begins to wait for a session's answers: here.
    pub fn enter(&mut self, session: ClientSession) -> Arc<Condvar> {
        let (came, count) = self.0.entry(session).or_default();
        *count += 1;
        Arc::clone(came)
    }

    /// Somebody waits no more.
    pub fn leave(&mut self, session: ClientSession) {
        if let Some((_, count)) = self.0.get_mut(&session) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&session);
            }
        }
    }

    /// Where those wait whose answers these are.
    pub fn of(&self, answers: &[SealedAnswer]) -> Vec<Arc<Condvar>> {
        let sessions: BTreeSet<ClientSession> = answers.iter().map(|it| it.id.session).collect();
        let waiting = sessions.iter().filter_map(|session| self.0.get(session));
        waiting.map(|(came, _)| Arc::clone(came)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::share::{AskId, AskNumber};

    #[test]
    fn those_are_woken_whose_answers_came_and_nobody_is_kept_who_left() {
        let [one, other, third] = [1, 2, 3].map(ClientSession);
        let answer =
            |session| SealedAnswer { id: AskId { session, seq: AskNumber(0) }, sealed: Vec::new() };
        let mut waiting = Waiting::default();
        let came = waiting.enter(one);
        assert!(Arc::ptr_eq(&came, &waiting.enter(one)));
        let others = waiting.enter(other);
        let of = |waiting: &Waiting, sessions: &[ClientSession]| {
            waiting.of(&sessions.iter().copied().map(answer).collect::<Vec<_>>())
        };
        let found = of(&waiting, &[one, third, one]);
        assert!(found.len() == 1 && Arc::ptr_eq(&found[0], &came));
        waiting.leave(one);
        waiting.leave(other);
        assert_eq!(of(&waiting, &[one, other]).len(), 1, "one more waits");
        assert!(Arc::strong_count(&others) == 1);
        waiting.leave(one);
        assert!(waiting.0.is_empty());
    }
}
