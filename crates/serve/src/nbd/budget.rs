//! A limit on a client's requests under way.

use std::sync::{Condvar, Mutex, PoisonError};

/// Limit of a connection's requests under way.
const MOST_REQUESTS: usize = 256;

/// What a connection has under way, and its limit in bytes; a larger request is under way alone.
pub struct Budget {
    most: usize,
    taken: Mutex<(usize, usize)>,
    less: Condvar,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(most: usize) -> Self {
        Self { most, taken: Mutex::default(), less: Condvar::new() }
    }

    /// Waits until one more request of this many bytes may be under way.
    pub fn take(&self, bytes: usize) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while taken.0 == MOST_REQUESTS || (taken.1 > 0 && taken.1 + bytes > self.most) {
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
        self.less.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn a_request_that_is_larger_than_all_others_may_be_is_under_way_alone() {
        let (budget, passed) = (Budget::new(4), AtomicUsize::new(0));
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
