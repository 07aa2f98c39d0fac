//! A disk that is served by the process that uses it, over whatever blocks that process has.

use super::listen::{Listener, Place};
use super::session::{Options, Serving, serve};
use crate::queue::Pulse;
use anyhow::Result;
use oblivio_volume::BlockSpace;
use oblivio_volume::disk::{Disk, size_in};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// As `oblivio nbd` has it when it is not told otherwise.
const COMMIT_EVERY: Duration = Duration::from_secs(5);
/// Nothing here tells that a store is at work, so requests are given up late.
const TIMEOUT: Duration = Duration::from_secs(600);
/// So long may clients take for their replies at the end.
const GRACE: Duration = Duration::from_secs(10);
const OFTEN: Duration = Duration::from_millis(5);

/// A disk that is being served.
pub struct Served {
    serving: Serving,
}

/// Serves blocks as a disk on a socket, as `oblivio nbd` does: the disk that they hold, or one of
/// `size` bytes that is made there.
///
/// # Errors
/// Those of the blocks, and what is in the way at the socket's path.
pub fn nbd_within(blocks: Box<dyn BlockSpace>, size: u64, socket: &Path) -> Result<Served> {
    let disk = match size_in(blocks.root())? {
        Some(_) => Disk::open(blocks)?,
        None => Disk::format(blocks, size)?,
    };
    let listener = Listener::open(&Place::socket(socket)?)?;
    let options = Options {
        read_only: false,
        commit_every: COMMIT_EVERY,
        paced: false,
        timeout: TIMEOUT,
        on_request: None,
        pulse: Pulse::default(),
    };
    Ok(Served { serving: serve(disk, listener, options)? })
}

impl Served {
    /// Takes no more requests, and comes back when everything is committed.
    ///
    /// # Errors
    /// Those of the last commit.
    pub fn end(self) -> Result<()> {
        let (ending, begun) = (self.serving.ending(), Instant::now());
        ending.begin();
        while !ending.alone() && begun.elapsed() < GRACE {
            thread::sleep(OFTEN);
        }
        ending.leave_clients();
        ending.queue.close();
        self.serving.wait()
    }
}
