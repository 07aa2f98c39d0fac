//! Requests that are answered once the volume has carried what they cover.

use super::tally::LaneTally;
use crate::queue::{AnswerSlot, Refusal};
use crate::threads::spawn;
use oblivio_volume::Error;
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
    pub tally: LaneTally,
    tell: Sender<Awaited<A, E>>,
}

impl<A: Send + 'static, E: Refusal> LaneReplies<A, E> {
    /// On a thread of its own, which ends with this. `done` is the answer to one that is carried,
    /// `refused` to one that is not.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn start(tally: LaneTally, done: fn() -> A, refused: fn(&Error) -> E) -> io::Result<Self> {
        let (tell, awaited) = channel();
        let carried = tally.clone();
        spawn("carried", move || answer(&carried, &awaited, done, refused))?;
        Ok(Self { tally, tell })
    }

    /// Answers these once all is durable that was accepted before.
    pub fn answer(&self, waiting: Vec<AnswerSlot<A, E>>) {
        let (accepted, until) = (self.tally.accepted(), Instant::now() + LANE_WAIT);
        // Without its thread nobody waits, and the queue answers that the server has ended.
        let _ = self.tell.send(Awaited { accepted, until, waiting });
    }
}

fn answer<A, E: Refusal>(
    tally: &LaneTally,
    awaited: &Receiver<Awaited<A, E>>,
    done: fn() -> A,
    refused: fn(&Error) -> E,
) {
    while let Ok(Awaited { accepted, until, waiting }) = awaited.recv() {
        let time = until.saturating_duration_since(Instant::now());
        let carried = tally.wait(accepted, time).map_err(|error| refused(&error));
        for slot in waiting {
            slot.answer(carried.map(|()| done()));
        }
    }
}
