//! Connections that have not authenticated: anybody can reach a server's port.
//!
//! They must cost little and keep nobody out. So they have a limit of their own, and at the limit
//! the oldest one goes. A real client is served at once, and leaves this set long before that.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connections, in order of arrival.
#[derive(Debug)]
pub struct AcceptedConnections<C> {
    inside: Mutex<Inside<C>>,
    most: usize,
}

#[derive(Debug)]
struct Inside<C> {
    connections: BTreeMap<u64, C>,
    next: u64,
}

impl<C: Clone> AcceptedConnections<C> {
    /// Empty; holds `most` connections at most.
    pub fn new(most: usize) -> Self {
        let inside = Inside { connections: BTreeMap::new(), next: 0 };
        Self { inside: Mutex::new(inside), most }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<C>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in. Returns its number, which is unique, and the one that has to go for it.
    pub fn enter(&self, connection: C) -> (u64, Option<C>) {
        let mut inside = self.lock();
        let number = inside.next;
        inside.next += 1;
        let full = inside.connections.len() >= self.most;
        let oldest = if full { inside.connections.pop_first() } else { None };
        inside.connections.insert(number, connection);
        (number, oldest.map(|(_, connection)| connection))
    }

    /// Removes one that authenticated or left. `None` if it had to go before.
    pub fn leave(&self, number: u64) -> Option<C> {
        self.lock().connections.remove(&number)
    }

    /// All connections.
    pub fn all(&self) -> Vec<C> {
        self.lock().connections.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_for_a_new_one() {
        let strangers = AcceptedConnections::new(3);
        let numbers = ["a", "b", "c"].map(|name| {
            let (number, gone) = strangers.enter(name);
            assert_eq!(gone, None);
            number
        });
        assert_eq!(strangers.leave(numbers[1]), Some("b"));
        assert_eq!(strangers.enter("d").1, None, "there is room again");
        assert_eq!(strangers.enter("e").1, Some("a"));
        assert_eq!(strangers.leave(numbers[0]), None, "it had to go");
        assert_eq!(strangers.enter("f").1, Some("c"));
        assert_eq!(strangers.all(), ["d", "e", "f"]);
    }
}
