//! A limit on what a client of a server has under way.

use std::sync::{Condvar, Mutex, PoisonError};

/// What a client has under way, and its limits in requests and bytes. A larger request is under
/// way alone.
pub struct Budget {
    most_requests: usize,
    most_bytes: usize,
    taken: Mutex<(usize, usize)>,
    less: Condvar,
}

impl Budget {
    /// A budget of this many requests and bytes.
    #[must_use]
    pub fn new(most_requests: usize, most_bytes: usize) -> Self {
        Self { most_requests, most_bytes, taken: Mutex::default(), less: Condvar::new() }
    }

    /// Waits until one more request of this many bytes may be under way.
    pub fn take(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &(usize, usize)| {
            taken.0 == self.most_requests || taken.1 > 0 && taken.1 + bytes > self.most_bytes
        };
        while full(&taken) {
            taken = self.less.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        taken.0 += 1;
        taken.1 += bytes;
    }

    /// Takes an answered request off.
    pub fn give_back(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.0 -= 1;
        taken.1 -= bytes;
        // Of several that wait, a smaller one may have room.
        self.less.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn a_request_that_is_larger_than_all_others_may_be_is_under_way_alone() {
        let (budget, passed) = (Budget::new(256, 4), AtomicUsize::new(0));
        budget.take(9);
        thread::scope(|scope| {
            scope.spawn(|| {
                for bytes in [3, 1, 0, 9] {
                    budget.take(bytes);
                    passed.fetch_add(1, Ordering::SeqCst);
                }
            });
            let wait = |until| {
                while passed.load(Ordering::SeqCst) < until {
                    thread::yield_now();
                }
            };
            thread::yield_now();
            assert_eq!(passed.load(Ordering::SeqCst), 0);
            budget.give_back(9);
            wait(3);
            for bytes in [1, 0, 3] {
                assert_eq!(passed.load(Ordering::SeqCst), 3, "the next must be alone");
                budget.give_back(bytes);
            }
            wait(4);
        });
        budget.give_back(9);
    }
}
