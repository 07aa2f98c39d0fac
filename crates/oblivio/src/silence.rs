//! [`Silence`]: a layer that says when a store on a network keeps its caller waiting.
//!
//! It changes no call. Nobody should look at a command for more than a few seconds and not know
//! what it waits for.

use oblivio_store::{Answer, Call, Layer, Result, Store, StoreError, waits};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Called once for each time that the store is silent, with the newest failure, if there was one.
pub(crate) type OnSilence = Box<dyn Fn(Option<&str>) + Send + Sync>;

/// A layer over a store on a network.
pub(crate) struct Silence {
    inner: Arc<dyn Store>,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    first: Duration,
    later: Duration,
    tell: OnSilence,
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

impl Silence {
    /// A layer that tells after [`waits::WORD`], and after [`waits::LATER_WORD`] of a store that
    /// answered before and has not failed since: it may be at work on much.
    #[must_use]
    pub(crate) fn over(inner: Arc<dyn Store>, tell: OnSilence) -> Self {
        Self::after(inner, (waits::WORD, waits::LATER_WORD), tell)
    }

    fn after(inner: Arc<dyn Store>, (first, later): (Duration, Duration), tell: OnSilence) -> Self {
        let (state, changed) = Default::default();
        let shared = Arc::new(Shared { state, changed, first, later, tell });
        let watching = Arc::clone(&shared);
        // Without a thread nothing is said, and all else works.
        let watch = thread::Builder::new().name("silence".into());
        #[expect(clippy::disallowed_methods, reason = "who waits cannot say so itself")]
        drop(watch.spawn(move || watching.watch()));
        Self { inner, shared }
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.changed.notify_all();
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

    fn begin(&self) {
        let mut state = self.state();
        state.calls += 1;
        if state.since.is_none() {
            state.since = Some(now());
            self.changed.notify_all();
        }
    }

    /// A failure that may pass leaves the store silent; whatever else it said is an answer.
    fn end(&self, answer: &Result<Answer>) {
        let mut state = self.state();
        state.calls -= 1;
        match answer {
            Err(error) if error.is_offline() => {
                state.failure = Some(match error {
                    StoreError::Io { source, .. } => source.to_string(),
                    error => error.to_string(),
                });
            }
            _ => {
                let since = (state.calls > 0).then(now);
                let State { calls, slow, .. } = *state;
                *state = State { calls, since, answered: true, slow, ..State::default() };
            }
        }
        self.changed.notify_all();
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

impl Layer for Silence {
    type Below = dyn Store;

    fn below(&self) -> &Self::Below {
        &*self.inner
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        self.shared.begin();
        let answer = call.on(&*self.inner);
        self.shared.end(&answer);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{Held, MemoryStore};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A store in memory whose answers wait for the test.
    struct Told(MemoryStore, Mutex<Receiver<Result<()>>>);

    impl Layer for Told {
        type Below = MemoryStore;

        fn below(&self) -> &Self::Below {
            &self.0
        }

        fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
            self.1.lock().unwrap().recv().unwrap()?;
            call.on(&self.0)
        }
    }

    fn silent() -> StoreError {
        StoreError::service("a", std::io::ErrorKind::TimedOut, "no answer in time".into())
    }

    fn rig(later: Duration) -> (Sender<Result<()>>, Receiver<Option<String>>, Silence) {
        let ((answer, answers), (say, said)) = (channel(), channel());
        let inner = Arc::new(Told(MemoryStore::new(), Mutex::new(answers)));
        let say = Mutex::new(say);
        let tell = Box::new(move |failure: Option<&str>| {
            say.lock().unwrap().send(failure.map(str::to_owned)).unwrap();
        });
        (answer, said, Silence::after(inner, (Duration::ZERO, later), tell))
    }

    #[test]
    fn a_store_that_says_nothing_is_told_of_once() {
        let (answer, said, store) = rig(Duration::MAX / 4);
        thread::scope(|scope| {
            let asking = scope.spawn(|| store.len("a"));
            assert_eq!(said.recv().unwrap(), None);
            answer.send(Err(silent())).unwrap();
            assert!(asking.join().unwrap().is_err());
            // Still silent: it was said.
            answer.send(Err(silent())).unwrap();
            assert!(store.len("a").is_err());
            answer.send(Ok(())).unwrap();
            assert_eq!(store.len("a").unwrap(), None);
            assert!(said.try_recv().is_err());
        });
    }

    #[test]
    fn one_that_answered_has_longer_until_it_fails() {
        let (answer, said, store) = rig(Duration::MAX / 4);
        for _ in 0..3 {
            answer.send(Ok(())).unwrap();
            store.len("a").unwrap();
        }
        // The first call had no answer for a moment.
        drop(said.try_iter().collect::<Vec<_>>());
        answer.send(Err(silent())).unwrap();
        assert!(store.len("a").is_err());
        assert_eq!(said.recv().unwrap().as_deref(), Some("no answer in time"));
        // What it refuses is an answer.
        answer.send(Err(StoreError::missing("a"))).unwrap();
        assert!(store.len("a").is_err());
        assert!(store.shared.state().since.is_none());
    }

    /// A slow line, where each object takes long: one word is enough.
    #[test]
    fn of_a_store_that_answers_it_is_said_once() {
        let (answer, said, store) = rig(Duration::ZERO);
        for _ in 0..3 {
            thread::scope(|scope| {
                let asking = scope.spawn(|| store.len("a"));
                if !store.shared.state().slow {
                    // The first word is of one that never answered.
                    assert_eq!(said.recv().unwrap(), None);
                }
                answer.send(Ok(())).unwrap();
                asking.join().unwrap().unwrap();
            });
        }
        assert!(store.shared.state().slow && said.try_recv().is_err());
    }
}
