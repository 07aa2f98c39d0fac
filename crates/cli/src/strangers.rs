//! Connections of those who have not proved themselves: anybody who reaches a server's port.
//!
//! They must cost it little and keep nobody out. So there is a limit for them alone, and where it
//! is reached the one that has been there longest goes: who is served at all is served at once, and
//! has left long before that.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Those who are there, by when they came.
#[derive(Debug)]
pub struct Strangers<C> {
    inside: Mutex<Inside<C>>,
    most: usize,
}

#[derive(Debug)]
struct Inside<C> {
    connections: BTreeMap<u64, C>,
    next: u64,
}

impl<C: Clone> Strangers<C> {
    /// Nobody yet; so many at the most.
    pub fn new(most: usize) -> Self {
        let inside = Inside { connections: BTreeMap::new(), next: 0 };
        Self { inside: Mutex::new(inside), most }
    }

    fn lock(&self) -> MutexGuard<'_, Inside<C>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one in. Gives its number, which none after it has, and the one that has to go for it.
    pub fn enter(&self, connection: C) -> (u64, Option<C>) {
        let mut inside = self.lock();
        let number = inside.next;
        inside.next += 1;
        let full = inside.connections.len() >= self.most;
        let oldest = if full { inside.connections.pop_first() } else { None };
        inside.connections.insert(number, connection);
        (number, oldest.map(|(_, connection)| connection))
    }

    /// One has proved itself, or goes. `None` when it had to go before.
    pub fn leave(&self, number: u64) -> Option<C> {
        self.lock().connections.remove(&number)
    }

    /// All who are there.
    pub fn all(&self) -> Vec<C> {
        self.lock().connections.values().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_for_a_new_one() {
        let strangers = Strangers::new(3);
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
