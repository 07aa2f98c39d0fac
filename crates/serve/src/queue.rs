//! The queue of requests for the one server, and the clock that answers for a stalled store.
//!
//! Where there are threads beside the server, some requests wait in a line of their own for them.
//!
//! A request is given up when it has waited for the time limit and nothing finished in that time. A
//! slow but working store is never cut off: the callers may have many megabytes under way, and an
//! error would lose them.

use oblivio_volume::Error;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An error in the callers' terms.
pub trait Refusal: Copy + Send + 'static {
    /// The one for a store that does not answer.
    const STALLED: Self;

    /// Whether this is a failure of the volume or its store, and not of the request: worth a report
    /// to the administrator.
    fn is_failure(error: &Error) -> bool;
}

/// Delivers the answer.
pub type Replier<A, E> = Box<dyn FnOnce(Result<A, E>) + Send>;

/// Ensures one answer per request: the first one counts.
pub struct AnswerSlot<A, E>(Arc<Mutex<Option<Replier<A, E>>>>);

impl<A, E> Clone for AnswerSlot<A, E> {
    fn clone(&self) -> Self {
        AnswerSlot(Arc::clone(&self.0))
    }
}

impl<A, E> AnswerSlot<A, E> {
    pub fn new(replier: Replier<A, E>) -> Self {
        AnswerSlot(Arc::new(Mutex::new(Some(replier))))
    }

    /// Answers; `false` if the request was answered before.
    pub fn answer(&self, result: Result<A, E>) -> bool {
        let replier = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match replier {
            Some(replier) => {
                replier(result);
                true
            }
            None => false,
        }
    }

    pub fn answered(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl<A, E> std::fmt::Debug for AnswerSlot<A, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Slot").field(&self.answered()).finish()
    }
}

/// A request that waits.
#[derive(Debug)]
pub struct Request<Op, A, E> {
    pub op: Op,
    pub slot: AnswerSlot<A, E>,
}

/// The result of [`Queue::take`].
#[derive(Debug)]
pub enum Taken<Op, A, E> {
    /// All that waited.
    Requests(Vec<Request<Op, A, E>>),
    /// Nothing came in time.
    Nothing,
    /// No more will come.
    Closed,
}

/// The weight of a request that may be served beside the server; `None` for all others.
pub type Weigh<Op> = fn(&Op) -> Option<u64>;

/// A sign of life of the store: it grows whenever a call ends well.
pub type Pulse = Arc<AtomicU64>;

struct Inner<Op, A, E> {
    waiting: VecDeque<Request<Op, A, E>>,
    /// Those that need no server, with their weights.
    beside: VecDeque<(u64, Request<Op, A, E>)>,
    /// Decides which these are, once threads serve them.
    weigh: Option<Weigh<Op>>,
    /// Everything unanswered, in order of arrival; answered ones are dropped from the front.
    watched: VecDeque<(Instant, AnswerSlot<A, E>)>,
    /// When the server or the store last finished something.
    progress: Instant,
    pulse: u64,
    stalled: bool,
    closed: bool,
    dead: bool,
    /// The clock sleeps until it is woken. Otherwise it looks by itself, which saves a wake-up for
    /// each request.
    asleep: bool,
}

/// What the clock waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// No more comes.
    Over,
    /// No request waits.
    Nothing,
    /// The first that waits is given up in this time, if nothing finishes until then.
    In(Duration),
}

/// The queue. Any thread may push. One thread serves; others beside it take weighed requests.
pub struct RequestQueue<Op, A, E> {
    inner: Mutex<Inner<Op, A, E>>,
    ready: Condvar,
    ready_beside: Condvar,
    watch: Condvar,
    timeout: Duration,
    pulse: Pulse,
}

