//! Saying that a store or a server on a network keeps its caller waiting.
//!
//! It changes no call. Nobody should look at a command for more than a few seconds and not know
//! what it waits for.

#[cfg(feature = "share")]
mod share;
#[cfg(feature = "online")]
mod store;

use oblivio_store::waits;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(feature = "share")]
pub use share::WatchedShare;
#[cfg(feature = "online")]
pub(crate) use store::Silence;

/// What is called when a place does not answer for some seconds, with its name and the reason.
type OnSilence = Box<dyn Fn(&str, &str) + Send + Sync>;

static ON_SILENCE: OnceLock<OnSilence> = OnceLock::new();

/// From now on, says so when an online store or a share's server of this process does not answer
/// for some seconds, and why, as far as that is known. Only the first call counts.
pub fn on_silence(tell: impl Fn(&str, &str) + Send + Sync + 'static) {
    drop(ON_SILENCE.set(Box::new(tell)));
}

/// Called once for each time that it is silent, with the newest failure, if there was one.
type Tell = Box<dyn Fn(Option<&str>) + Send + Sync>;

/// What says so of a place with this name.
fn words(name: String) -> Tell {
    Box::new(move |failure| {
        if let Some(tell) = ON_SILENCE.get() {
            tell(&name, failure.unwrap_or("no answer yet"));
        }
    })
}

/// Watches the calls of one place, on a thread of its own.
struct Watch(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    first: Duration,
    later: Duration,
    tell: Tell,
}

#[derive(Default)]
struct State {
    /// Calls under way.
    calls: u32,
    /// Since when something was asked and nothing was answered.
    since: Option<Instant>,
    /// The newest failure since then.
    failure: Option<String>,
    told: bool,
    /// Anything was ever answered.
    answered: bool,
    /// It was said of one that answers that it takes long: once is enough for a slow line.
    slow: bool,
    over: bool,
}

impl Watch {
    /// Tells after [`waits::WORD`], and after [`waits::LATER_WORD`] of what answered before and has
    /// not failed since: it may be at work on much.
    fn new(tell: Tell) -> Self {
        Self::after((waits::WORD, waits::LATER_WORD), tell)
    }

    fn after((first, later): (Duration, Duration), tell: Tell) -> Self {
        let (state, changed) = Default::default();
        let shared = Arc::new(Shared { state, changed, first, later, tell });
        let watching = Arc::clone(&shared);
        // Without a thread nothing is said, and all else works.
        let watch = thread::Builder::new().name("silence".into());
        #[expect(clippy::disallowed_methods, reason = "who waits cannot say so itself")]
        drop(watch.spawn(move || watching.watch()));
        Self(shared)
    }

    /// A call is under way.
    fn begin(&self) {
        let mut state = self.0.state();
        state.calls += 1;
        if state.since.is_none() {
            state.since = Some(now());
            self.0.changed.notify_all();
        }
    }

    /// It was answered, or it failed in a way that may pass, which leaves the place silent.
    fn end(&self, failure: Option<String>) {
        self.0.state().calls -= 1;
        self.heard(failure);
    }

    /// A call that was not said to be under way was answered, or failed.
    fn heard(&self, failure: Option<String>) {
        let mut state = self.0.state();
        match failure {
            Some(_) => {
                state.failure = failure;
                state.since.get_or_insert_with(now);
            }
            None => {
                let since = (state.calls > 0).then(now);
                let State { calls, slow, .. } = *state;
                *state = State { calls, since, answered: true, slow, ..State::default() };
            }
        }
        self.0.changed.notify_all();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.changed.notify_all();
    }
}

#[expect(clippy::disallowed_methods, reason = "it measures a silence")]
fn now() -> Instant {
    Instant::now()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) {
        let mut state = self.state();
        while !state.over {
            let short = state.failure.is_some() || !state.answered;
            let limit = if short { self.first } else { self.later };
            let said = state.told || !short && state.slow;
            let due = state.since.filter(|_| !said).map(|since| since + limit);
            let left = due.map(|due| due.saturating_duration_since(now()));
            state = match left {
                Some(Duration::ZERO) => {
                    state.told = true;
                    state.slow |= !short;
                    let failure = state.failure.take();
                    drop(state);
                    (self.tell)(failure.as_deref());
                    self.state()
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
