//! How a mount ends: by being unmounted, or by a signal.
//!
//! The first signal unmounts, which makes the kernel write back its cache, and then commits. What
//! is in use is unmounted once it is free. The second signal, or ten seconds without progress of
//! the store, ends at any price.

use super::attach::{self, Stuck};
use super::busy;
use super::session::{MountQueues, Mounted};
use crate::ending::{AskToEnd, GRACE};
use crate::error::{Error, Result, Unsafe};
use crate::log;
use crate::threads::spawn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

enum Event {
    Signal,
    Detached(Result<(), Stuck>),
    Ended(Result<()>),
}

/// The stage of ending.
enum Stage {
    Serving,
    /// Asked to end; waits for the unmount and the last commit.
    Ending {
        since: Instant,
    },
    /// Not unmounted, because it is in use. It is tried again and again.
    Busy,
    /// Detached; its users go on.
    Detached,
}

/// Serves until the mount has ended and all is committed, or until it is given up. `hear` gets what
/// to call for each signal. Returns the number of files that lost data.
///
/// # Errors
/// The server failed, or was given up.
pub fn until_ended(
    mounted: Mounted,
    dir: &Path,
    hear: impl FnOnce(AskToEnd) -> io::Result<()>,
) -> Result<u64> {
    let (tell, events) = channel();
    let signal = tell.clone();
    hear(Box::new(move || drop(signal.send(Event::Signal))))?;
    let (queues, lost) = (mounted.queues.clone(), Arc::clone(&mounted.lost));
    let ended = tell.clone();
    spawn("end", move || {
        let _ = ended.send(Event::Ended(mounted.wait()));
    })?;
    let dir = dir.to_owned();
    let (stage, asked, retry, noted) = (Stage::Serving, Instant::now(), None, false);
    Ending { dir, queues, tell, stage, asked, retry, noted }.run(&events)?;
    Ok(lost.load(Ordering::Relaxed))
}

struct Ending {
    dir: PathBuf,
    queues: MountQueues,
    tell: Sender<Event>,
    stage: Stage,
    /// When the first signal came.
    asked: Instant,
    /// When unmounting is tried again.
    retry: Option<Instant>,
    /// Whether the note that it is in use was printed.
    noted: bool,
}

/// A mount that is in use for less is not reported: between fork and exec, a child process holds
/// its parent's files.
const NOTE_AFTER: Duration = Duration::from_millis(300);
/// The pause between two looks at what is due.
const TICK: Duration = Duration::from_millis(500);

impl Ending {
    fn run(mut self, events: &Receiver<Event>) -> Result<()> {
        loop {
            let due = self.retry.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
            match events.recv_timeout(due.min(TICK)) {
                Ok(Event::Signal) => {
                    if self.signal()? {
                        return self.give_up();
                    }
                }
                Ok(Event::Detached(result)) => self.detached(result),
                Ok(Event::Ended(result)) => {
                    // It may have ended by itself, with the directory still attached.
                    if result.is_err() {
                        let _ = attach::detach(&self.dir, true);
                    }
                    return result.map_err(Error::uncommitted);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            if self.retry.is_some_and(|at| at <= Instant::now()) {
                self.retry = None;
                self.detach()?;
            }
            if let Stage::Ending { since } = self.stage
                && since.elapsed() >= GRACE
                && self.queues.idle_for() >= GRACE
            {
                return self.give_up();
            }
        }
    }

    /// Handles a signal; returns whether to give up.
    fn signal(&mut self) -> Result<bool> {
        match self.stage {
            Stage::Serving => {
                self.asked = Instant::now();
                self.stage = Stage::Ending { since: self.asked };
                self.detach()?;
            }
            Stage::Busy => {
                log::note("detached; it ends when the last file is closed. Once more ends it now");
                (self.stage, self.retry) = (Stage::Detached, None);
                let _ = attach::detach(&self.dir, true);
            }
            // Nobody will close the open files; their written data is kept all the same.
            Stage::Detached => {
                self.stage = Stage::Ending { since: Instant::now() };
                self.queues.close();
            }
            Stage::Ending { .. } => return Ok(true),
        }
        Ok(false)
    }

    /// Unmounts, on a thread of its own: the kernel first writes back its cache, which takes as
    /// long as the store takes.
    fn detach(&self) -> io::Result<()> {
        let (dir, tell) = (self.dir.clone(), self.tell.clone());
        spawn("detach", move || {
            let _ = tell.send(Event::Detached(attach::detach(&dir, false)));
        })?;
        Ok(())
    }

    fn detached(&mut self, result: Result<(), Stuck>) {
        match result {
            // A second signal came first.
            _ if matches!(self.stage, Stage::Detached) => {}
            Ok(()) => {
                if let Stage::Busy = self.stage {
                    self.stage = Stage::Ending { since: Instant::now() };
                }
            }
            Err(Stuck::Busy) => {
                self.stage = Stage::Busy;
                if self.asked.elapsed() >= NOTE_AFTER && !self.noted {
                    self.noted = true;
                    log::note(&format!(
                        "{}. It ends when that is closed; end it again to detach it as it is",
                        busy::in_use(&self.dir)
                    ));
                    drop(Mounted::commit(&self.queues.own));
                }
                let pause = if self.noted { TICK } else { attach::PAUSE };
                self.retry = Some(Instant::now() + pause);
            }
            // Another process was quicker, or the kernel has closed it: the session ends by itself.
            Err(Stuck::Other(error)) => {
                if !matches!(self.stage, Stage::Busy) {
                    log::note(&error.line());
                }
                self.stage = Stage::Busy;
            }
        }
    }

    /// The store does not answer. All waiting callers get an error, or neither they nor the kernel
    /// could get rid of the mount.
    fn give_up(self) -> Result<()> {
        self.queues.kill();
        let _ = attach::detach(&self.dir, true);
        Err(Error::GivenUp(Unsafe::Uncommitted))
    }
}
