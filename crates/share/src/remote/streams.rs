//! [`Streams`]: calls that the server goes on with. It replies each time that something comes, so
//! that no round trip lies between two replies.

use super::link::{Came, Link};
use oblivio_store::share::{Result, ShareCall, ShareError, ShareReply};
use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most replies to a call that wait to be taken.
const MOST_KEPT: usize = 16;

/// The calls under way: one for asks, one for answers, one for notices.
#[derive(Default)]
pub struct Streams([Mutex<Option<Stream>>; 3]);

/// A call that the server goes on with.
struct Stream {
    /// The call that asks for what comes next.
    next: ShareCall<'static>,
    link: Arc<Link>,
    number: u64,
    replies: Receiver<Came>,
}

/// The place of a call that the server goes on with.
fn place_of(call: &ShareCall<'_>) -> Option<(usize, ShareCall<'static>)> {
    let found = match *call {
        ShareCall::Asks { term, from, wait } => (0, ShareCall::Asks { term, from, wait }),
        ShareCall::Answers { session, from, wait } => {
            (1, ShareCall::Answers { session, from, wait })
        }
        ShareCall::Notices { from, wait } => (2, ShareCall::Notices { from, wait }),
        _ => return None,
    };
    (!call.wait().is_zero()).then_some(found)
}

/// Whether a call ended without anything.
fn is_nothing(done: &Result<ShareReply>) -> bool {
    match done {
        Ok(ShareReply::Asks(came, _)) => came.is_empty(),
        Ok(ShareReply::Answers(came)) => came.is_empty(),
        Ok(ShareReply::Notices(came)) => came.is_empty(),
        _ => false,
    }
}

fn lost() -> ShareError {
    ShareError::Line(ErrorKind::UnexpectedEof.into())
}

impl Streams {
    /// Makes a call if it is such a one, or takes the next reply to the one that is under way.
    /// Waits for a reply at most this long beyond the call's own wait.
    pub fn call(
        &self,
        call: &ShareCall<'_>,
        patience: Duration,
        link: &dyn Fn() -> Result<Arc<Link>>,
    ) -> Option<Result<ShareReply>> {
        let (place, call) = place_of(call)?;
        let held = || self.0[place].lock().unwrap_or_else(PoisonError::into_inner);
        let mut stream = held().take().filter(|stream| stream.next == call);
        // The end of one under way is not the end of this call's wait.
        let came = stream.as_mut().and_then(|stream| stream.take(patience));
        let (done, goes_on) = match came.filter(|(done, _)| !is_nothing(done)) {
            Some(came) => came,
            None => match link().and_then(|link| Stream::begin(link, call)) {
                Ok(new) => stream.insert(new).take(patience).unwrap_or((Err(lost()), false)),
                Err(error) => return Some(Err(error)),
            },
        };
        *held() = stream.filter(|_| goes_on);
        Some(done)
    }
}

impl Stream {
    fn begin(link: Arc<Link>, call: ShareCall<'static>) -> Result<Self> {
        let (number, replies) = link.begin(&call, MOST_KEPT)?;
        Ok(Self { next: call, link, number, replies })
    }

    /// Waits for the next reply, and returns it, and whether others follow. None if some were lost,
    /// because nobody took those before.
    fn take(&mut self, patience: Duration) -> Option<(Result<ShareReply>, bool)> {
        match self.replies.recv_timeout(self.next.wait() + patience) {
            Ok((done, is_last)) => {
                let next = done.as_ref().ok().and_then(|reply| self.next.after(reply));
                let next = next.filter(|_| !is_last);
                self.next = next.unwrap_or(self.next);
                Some((done, next.is_some()))
            }
            Err(RecvTimeoutError::Timeout) => {
                Some((Err(self.link.give_up(ErrorKind::TimedOut)), false))
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Drop for Stream {
    /// A server that never ends the call leaves nothing here.
    fn drop(&mut self) {
        self.link.forget(self.number);
    }
}
