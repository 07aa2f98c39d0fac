//! [`FaultShare`]: fails the call that a test picks.

use oblivio_store::share::{Result, Share, ShareCall, ShareError, ShareReply};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether the failing call takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// It is not carried out.
    Before,
    /// It is carried out, and its reply is lost.
    After,
}

/// A layer that fails one call, as a line that breaks does.
#[derive(Debug)]
pub struct FaultShare<S> {
    inner: S,
    calls: AtomicU64,
    fault: Mutex<Option<(u64, When)>>,
}

impl<S> FaultShare<S> {
    /// Fails nothing yet.
    pub fn new(inner: S) -> Self {
        Self { inner, calls: AtomicU64::new(0), fault: Mutex::new(None) }
    }

    /// Fails the call `distance` after the next one, once.
    pub fn fail_in(&self, distance: u64, when: When) {
        let at = self.calls() + distance;
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some((at, when));
    }

    /// Calls so far, failed ones included.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// The volume below.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn judge(&self) -> Option<When> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.take_if(|(at, _)| *at == call).map(|(_, when)| when)
    }
}

impl<S: Share> Share for FaultShare<S> {
    fn device(&self) -> u16 {
        self.inner.device()
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        let broken = || Err(ShareError::Line(io::ErrorKind::ConnectionReset.into()));
        match self.judge() {
            Some(When::Before) => broken(),
            Some(When::After) => self.inner.call(call).and_then(|_| broken()),
            None => self.inner.call(call),
        }
    }
}