impl<Op, A, E: Refusal> RequestQueue<Op, A, E> {
    pub fn new(timeout: Duration, pulse: Pulse) -> Self {
        let inner = Inner {
            waiting: VecDeque::new(),
            beside: VecDeque::new(),
            weigh: None,
            watched: VecDeque::new(),
            progress: Instant::now(),
            pulse: 0,
            stalled: false,
            closed: false,
            dead: false,
            asleep: false,
        };
        let [ready, ready_beside, watch] = std::array::from_fn(|_| Condvar::new());
        RequestQueue { inner: Mutex::new(inner), ready, ready_beside, watch, timeout, pulse }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<Op, A, E>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request for the server; after the end it is refused at once.
    pub fn push(&self, op: Op, replier: Replier<A, E>) {
        let slot = AnswerSlot::new(replier);
        let mut inner = self.lock();
        if inner.dead {
            drop(inner);
            slot.answer(Err(E::STALLED));
            return;
        }
        inner.forget_answered();
        let asleep = std::mem::take(&mut inner.asleep);
        inner.watched.push_back((Instant::now(), slot.clone()));
        let weight = inner.weigh.and_then(|weigh| weigh(&op));
        let request = Request { op, slot };
        let ready = match weight {
            Some(weight) => {
                inner.beside.push_back((weight, request));
                &self.ready_beside
            }
            None => {
                inner.waiting.push_back(request);
                &self.ready
            }
        };
        drop(inner);
        ready.notify_one();
        if asleep {
            self.watch.notify_one();
        }
    }

    /// All waiting requests, or the first to come before `until`.
    pub fn take(&self, until: Instant) -> Taken<Op, A, E> {
        let mut inner = self.lock();
        loop {
            if !inner.waiting.is_empty() {
                return Taken::Requests(std::mem::take(&mut inner.waiting).into());
            }
            if inner.closed {
                return Taken::Closed;
            }
            let now = Instant::now();
            let Some(left) = until.checked_duration_since(now).filter(|left| !left.is_zero())
            else {
                return Taken::Nothing;
            };
            let waited = self.ready.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// From now on requests with a weight wait for callers of [`Self::take_beside`].
    pub fn serve_beside(&self, weigh: Weigh<Op>) {
        self.lock().weigh = Some(weigh);
    }

    /// The next work of one of `threads` threads beside the server: its share of their line, of
    /// weight `most` at most unless a single request has more. `None` when no more will come.
    pub fn take_beside(&self, threads: usize, most: u64) -> Option<Vec<Request<Op, A, E>>> {
        let mut inner = self.lock();
        while inner.beside.is_empty() {
            if inner.closed {
                return None;
            }
            inner = self.ready_beside.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        let share = inner.beside.len().div_ceil(threads.max(1));
        let (mut weight, mut fitting) = (0, 0);
        for (next, _) in inner.beside.iter().take(share) {
            weight += next;
            if fitting > 0 && weight > most {
                break;
            }
            fitting += 1;
        }
        Some(inner.beside.drain(..fitting).map(|(_, request)| request).collect())
    }

    /// Notes that the server finished something; returns whether the store was given up before.
    pub fn progressed(&self) -> bool {
        let mut inner = self.lock();
        inner.progress = Instant::now();
        std::mem::take(&mut inner.stalled)
    }

    /// Time since anything finished, even if nothing was requested.
    pub fn idle_for(&self) -> Duration {
        let mut inner = self.lock();
        self.feel_pulse(&mut inner, Instant::now());
        inner.progress.elapsed()
    }

    fn feel_pulse(&self, inner: &mut Inner<Op, A, E>, now: Instant) {
        let pulse = self.pulse.load(Ordering::Relaxed);
        if pulse != inner.pulse {
            inner.pulse = pulse;
            inner.progress = now;
        }
    }

    /// No more requests will come: the session has ended.
    pub fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
        self.ready_beside.notify_all();
        self.watch.notify_all();
    }

    /// Answers everything with an error, now and from now on.
    pub fn kill(&self) {
        let mut inner = self.lock();
        inner.dead = true;
        inner.closed = true;
        inner.waiting.clear();
        inner.beside.clear();
        let watched = std::mem::take(&mut inner.watched);
        drop(inner);
        self.ready.notify_all();
        self.ready_beside.notify_all();
        self.watch.notify_all();
        for (_, slot) in watched {
            slot.answer(Err(E::STALLED));
        }
    }

    /// Answers requests that waited too long, until the queue is closed. `stalled` gets the first
    /// one after the store last made progress.
    pub fn watch(&self, stalled: impl Fn(Duration)) {
        // Looking a few times before the deadline finds a pulse when it beats.
        let often = (self.timeout / 4).max(Duration::from_millis(1));
        let (mut inner, mut quiet) = (self.lock(), false);
        loop {
            let next;
            (inner, next) = self.look(inner, Instant::now(), &stalled);
            let nap = match next {
                Next::Over => return,
                // After a whole nap with nothing to watch there may be nothing for hours.
                Next::Nothing if quiet => {
                    inner.asleep = true;
                    inner = self.watch.wait(inner).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                Next::Nothing => often,
                Next::In(left) => left.min(often),
            };
            quiet = next == Next::Nothing;
            inner = self.watch.wait_timeout(inner, nap).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Answers what has waited too long by `now`.
    fn look<'q>(
        &'q self,
        mut inner: MutexGuard<'q, Inner<Op, A, E>>,
        now: Instant,
        stalled: &impl Fn(Duration),
    ) -> (MutexGuard<'q, Inner<Op, A, E>>, Next) {
        loop {
            inner.forget_answered();
            if inner.dead || (inner.closed && inner.watched.is_empty()) {
                return (inner, Next::Over);
            }
            let Some(arrived) = inner.watched.front().map(|(arrived, _)| *arrived) else {
                return (inner, Next::Nothing);
            };
            self.feel_pulse(&mut inner, now);
            let due = arrived.max(inner.progress) + self.timeout;
            let left = due.saturating_duration_since(now);
            if !left.is_zero() {
                return (inner, Next::In(left));
            }
            let late = inner.watched.pop_front();
            let first = !std::mem::replace(&mut inner.stalled, true);
            drop(inner);
            if first {
                stalled(self.timeout);
            }
            if let Some((_, slot)) = late {
                slot.answer(Err(E::STALLED));
            }
            inner = self.lock();
        }
    }

    /// Looks as the clock will in this time.
    #[cfg(test)]
    pub fn pass(&self, time: Duration, stalled: impl Fn(Duration)) {
        drop(self.look(self.lock(), Instant::now() + time, &stalled));
    }

    /// Lets the time of all requests be over. The signs of life so far do not count.
    #[cfg(test)]
    pub fn run_out(&self) {
        let (mut inner, now) = (self.lock(), Instant::now());
        self.feel_pulse(&mut inner, now);
        inner.progress = inner.progress.min(now);
        drop(self.look(inner, now + self.timeout, &|_| ()));
    }
}

impl<Op, A, E> Inner<Op, A, E> {
    fn forget_answered(&mut self) {
        while self.watched.front().is_some_and(|(_, slot)| slot.answered()) {
            self.watched.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
