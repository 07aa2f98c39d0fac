//! [`Unacknowledged`]: what was sent, and the server is not known to have.

use oblivio_store::share::ShareError;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

struct Sent<K, T> {
    key: K,
    size: usize,
    what: Arc<T>,
}

struct State<K, T> {
    size: usize,
    /// By the numbers of their calls.
    sent: BTreeMap<u64, Sent<K, T>>,
    refused: BTreeMap<K, ShareError>,
}

/// Records, asks or pieces of objects that go out without waiting for the replies to those before.
///
/// A new line sends them again, in their order. A refusal is kept by its key: later calls ask
/// for it.
pub struct Unacknowledged<K, T> {
    most: usize,
    state: Mutex<State<K, T>>,
    changed: Condvar,
}

impl<K: Ord, T> Unacknowledged<K, T> {
    /// At most this much is under way.
    pub fn new(most: usize) -> Self {
        let (sent, refused) = Default::default();
        let state = Mutex::new(State { size: 0, sent, refused });
        Self { most, state, changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State<K, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one of this size may be sent now. One goes in any case.
    pub fn has_room(&self, size: usize) -> bool {
        self.wait_for_room(size, Duration::ZERO)
    }

    /// As [`Self::has_room`]. If there is none, it waits until something ends or its line does, at
    /// most this long.
    pub fn wait_for_room(&self, size: usize, time: Duration) -> bool {
        let state = self.state();
        let has_room = state.sent.is_empty() || state.size + size <= self.most;
        if !has_room && !time.is_zero() {
            drop(self.changed.wait_timeout(state, time));
        }
        has_room
    }

    /// Takes one that is sent now, as the call of this number.
    pub fn begin(&self, number: u64, (key, size): (K, usize), what: T) -> Arc<T> {
        let what = Arc::new(what);
        let mut state = self.state();
        state.size += size;
        state.sent.insert(number, Sent { key, size, what: Arc::clone(&what) });
        what
    }

    /// The server has it, or refused it. One that is not known any more is nobody's.
    pub fn end(&self, number: u64, refusal: &mut Option<ShareError>) {
        let mut state = self.state();
        if let Some(Sent { key, size, .. }) = state.sent.remove(&number) {
            state.size -= size;
            if let Some(error) = refusal.take() {
                state.refused.entry(key).or_insert(error);
            }
        }
        self.changed.notify_all();
    }

    /// Its line ended: who waits makes the next one.
    pub fn lost(&self) {
        self.changed.notify_all();
    }

    /// Why one with this key was refused, if one was. It is said once.
    pub fn refusal(&self, key: &K) -> Option<ShareError> {
        self.state().refused.remove(key)
    }

    /// All that is to be sent on a new line, in order.
    pub fn again(&self) -> Vec<(u64, Arc<T>)> {
        let state = self.state();
        state.sent.iter().map(|(number, sent)| (*number, Arc::clone(&sent.what))).collect()
    }

    /// Forgets all that has such a key.
    pub fn forget(&self, is_such: impl Fn(&K) -> bool) {
        let mut state = self.state();
        state.sent.retain(|_, sent| !is_such(&sent.key));
        state.refused.retain(|key, _| !is_such(key));
        state.size = state.sent.values().map(|sent| sent.size).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(sent: &Unacknowledged<u8, &'static str>) -> Vec<(u64, &'static str)> {
        sent.again().into_iter().map(|(number, what)| (number, *what)).collect()
    }

    #[test]
    fn what_was_sent_is_under_way_until_it_ends_and_the_first_refusal_counts() {
        let sent = Unacknowledged::new(10);
        assert!(sent.has_room(1000), "one goes in any case");
        sent.begin(3, (1, 6), "first");
        assert!(sent.has_room(4) && !sent.has_room(5));
        sent.begin(5, (1, 4), "second");
        sent.begin(6, (2, 0), "third");
        assert_eq!(again(&sent), [(3, "first"), (5, "second"), (6, "third")]);
        let mut others = Some(ShareError::Quota);
        sent.end(4, &mut others);
        assert!(others.is_some(), "it is another one's");
        sent.end(3, &mut others);
        assert!(others.is_none());
        sent.end(5, &mut Some(ShareError::Busy));
        sent.end(5, &mut Some(ShareError::Busy));
        sent.end(6, &mut None);
        assert!(sent.has_room(10) && again(&sent).is_empty());
        assert!(matches!(sent.refusal(&1), Some(ShareError::Quota)));
        assert!(sent.refusal(&1).is_none() && sent.refusal(&2).is_none());
    }

    #[test]
    fn what_is_forgotten_is_nobodys() {
        let sent = Unacknowledged::new(10);
        sent.begin(1, (1, 6), "old");
        sent.begin(2, (2, 4), "other");
        sent.forget(|key| *key == 1);
        sent.begin(3, (1, 6), "new");
        sent.end(1, &mut Some(ShareError::Quota));
        assert_eq!(again(&sent), [(2, "other"), (3, "new")]);
        assert!(sent.refusal(&1).is_none() && !sent.has_room(1));
        sent.end(3, &mut Some(ShareError::Quota));
        sent.forget(|_| true);
        assert!(sent.refusal(&1).is_none() && sent.has_room(10));
    }
}
