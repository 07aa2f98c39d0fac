//! [`WatchedShare`]: a layer over the line to a share's server.

use super::{Watch, words};
use oblivio_store::share::{Result, Share, ShareCall, ShareError, ShareReply};

/// A layer that says when the server is silent. A call that may wait at the server for news is none
/// that keeps anybody waiting; when it fails, the server is silent from then on.
pub struct WatchedShare<S> {
    inner: S,
    watch: Watch,
}

impl<S: Share> WatchedShare<S> {
    /// Over the line to a volume with this name.
    #[must_use]
    pub fn over(inner: S, name: String) -> Self {
        Self { inner, watch: Watch::new(words(name)) }
    }
}

impl<S: Share> Share for WatchedShare<S> {
    fn device(&self) -> u16 {
        self.inner.device()
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        let waits = !call.wait().is_zero();
        if !waits {
            self.watch.begin();
        }
        let reply = self.inner.call(call);
        let failure = match &reply {
            Err(ShareError::Line(error)) => Some(error.to_string()),
            _ => None,
        };
        if waits {
            self.watch.heard(failure)
        } else {
            self.watch.end(failure)
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::share::{AskNumber, ClientSession};
    use std::io::ErrorKind;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    /// A server whose replies wait for the test.
    struct Played(Mutex<Receiver<Result<ShareReply>>>);

    impl Share for Played {
        fn device(&self) -> u16 {
            1
        }

        fn call(&self, _: ShareCall<'_>) -> Result<ShareReply> {
            self.0.lock().unwrap().recv().unwrap()
        }
    }

    #[test]
    fn what_waits_for_news_is_silent_once_it_fails() {
        let ((reply, replies), (say, said)) = (channel(), channel());
        let tell = Box::new(move |why: Option<&str>| say.send(why.map(str::to_owned)).unwrap());
        let watch = Watch::after((Duration::ZERO, Duration::MAX / 4), tell);
        let share = WatchedShare { inner: Played(Mutex::new(replies)), watch };
        let news = || share.answers(ClientSession::of(1, 1), AskNumber(0), Duration::from_secs(20));
        reply.send(Ok(ShareReply::Answers(Vec::new()))).unwrap();
        news().unwrap();
        assert!(share.watch.0.state().since.is_none());
        reply.send(Err(ShareError::Line(ErrorKind::TimedOut.into()))).unwrap();
        assert!(news().is_err());
        assert_eq!(said.recv().unwrap().as_deref(), Some("timed out"));
        reply.send(Ok(ShareReply::Answers(Vec::new()))).unwrap();
        news().unwrap();
        assert!(share.watch.0.state().since.is_none() && said.try_recv().is_err());
    }

    #[test]
    fn what_does_not_is_from_its_beginning() {
        let ((reply, replies), (say, said)) = (channel(), channel());
        let tell = Box::new(move |why: Option<&str>| say.send(why.map(str::to_owned)).unwrap());
        let watch = Watch::after((Duration::ZERO, Duration::MAX / 4), tell);
        let share = WatchedShare { inner: Played(Mutex::new(replies)), watch };
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| share.parameters());
            assert_eq!(said.recv().unwrap(), None);
            reply.send(Ok(ShareReply::Parameters(None))).unwrap();
            assert!(asking.join().unwrap().unwrap().is_none());
        });
    }
}
