//! How a served disk ends: by a signal, or because its volume failed.
//!
//! The first signal accepts no more requests, answers the waiting ones, and commits. The second
//! one, or ten seconds without progress of the store, ends at any price.

use super::session::{DiskEnding, DiskServing};
use crate::ending::{AskToEnd, GRACE};
use crate::error::{Error, Result, Unsafe};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often the remaining clients are counted.
const OFTEN: Duration = Duration::from_millis(50);

enum Event {
    Signal,
    Ended(Result<()>),
}

/// Serves until it has ended and all is committed, or until it is given up. `hear` gets what to
/// call for each signal.
///
/// # Errors
/// The server failed, or was given up.
pub fn until_ended(
    serving: DiskServing,
    hear: impl FnOnce(AskToEnd) -> io::Result<()>,
) -> Result<()> {
    let ending = serving.ending();
    let (tell, events) = channel();
    let signal = tell.clone();
    hear(Box::new(move || drop(signal.send(Event::Signal))))?;
    thread::Builder::new().name("end".into()).spawn(move || {
        let _ = tell.send(Event::Ended(serving.wait()));
    })?;
    watch(&ending, &events)
}

fn watch(ending: &DiskEnding, events: &Receiver<Event>) -> Result<()> {
    let mut since: Option<Instant> = None;
    loop {
        let pause = if since.is_some() { OFTEN } else { Duration::from_secs(3600) };
        match events.recv_timeout(pause) {
            Ok(Event::Signal) if since.is_some() => return give_up(ending),
            Ok(Event::Signal) => {
                since = Some(Instant::now());
                ending.begin();
            }
            Ok(Event::Ended(result)) => {
                ending.begin();
                ending.leave_clients();
                return result.map_err(Error::unflushed);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        let Some(since) = since else { continue };
        if ending.alone() {
            ending.queues.close();
        }
        if since.elapsed() >= GRACE {
            if ending.queues.idle_for() >= GRACE {
                return give_up(ending);
            }
            ending.leave_clients();
        }
    }
}

/// The store does not answer; all waiting requests get an error.
fn give_up(ending: &DiskEnding) -> Result<()> {
    ending.queues.kill();
    ending.leave_clients();
    Err(Error::GivenUp(Unsafe::Unflushed))
}
