//! Jobs that several threads do at the same time, because each waits for a server that is far away.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A queue of jobs. Each thread takes the next one.
pub struct JobQueue<J> {
    jobs: Mutex<Jobs<J>>,
    /// The job whose result is to leave next.
    turn: Mutex<u64>,
    left: Condvar,
}

struct Jobs<J> {
    come: Receiver<J>,
    next: u64,
}

/// The place of a job in its queue.
pub struct QueuePlace(u64);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J> JobQueue<J> {
    /// An empty queue, and its sender, which waits while the queue has `most` jobs.
    pub fn new(most: usize) -> (SyncSender<J>, Self) {
        let (give, come) = sync_channel(most);
        let jobs = Mutex::new(Jobs { come, next: 0 });
        (give, Self { jobs, turn: Mutex::new(0), left: Condvar::new() })
    }

    /// Waits for a job; none once nobody hands in any more.
    pub fn take(&self) -> Option<(QueuePlace, J)> {
        // The others wait for this thread, which waits for them all.
        let mut jobs = lock(&self.jobs);
        let job = jobs.come.recv().ok()?;
        jobs.next += 1;
        Some((QueuePlace(jobs.next - 1), job))
    }

    /// Lets a result leave once those of all earlier jobs have left. Each job that was taken needs
    /// this, whatever became of it, if any does.
    pub fn in_turn<T>(&self, place: QueuePlace, leave: impl FnOnce() -> T) -> T {
        let turn = lock(&self.turn);
        let waited = self.left.wait_while(turn, |turn| *turn != place.0);
        let mut turn = waited.unwrap_or_else(PoisonError::into_inner);
        let done = leave();
        *turn += 1;
        self.left.notify_all();
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    /// The threads do all jobs at the same time, or none ends; the last to begin ends first.
    #[test]
    fn jobs_are_done_together_and_their_results_leave_in_order() {
        const JOBS: usize = 4;
        let (give, queue) = JobQueue::new(JOBS);
        (0..JOBS).for_each(|job| give.send(job).unwrap());
        drop(give);
        let (together, results) = (Barrier::new(JOBS), Mutex::new(Vec::new()));
        let ended: Vec<_> = (0..JOBS).map(|_| Barrier::new(2)).collect();
        thread::scope(|scope| {
            for _ in 0..JOBS {
                scope.spawn(|| {
                    while let Some((place, job)) = queue.take() {
                        together.wait();
                        ended[job].wait();
                        queue.in_turn(place, || lock(&results).push(job));
                    }
                });
            }
            for one in ended.iter().rev() {
                one.wait();
            }
        });
        assert_eq!(*lock(&results), [0, 1, 2, 3]);
    }
}
