//! How a block device ends: by a signal, or because its volume or the driver failed.
//!
//! The first signal removes the device, after the system has written back its cache, and commits. A
//! mounted device is removed when it is unmounted. The second signal, or ten seconds without
//! progress of the store, ends at any price.

use super::session::{UblkServing, joined};
use crate::ending::{AskToEnd, GRACE};
use crate::error::{Error, Result, Unsafe};
use crate::log;
use crate::nbd::request::DiskQueue;
use oblivio_ublk::Device;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often to check whether the device is still in use.
const OFTEN: Duration = Duration::from_millis(100);

/// How long processes that have the device open may take to close it.
const LETTING_GO: Duration = Duration::from_secs(2);

enum Event {
    Signal,
    /// Nobody answers the kernel any more.
    Requests(Result<()>),
    /// The server has ended.
    Server(Result<()>),
}

/// The phase of ending.
enum Phase {
    Serving,
    /// A signal came, but the device is mounted.
    InUse,
    /// The removal of the device began then.
    Stopping(Instant),
}

/// Serves until it has ended and all is committed, or until it is given up. `hear` gets what to
/// call for each signal.
///
/// # Errors
/// The server or the driver failed, or the server was given up.
pub fn until_ended(
    serving: UblkServing,
    hear: impl FnOnce(AskToEnd) -> io::Result<()>,
) -> Result<()> {
    let UblkServing { queue, device, requests, server } = serving;
    let (tell, events) = channel();
    let signal = tell.clone();
    hear(Box::new(move || drop(signal.send(Event::Signal))))?;
    let asked = tell.clone();
    thread::Builder::new().name("end of requests".into()).spawn(move || {
        let _ = asked.send(Event::Requests(joined(requests)));
    })?;
    thread::Builder::new().name("end".into()).spawn(move || {
        let _ = tell.send(Event::Server(server.wait()));
    })?;
    let mut unanswered = false;
    let ended = watch(&queue, &device, &events, &mut unanswered);
    leave(&device, &events, unanswered)?;
    ended
}

/// Deletes the device. If it still exists the system loses it now; the queue is dead by then, so
/// every request gets an error.
fn leave(device: &Arc<Device>, events: &Receiver<Event>, mut unanswered: bool) -> Result<()> {
    let since = Instant::now();
    if !unanswered {
        take_away(device)?;
    }
    while !unanswered && since.elapsed() < GRACE {
        unanswered = matches!(events.recv_timeout(OFTEN), Ok(Event::Requests(_)));
    }
    let path = device.path();
    if !unanswered {
        // The driver would wait for the answering threads.
        log::note(&format!("what is left of {} is not deleted", path.display()));
        return Ok(());
    }
    let (tell, deleted) = channel();
    let device = Arc::clone(device);
    thread::Builder::new().name("ublk delete".into()).spawn(move || {
        let _ = tell.send(device.delete());
    })?;
    match deleted.recv_timeout(LETTING_GO) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            log::note(&format!("{} could not be deleted: {error}", path.display()));
        }
        // It is as good as deleted: only the driver's answer is missing.
        Err(_) => log::note(&format!("{} goes when it is unmounted", path.display())),
    }
    Ok(())
}

/// Runs until everything has ended; `unanswered` says whether the kernel gets no more answers.
fn watch(
    queue: &DiskQueue,
    device: &Arc<Device>,
    events: &Receiver<Event>,
    unanswered: &mut bool,
) -> Result<()> {
    let mut phase = Phase::Serving;
    let mut driver = Ok(());
    loop {
        let pause = if matches!(phase, Phase::Serving) { Duration::from_secs(3600) } else { OFTEN };
        match events.recv_timeout(pause) {
            Ok(Event::Signal) => match phase {
                Phase::Serving if device.in_use() => {
                    log::note(&format!(
                        "{} is mounted: unmount it, and this ends. A second signal ends it at once, \
                         and what a file system has not written is lost",
                        device.path().display()
                    ));
                    phase = Phase::InUse;
                }
                Phase::Serving | Phase::InUse => phase = take_away(device)?,
                Phase::Stopping(_) => return give_up(queue),
            },
            Ok(Event::Requests(result)) => {
                driver = result;
                *unanswered = true;
                queue.close();
            }
            Ok(Event::Server(result)) => {
                return result.and(driver).map_err(Error::unflushed);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return driver,
        }
        match phase {
            Phase::InUse if !device.in_use() => phase = take_away(device)?,
            Phase::Stopping(since) if since.elapsed() >= GRACE && queue.idle_for() >= GRACE => {
                return give_up(queue);
            }
            _ => {}
        }
    }
}

/// Stops the device, while its requests are still answered.
fn take_away(device: &Arc<Device>) -> Result<Phase> {
    let device = Arc::clone(device);
    thread::Builder::new().name("ublk stop".into()).spawn(move || {
        if let Err(error) = device.stop() {
            log::note(&format!("{} could not be stopped: {error}", device.path().display()));
        }
    })?;
    Ok(Phase::Stopping(Instant::now()))
}

/// The store does not answer; all waiting requests get an error.
fn give_up(queue: &DiskQueue) -> Result<()> {
    queue.kill();
    Err(Error::GivenUp(Unsafe::Unflushed))
}
