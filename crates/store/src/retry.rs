//! [`RetryStore`]: a store that outlasts outages.
//!
//! It repeats a failed call unchanged until it succeeds, as long as the failure
//! [may pass](StoreError::may_pass). The caller sees a slow store instead of a broken one, and
//! continues as if nothing had happened. The adversary additionally sees the same request again,
//! after a failure that it saw itself.

use crate::{Answer, Call, Layer, PutMode, Result, Store, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The first pause between two attempts. Each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Called with the first failure of an outage, and with `None` at its end.
pub type OnOutage = Box<dyn Fn(Option<&StoreError>) + Send + Sync>;

/// Ends the attempts of a [`RetryStore`].
#[derive(Clone, Default)]
pub struct Patience(Arc<(Mutex<()>, Condvar, AtomicBool)>);

impl Patience {
    /// From now on, the caller gets the first failure.
    pub fn end(&self) {
        self.0.2.store(true, Ordering::SeqCst);
        self.0.1.notify_all();
    }

    /// Waits; false once it has ended.
    fn pause(&self, time: Duration) -> bool {
        let (lock, signal, over) = &*self.0;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        if !over.load(Ordering::SeqCst) {
            drop(signal.wait_timeout(guard, time));
        }
        !over.load(Ordering::SeqCst)
    }
}

/// A layer that repeats failed calls.
pub struct RetryStore {
    inner: Arc<dyn Store>,
    patience: Patience,
    /// The most time in pauses between the attempts of one call.
    most: Option<Duration>,
    on_outage: OnOutage,
}

impl RetryStore {
    /// A layer over `inner`, until `patience` ends.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, patience: Patience, on_outage: OnOutage) -> Self {
        Self { inner, patience, most: None, on_outage }
    }

    /// A layer that gives up on a call when its pauses together take `most`.
    #[must_use]
    pub fn bounded(inner: Arc<dyn Store>, patience: Patience, most: Duration) -> Self {
        Self { inner, patience, most: Some(most), on_outage: Box::new(|_| {}) }
    }

    fn persist<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let (mut pause, mut paused) = (FIRST_PAUSE, Duration::ZERO);
        let mut failing = false;
        loop {
            match attempt() {
                Err(error) if error.may_pass() => {
                    if !failing {
                        (self.on_outage)(Some(&error));
                    }
                    failing = true;
                    let given_up = self.most.is_some_and(|most| paused >= most);
                    if given_up || !self.patience.pause(pause) {
                        return Err(error);
                    }
                    paused += pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                result => {
                    if failing {
                        (self.on_outage)(None);
                    }
                    return result;
                }
            }
        }
    }
}

impl Layer for RetryStore {
    type Below = dyn Store;

    fn below(&self) -> &Self::Below {
        &*self.inner
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        match call {
            // A failed creation may have succeeded.
            Call::Put(_, _, PutMode::IfAbsent)
            | Call::Version(_)
            | Call::FreeBytes
            | Call::Lock
            | Call::Hint(_) => call.on(&*self.inner),
            _ => self.persist(|| call.on(&*self.inner)),
        }
    }
}
