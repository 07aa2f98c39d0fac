//! Requests that are answered once the volume has carried what they cover.

use crate::queue::{AnswerSlot, Refusal};
use crate::threads::spawn;
use oblivio_volume::{Error, LaneStatus, LaneSync, LaneWait};
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// How long one waits for the volume.
const LANE_WAIT: Duration = Duration::from_secs(60);

/// Some that wait together.
struct Awaited<A, E> {
    /// What the lane had taken in before.
    accepted: u64,
    until: Instant,
    waiting: Vec<AnswerSlot<A, E>>,
}

/// Answers requests once the volume has carried what they cover.
pub struct LaneReplies<A, E> {
    sync: LaneSync,
    unused: u64,
    tell: Sender<Awaited<A, E>>,
}

impl<A: Send + 'static, E: Refusal> LaneReplies<A, E> {
    /// On a thread of its own, which ends with this. `done` is the answer to one that is carried,
    /// `refused` to one that is not.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn start(
        (sync, unused): (LaneSync, u64),
        done: fn() -> A,
        refused: fn(&Error) -> E,
    ) -> io::Result<Self> {
        let (tell, awaited) = channel();
        let carried = sync.clone();
        spawn("carried", move || answer(&carried, &awaited, done, refused))?;
        Ok(Self { sync, unused, tell })
    }

    /// How much more may wait in memory.
    pub fn room(&self) -> u64 {
        let most = LaneWait::default().memory_bytes as u64;
        most.saturating_sub(self.sync.status().waiting_bytes)
    }

    /// What is to be said of the lane. Nobody waits for what it had taken in when it was `unused`.
    pub fn status(&self) -> LaneStatus {
        let status = self.sync.status();
        match self.sync.accepted() == self.unused {
            true => LaneStatus { waiting: 0, waiting_bytes: 0, carried_by_bytes: 0, ..status },
            false => status,
        }
    }

    /// Answers these once all is durable that was accepted before.
    pub fn answer(&self, waiting: Vec<AnswerSlot<A, E>>) {
        let (accepted, until) = (self.sync.accepted(), Instant::now() + LANE_WAIT);
        // Without its thread nobody waits, and the queue answers that the server has ended.
        let _ = self.tell.send(Awaited { accepted, until, waiting });
    }
}

fn answer<A, E: Refusal>(
    sync: &LaneSync,
    awaited: &Receiver<Awaited<A, E>>,
    done: fn() -> A,
    refused: fn(&Error) -> E,
) {
    while let Ok(Awaited { accepted, until, waiting }) = awaited.recv() {
        let time = until.saturating_duration_since(Instant::now());
        let carried = sync.wait(accepted, time).map_err(|error| refused(&error));
        for slot in waiting {
            slot.answer(carried.map(|()| done()));
        }
    }
}
