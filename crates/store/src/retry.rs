//! [`RetryStore`]: a store that outlasts outages.
//!
//! It repeats a failed call unchanged until it succeeds. The caller sees a slow store instead of a
//! broken one, and continues as if nothing had happened. The adversary additionally sees the same
//! request again, after a failure that it saw itself.

use crate::{PutMode, ReadAt, Result, Store, StoreError, WriteAt, pass_on};
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
    on_outage: OnOutage,
}

impl RetryStore {
    /// A layer over `inner`, until `patience` ends.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>, patience: Patience, on_outage: OnOutage) -> Self {
        Self { inner, patience, on_outage }
    }

    fn persist<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let mut pause = FIRST_PAUSE;
        let mut failing = false;
        loop {
            match attempt() {
                Err(error) if may_pass(&error) => {
                    if !failing {
                        (self.on_outage)(Some(&error));
                    }
                    failing = true;
                    if !self.patience.pause(pause) {
                        return Err(error);
                    }
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

/// Whether the same call may succeed later. A missing or short object stays so.
fn may_pass(error: &StoreError) -> bool {
    matches!(error, StoreError::Io { .. } | StoreError::Full)
}

impl Store for RetryStore {
    pass_on!(self => self.inner; free_bytes lock may_keep may_round_up expect_reads);

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        self.persist(|| self.inner.read(reads))
    }

    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        self.persist(|| self.inner.write(writes))
    }

    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.persist(|| self.inner.write_durable(object, offset, data))
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        self.persist(|| self.inner.sync(objects))
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        self.persist(|| self.inner.len(object))
    }

    /// With [`PutMode::IfAbsent`] it makes only one attempt: a failed one may have succeeded.
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        match mode {
            PutMode::IfAbsent => self.inner.put(object, data, mode),
            PutMode::Replace => self.persist(|| self.inner.put(object, data, mode)),
        }
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.persist(|| self.inner.truncate(object, len))
    }

    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        self.persist(|| self.inner.allocate(object, len))
    }

    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        self.persist(|| self.inner.discard(ranges))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        self.persist(|| self.inner.delete(objects))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.persist(|| self.inner.list())
    }
}
