//! A lane that is served, and how it ends.

use crate::error::{Error, Result};
use crate::queue::{Refusal, RequestQueue};
use crate::server::Running;
use oblivio_volume::{Error as VolumeError, LaneSync};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A lane with a server at work.
pub struct ServedLane {
    server: Running,
    sync: LaneSync,
    unused: u64,
}

/// The same once its server has ended: all that was written is accepted.
struct EndedLane {
    ended: Result<()>,
    sync: LaneSync,
    accepted: u64,
    unused: u64,
}

impl ServedLane {
    /// Starts its server, which had taken in this much before anybody wrote.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn start<Op, A, E>(
        queue: &Arc<RequestQueue<Op, A, E>>,
        (sync, unused): (LaneSync, u64),
        serve: impl FnOnce() -> oblivio_volume::Result<()> + Send + 'static,
    ) -> io::Result<Self>
    where
        Op: Send + 'static,
        A: Send + 'static,
        E: Refusal,
    {
        Ok(Self { server: Running::start(queue, serve)?, sync, unused })
    }

    fn wait(self) -> EndedLane {
        let ended = self.server.wait();
        let accepted = self.sync.accepted();
        EndedLane { ended, accepted, sync: self.sync, unused: self.unused }
    }

    /// Waits until the lanes have ended, and then their volume, whose queue is closed by then.
    ///
    /// # Errors
    /// The first that ended one of them. The volume did not carry everything.
    pub fn wait_all<Op, A, E: Refusal>(
        lanes: Vec<Self>,
        own: &RequestQueue<Op, A, E>,
        server: Running,
    ) -> Result<()> {
        let lanes: Vec<_> = lanes.into_iter().map(Self::wait).collect();
        if !lanes.is_empty() {
            own.close();
        }
        server.wait()?;
        lanes.into_iter().try_for_each(EndedLane::expect)
    }
}

impl EndedLane {
    /// Once the volume has ended too: refuses to say that all went well if it did not carry
    /// everything.
    fn expect(self) -> Result<()> {
        self.ended?;
        if self.accepted == self.unused {
            return Ok(());
        }
        self.sync.wait(self.accepted, Duration::ZERO).map_err(|error| match error {
            VolumeError::Full(why) => Error::NotCarried(why),
            error => error.into(),
        })
    }
}
