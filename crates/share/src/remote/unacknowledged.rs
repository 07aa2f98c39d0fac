//! [`Unacknowledged`]: what was sent, and the server is not known to have.

use super::lock;
use oblivio_store::share::ShareError;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The number of one that was sent. It is never used again.
pub type Ticket = u64;

struct Sent<K, T> {
    key: K,
    size: usize,
    what: Arc<T>,
}

struct State<K, T> {
    next: Ticket,
    size: usize,
    sent: BTreeMap<Ticket, Sent<K, T>>,
    refused: BTreeMap<K, ShareError>,
}

/// Records, asks or pieces of objects that go out without waiting for the replies to those before.
///
/// A new line sends them again, in their order. What the server refuses is told by a key: later
/// calls ask for it.
pub struct Unacknowledged<K, T> {
    most: usize,
    state: Mutex<State<K, T>>,
    changed: Condvar,
}

impl<K: Ord, T> Unacknowledged<K, T> {
    /// At most this much is under way.
    pub fn new(most: usize) -> Self {
        let (sent, refused) = Default::default();
        let state = Mutex::new(State { next: 0, size: 0, sent, refused });
        Self { most, state, changed: Condvar::new() }
    }

    /// Whether one of this size may be sent now. One goes in any case.
    pub fn has_room(&self, size: usize) -> bool {
        let state = lock(&self.state);
        state.sent.is_empty() || state.size + size <= self.most
    }

    /// Waits until something ends or its line does, at most this long.
    pub fn wait(&self, time: Duration) {
        drop(self.changed.wait_timeout(lock(&self.state), time));
    }

    /// Takes one that is sent now.
    pub fn begin(&self, key: K, size: usize, what: T) -> (Ticket, Arc<T>) {
        let what = Arc::new(what);
        let mut state = lock(&self.state);
        let ticket = state.next;
        state.next += 1;
        state.size += size;
        state.sent.insert(ticket, Sent { key, size, what: Arc::clone(&what) });
        (ticket, what)
    }

    /// The server has it, or refused it. One that is not known any more is nobody's.
    pub fn end(&self, ticket: Ticket, refusal: Option<ShareError>) {
        let mut state = lock(&self.state);
        if let Some(Sent { key, size, .. }) = state.sent.remove(&ticket) {
            state.size -= size;
            if let Some(error) = refusal {
                state.refused.entry(key).or_insert(error);
            }
        }
        self.changed.notify_all();
    }

    /// Its line ended: whoever waits makes the next one.
    pub fn lost(&self) {
        self.changed.notify_all();
    }

    /// Why one with this key was refused, if one was. It is told once.
    pub fn refusal(&self, key: &K) -> Option<ShareError> {
        lock(&self.state).refused.remove(key)
    }

    /// All that is to be sent on a new line, in order.
    pub fn again(&self) -> Vec<(Ticket, Arc<T>)> {
        let state = lock(&self.state);
        state.sent.iter().map(|(ticket, sent)| (*ticket, Arc::clone(&sent.what))).collect()
    }

    /// Forgets all that has such a key.
    pub fn forget(&self, is_such: impl Fn(&K) -> bool) {
        let mut state = lock(&self.state);
        state.sent.retain(|_, sent| !is_such(&sent.key));
        state.refused.retain(|key, _| !is_such(key));
        state.size = state.sent.values().map(|sent| sent.size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(sent: &Unacknowledged<u8, &'static str>) -> Vec<(Ticket, &'static str)> {
        sent.again().into_iter().map(|(ticket, what)| (ticket, *what)).collect()
    }

    #[test]
    fn what_was_sent_is_under_way_until_it_ends_and_the_first_refusal_counts() {
        let sent = Unacknowledged::new(10);
        assert!(sent.has_room(1000), "one goes in any case");
        let (first, _) = sent.begin(1, 6, "first");
        assert!(sent.has_room(4) && !sent.has_room(5));
        let (second, _) = sent.begin(1, 4, "second");
        let (third, _) = sent.begin(2, 0, "third");
        assert_eq!(again(&sent), [(first, "first"), (second, "second"), (third, "third")]);
        sent.end(first, Some(ShareError::Quota));
        sent.end(second, Some(ShareError::Busy));
        sent.end(second, Some(ShareError::Busy));
        sent.end(third, None);
        assert!(sent.has_room(10) && again(&sent).is_empty());
        assert!(matches!(sent.refusal(&1), Some(ShareError::Quota)));
        assert!(sent.refusal(&1).is_none() && sent.refusal(&2).is_none());
    }

    #[test]
    fn what_is_forgotten_is_nobodys() {
        let sent = Unacknowledged::new(10);
        let ((old, _), (other, _)) = (sent.begin(1, 6, "old"), sent.begin(2, 4, "other"));
        sent.forget(|key| *key == 1);
        let (new, _) = sent.begin(1, 6, "new");
        sent.end(old, Some(ShareError::Quota));
        assert_eq!(again(&sent), [(other, "other"), (new, "new")]);
        assert!(sent.refusal(&1).is_none() && !sent.has_room(1));
        sent.end(new, Some(ShareError::Quota));
        sent.forget(|_| true);
        assert!(sent.refusal(&1).is_none() && sent.has_room(10));
    }
}
