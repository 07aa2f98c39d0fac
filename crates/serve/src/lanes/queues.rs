//! The queues of a volume and of its lanes.

use crate::queue::{Refusal, RequestQueue};
use std::sync::Arc;
use std::time::Duration;

/// The queue of a volume, and those of its lanes that are open.
pub struct Queues<Op, A, E> {
    pub own: Arc<RequestQueue<Op, A, E>>,
    pub lanes: Vec<Option<Arc<RequestQueue<Op, A, E>>>>,
}

impl<Op, A, E> Clone for Queues<Op, A, E> {
    fn clone(&self) -> Self {
        Self { own: Arc::clone(&self.own), lanes: self.lanes.clone() }
    }
}

impl<Op, A, E: Refusal> Queues<Op, A, E> {
    fn open_lanes(&self) -> impl Iterator<Item = &Arc<RequestQueue<Op, A, E>>> {
        self.lanes.iter().flatten()
    }

    /// Accepts no more requests. Lanes end first: what they have goes along with the end of the
    /// volume, whose queue is closed once they have ended.
    pub fn close(&self) {
        self.open_lanes().for_each(|lane| lane.close());
        if self.open_lanes().next().is_none() {
            self.own.close();
        }
    }

    /// Gives up: all waiting requests get an error.
    pub fn kill(&self) {
        self.open_lanes().for_each(|lane| lane.kill());
        self.own.kill();
    }

    /// For how long none has finished anything.
    pub fn idle_for(&self) -> Duration {
        let lanes = self.open_lanes().map(|lane| lane.idle_for());
        lanes.fold(self.own.idle_for(), Duration::min)
    }
}
