//! A line to a server that can be cut, led to another server, and lied on.

use oblivio_store::share::{Result, Share, ShareCall, ShareError, ShareReply};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Lie = Box<dyn FnMut(&ShareCall<'_>, &mut ShareReply) + Send>;

pub struct Line {
    to: Mutex<Option<Arc<dyn Share>>>,
    cut: AtomicBool,
    lie: Mutex<Option<Lie>>,
}

impl Line {
    pub fn to(share: Arc<dyn Share>) -> Arc<Self> {
        let (to, cut, lie) = (Mutex::new(Some(share)), AtomicBool::new(false), Mutex::default());
        Arc::new(Self { to, cut, lie })
    }

    /// Whether all calls fail from now on.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }

    /// Leads to another server, or to none.
    pub fn lead(&self, to: Option<Arc<dyn Share>>) {
        *self.to.lock().unwrap() = to;
    }

    /// Changes replies from now on.
    pub fn lie(&self, lie: impl FnMut(&ShareCall<'_>, &mut ShareReply) + Send + 'static) {
        *self.lie.lock().unwrap() = Some(Box::new(lie));
    }

    fn lives(&self) -> Result<()> {
        let lost = || ShareError::Line(ErrorKind::ConnectionReset.into());
        if self.cut.load(Ordering::SeqCst) { Err(lost()) } else { Ok(()) }
    }
}

/// How long a call waits at the server for something to come. Clients call again and again; they
/// do not know the difference, and tests end soon.
const SHORT: Duration = Duration::from_millis(50);

fn brief(call: ShareCall<'_>) -> ShareCall<'_> {
    match call {
        ShareCall::Answers { session, from, wait } => {
            ShareCall::Answers { session, from, wait: wait.min(SHORT) }
        }
        ShareCall::Asks { term, from, wait } => {
            ShareCall::Asks { term, from, wait: wait.min(SHORT) }
        }
        ShareCall::Notices { from, wait } => ShareCall::Notices { from, wait: wait.min(SHORT) },
        ShareCall::Records { from, most_bytes, wait } => {
            ShareCall::Records { from, most_bytes, wait: wait.min(SHORT) }
        }
        other => other,
    }
}

impl Share for Line {
    fn device(&self) -> u16 {
        0
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        let call = brief(call);
        self.lives()?;
        let to = self.to.lock().unwrap().clone();
        let to = to.ok_or_else(|| ShareError::Line(ErrorKind::ConnectionRefused.into()))?;
        let mut reply = to.call(call)?;
        // A reply that was on its way is lost with the line.
        self.lives()?;
        if let Some(lie) = self.lie.lock().unwrap().as_mut() {
            lie(&call, &mut reply);
        }
        Ok(reply)
    }
}
