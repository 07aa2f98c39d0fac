//! A lane that is served, and how it ends.

use super::tally::LaneTally;
use crate::error::Result;
use crate::queue::{Refusal, RequestQueue};
use crate::server::Running;
use std::io;
use std::sync::Arc;

/// A lane with a server at work.
pub struct ServedLane {
    server: Running,
    tally: LaneTally,
}

impl ServedLane {
    /// Starts its server.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn start<Op, A, E>(
        queue: &Arc<RequestQueue<Op, A, E>>,
        tally: LaneTally,
        serve: impl FnOnce() -> oblivio_volume::Result<()> + Send + 'static,
    ) -> io::Result<Self>
    where
        Op: Send + 'static,
        A: Send + 'static,
        E: Refusal,
    {
        Ok(Self { server: Running::start(queue, serve)?, tally })
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
        let wait = |lane: Self| (lane.server.wait(), lane.tally);
        let lanes: Vec<_> = lanes.into_iter().map(wait).collect();
        if !lanes.is_empty() {
            own.close();
        }
        server.wait()?;
        lanes.into_iter().try_for_each(|(ended, tally)| ended.and_then(|()| tally.expect_carried()))
    }
}
