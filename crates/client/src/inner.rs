//! What a client's threads share.

use crate::error::{Failure, of_share};
use crate::known::HeadKeeper;
use crate::session::{SessionState, Trouble};
use crate::volume::Keyed;
use oblivio_engine::pyramid::share::{Ask, Head};
use oblivio_store::share::{SealedAsk as Sealed, Share, ShareError};
use oblivio_volume::{Error, Result};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How a client behaves.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// How long a transaction may take before it fails. It may be carried out later.
    pub timeout: Duration,
    /// Whether it may become the scribe.
    pub scribe: bool,
    /// Whether it is to hear what others change: [`Client::changed`](crate::Client::changed).
    pub notices: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(60), scribe: true, notices: false }
    }
}

/// The way to the scribe of this client. It tells whether the scribe is there.
pub(crate) type Own = Box<dyn Fn(&[Sealed]) -> bool + Send>;

/// What its threads share.
pub(crate) struct Inner {
    pub share: Box<dyn Share>,
    pub keyed: Keyed,
    pub options: ClientOptions,
    pub known: Mutex<Box<dyn HeadKeeper>>,
    pub state: Mutex<SessionState>,
    /// Where its asks go while it is the scribe.
    pub own: Mutex<Option<Own>>,
    /// Asks came, or something else for the threads.
    pub work: Condvar,
    /// Answers came, or something else for callers.
    pub came: Condvar,
}

impl Inner {
    pub fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changes, at most this long.
    pub fn rest<'d>(
        &self,
        state: MutexGuard<'d, SessionState>,
        time: Duration,
    ) -> MutexGuard<'d, SessionState> {
        self.work.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Pauses, unless the threads are to end. Returns whether they are.
    pub fn pause(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut state = self.state();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if state.stopping || left.is_zero() {
                return state.stopping;
            }
            state = self.rest(state, left);
        }
    }

    /// Nothing more can be done.
    pub fn fail(&self, failure: Failure) {
        self.state().failed.get_or_insert(failure);
        self.came.notify_all();
        self.work.notify_all();
    }

    /// Asks something for whose answer nobody waits.
    pub fn begin(&self, asks: &[Ask]) {
        let _ = self.state().begin(asks, false, Instant::now());
        self.work.notify_all();
    }

    /// From now on asks go to the scribe of this client, or else to the server. Those that went the
    /// other way go again: it may be that nobody has them.
    pub fn lead(&self, own: Option<Own>) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = own;
        self.state().lost = true;
        self.work.notify_all();
    }

    /// Hands asks to the scribe of this client. Whether there is one.
    pub fn ask_own(&self, asks: &[Sealed]) -> bool {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.as_ref().is_some_and(|take| take(asks))
    }

    /// Notes an error of the server, which may pass or not.
    pub fn trouble(&self, error: ShareError) {
        if let ShareError::Denied(why) = error {
            return self.fail(Failure::Denied(why));
        }
        let what = error.to_string();
        let is_full = matches!(of_share(error), Error::Full(_));
        self.state().trouble = Some(Trouble { what, is_full });
    }

    /// The newest head that this computer knows.
    pub fn newest_known(&self) -> Head {
        let noted = self.known.lock().unwrap_or_else(PoisonError::into_inner).head();
        let seen = self.state().head();
        if noted.number > seen.number { noted } else { seen }
    }

    /// Notes the newest head that is known to be durable.
    pub fn note(&self, head: Head, durable: bool) -> Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if head.number < known.head().number {
            return Ok(());
        }
        known.note(head, durable)
    }
}
