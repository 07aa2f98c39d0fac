//! [`Silence`]: a layer over a store on a network.

use super::{Watch, words};
use oblivio_store::{Layer, Objects, Result, StoreAnswer, StoreCall, StoreError};
use std::sync::Arc;

/// A layer that says when the store is silent.
pub(crate) struct Silence {
    inner: Arc<dyn Objects>,
    watch: Watch,
}

impl Silence {
    /// Over the store with this name.
    #[must_use]
    pub(crate) fn over(inner: Arc<dyn Objects>, name: String) -> Self {
        Self { inner, watch: Watch::new(words(name)) }
    }
}

impl Layer for Silence {
    type Below = dyn Objects;

    fn below(&self) -> &Self::Below {
        &*self.inner
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        self.watch.begin();
        let answer = call.on(&*self.inner);
        self.watch.end(match &answer {
            // Whatever else it said is an answer.
            Err(error) if error.is_offline() => Some(match error {
                StoreError::Io { source, .. } => source.to_string(),
                error => error.to_string(),
            }),
            _ => None,
        });
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{Held, MemoryStore};
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;
    use std::time::Duration;

    /// A store in memory whose answers wait for the test.
    struct Told(MemoryStore, Mutex<Receiver<Result<()>>>);

    impl Layer for Told {
        type Below = MemoryStore;

        fn below(&self) -> &Self::Below {
            &self.0
        }

        fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
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
        (answer, said, Silence { inner, watch: Watch::after((Duration::ZERO, later), tell) })
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
        assert!(store.watch.0.state().since.is_none());
    }

    /// A slow line, where each object takes long: one word is enough.
    #[test]
    fn of_a_store_that_answers_it_is_said_once() {
        let (answer, said, store) = rig(Duration::ZERO);
        for _ in 0..3 {
            thread::scope(|scope| {
                let asking = scope.spawn(|| store.len("a"));
                if !store.watch.0.state().slow {
                    // The first word is of one that never answered.
                    assert_eq!(said.recv().unwrap(), None);
                }
                answer.send(Ok(())).unwrap();
                asking.join().unwrap().unwrap();
            });
        }
        assert!(store.watch.0.state().slow && said.try_recv().is_err());
    }
}
