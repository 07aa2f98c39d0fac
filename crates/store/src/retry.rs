//! [`RetryStore`]: a store that outlasts outages.
//!
//! It repeats a failed call unchanged until it succeeds, as long as the failure
//! [may pass](StoreError::may_pass). The caller sees a slow store instead of a broken one, and
//! continues as if nothing had happened. The adversary additionally sees the same request again,
//! after a failure that it saw itself.
//!
//! At a store on a network others may begin a session meanwhile. Then a repeated read would show
//! again what they perhaps showed as well. So a [`Guard`] is asked before each repeated read.

use crate::waits::{Pauses, WaitPlace};
use crate::{
    Guard, Hint, Layer, Objects, PutMode, Result, Store, StoreAnswer, StoreCall, StoreError,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Called with the first failure of an outage, and with `None` at its end.
pub type OnOutage = Box<dyn Fn(Option<&StoreError>) + Send + Sync>;

#[derive(Default)]
struct Signs {
    lock: Mutex<()>,
    signal: Condvar,
    over: AtomicBool,
    serving: AtomicBool,
}

/// Says how long a [`RetryStore`] repeats. Clones are the same.
#[derive(Clone, Default)]
pub struct Patience(Arc<Signs>);

impl Patience {
    /// From now on, the caller gets the first failure.
    pub fn end(&self) {
        self.0.over.store(true, Ordering::SeqCst);
        self.0.signal.notify_all();
    }

    /// From now on programs rely on the store: what fails is repeated until it succeeds, also what
    /// a service refuses. A key that expired, or a network that asks for a log-on first, must not
    /// cost what they wrote.
    pub fn serve(&self) {
        self.0.serving.store(true, Ordering::SeqCst);
    }

    fn is_serving(&self) -> bool {
        self.0.serving.load(Ordering::SeqCst)
    }

    /// Waits; false once it has ended.
    fn pause(&self, time: Duration) -> bool {
        let guard = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.over.load(Ordering::SeqCst) {
            drop(self.0.signal.wait_timeout(guard, time));
        }
        !self.0.over.load(Ordering::SeqCst)
    }
}

/// A layer that repeats failed calls.
pub struct RetryStore<S: ?Sized = dyn Store> {
    inner: Arc<S>,
    patience: Patience,
    pauses: Pauses,
    place: WaitPlace,
    /// The longest time for a call that fails, until programs rely on the store.
    most: Option<Duration>,
    on_outage: OnOutage,
    guard: Mutex<Option<Guard>>,
}

impl<S: Objects + ?Sized> RetryStore<S> {
    /// A layer over a disk, until `patience` ends.
    #[must_use]
    pub fn new(inner: Arc<S>, patience: Patience, on_outage: OnOutage) -> Self {
        let (pauses, place, guard) = (Pauses::DISK, WaitPlace::default(), Mutex::default());
        Self { inner, patience, pauses, place, most: None, on_outage, guard }
    }

    /// A layer over a store on a network. It gives up on a call after `most`, unless
    /// [programs rely on it](Patience::serve). An attempt that is under way is waited for.
    #[must_use]
    pub fn online(inner: Arc<S>, patience: Patience, most: Duration, on_outage: OnOutage) -> Self {
        let disk = Self::new(inner, patience, on_outage);
        Self { pauses: Pauses::NETWORK, most: Some(most), ..disk }
    }

    /// Whether a call that failed so is repeated. A service that has no space left means it: a
    /// command ends, while a disk may get room.
    fn repeats(&self, error: &StoreError) -> bool {
        let serving = self.patience.is_serving();
        match error {
            StoreError::Full => self.most.is_none() || serving,
            _ => error.may_pass() || error.is_refused() && serving,
        }
    }

    fn persist(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        #[expect(clippy::disallowed_methods, reason = "it measures an outage")]
        let began = Instant::now();
        let mut attempts = 0;
        loop {
            let answer = match (attempts, self.guard_of(call)) {
                (1.., Some(guard)) => guard.ask(&self.inner).and_then(|()| call.on(&*self.inner)),
                _ => call.on(&*self.inner),
            };
            match answer {
                Err(error) if self.repeats(&error) => {
                    if attempts == 0 {
                        (self.on_outage)(Some(&error));
                    }
                    attempts += 1;
                    let bound = self.most.filter(|_| !self.patience.is_serving());
                    let left = bound.map(|most| most.saturating_sub(began.elapsed()));
                    let pause = self.pauses.after(attempts, &self.place);
                    let pause = left.map_or(pause, |left| pause.min(left));
                    if left.is_some_and(|left| left.is_zero()) || !self.patience.pause(pause) {
                        return Err(error);
                    }
                }
                answer => {
                    if attempts > 0 {
                        (self.on_outage)(None);
                    }
                    return answer;
                }
            }
        }
    }

    /// The guard, for a call that shows something.
    fn guard_of(&self, call: &StoreCall<'_, '_>) -> Option<Guard> {
        let shows = matches!(call, StoreCall::Read(_));
        let guard = || self.guard.lock().unwrap_or_else(PoisonError::into_inner).clone();
        shows.then(guard).flatten()
    }
}

impl<S: Objects + ?Sized> Layer for RetryStore<S> {
    type Below = S;

    fn below(&self) -> &S {
        &self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Hint(Hint::BeforeRepeat(guard)) => {
                let mut held = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
                *held = Some((*guard).clone());
                Ok(StoreAnswer::Done)
            }
            // A failed creation may have succeeded.
            StoreCall::Put(_, _, PutMode::IfAbsent)
            | StoreCall::FreeBytes
            | StoreCall::Lock
            | StoreCall::Hint(_) => call.on(&*self.inner),
            _ => self.persist(call),
        }
    }
}
