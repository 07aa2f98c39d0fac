//! Inspections in parts: everything that is stored is read, in one fixed order, a part at a time.
//!
//! How far a scrub is says nothing: the store saw it. A place to go on from may come from anywhere;
//! a wrong one costs reads, or leaves some for the next time round.

use crate::damage::{DamagedPlace, Inspected};
use crate::{Clock, Error, Result};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// How far an inspection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Units read so far, those of earlier parts included, and all units; amid requests places
    /// perhaps, which cost no counting.
    pub done: u64,
    /// See `done`.
    pub total: u64,
    /// The place to go on from; none at the end.
    pub next: Option<u64>,
}

/// What an inspection reads, and who learns of it.
pub struct Inspection<'a> {
    /// The place to begin at; 0 for everything.
    pub from: u64,
    /// Bytes read together, at most, unless one unit is more. What is small is read as a whole.
    pub at_once: usize,
    /// Whether others use the volume before and after. Then nothing is committed first, and each
    /// place is proved by itself.
    pub amid_requests: bool,
    /// Gets how far it is; says whether to go on.
    pub reached: &'a mut dyn FnMut(Reached) -> ControlFlow<()>,
    /// Gets each damaged place.
    pub damaged: &'a mut dyn FnMut(DamagedPlace),
}

impl<'a> Inspection<'a> {
    /// Of everything, while nobody else uses the volume.
    pub fn of_all(
        reached: &'a mut dyn FnMut(Reached) -> ControlFlow<()>,
        damaged: &'a mut dyn FnMut(DamagedPlace),
    ) -> Self {
        Self { from: 0, at_once: usize::MAX, amid_requests: false, reached, damaged }
    }

    /// For an engine that has no parts: it read everything, `count` units, and found it whole.
    pub fn all_at_once(self, count: u64) -> Inspected {
        // There is nothing left to stop.
        let _ = (self.reached)(Reached { done: count, total: count, next: None });
        Inspected { count, ..Inspected::default() }
    }
}

/// The place of what is small: behind everything else, and amid requests a part by itself.
pub(crate) const SMALL: u64 = u64::MAX;

/// Bytes of one step between requests: they wait for it.
const STEP_BYTES: usize = 512 << 10;
/// For as long as this a scrub rests once the store was asked for something else.
const QUIET: Duration = Duration::from_secs(1);

/// A scrub in the quiet moments of a volume in use.
///
/// When it reads follows from the clock and from what the store was asked, and from nothing else: a
/// request that needs nothing of the store does not put a step off.
pub struct QuietScrub {
    /// Bytes a second.
    pub rate: u64,
    /// Where it goes on.
    pub from: u64,
    /// How often the store was asked for anything.
    pub asked: Box<dyn Fn() -> u64 + Send>,
    /// Gets each damaged place, as often as it is met.
    pub damaged: Box<dyn FnMut(&DamagedPlace) + Send>,
    /// Notes where to go on; 0 once everything was read.
    pub note: Box<dyn FnMut(u64) + Send>,
}

/// A scrub that goes on.
pub(crate) struct RunningScrub {
    of: QuietScrub,
    clock: Arc<dyn Clock>,
    /// What `asked` said after the last look.
    seen: u64,
    /// When the next step is due.
    due: Duration,
}

impl RunningScrub {
    pub fn new(of: QuietScrub, clock: Arc<dyn Clock>) -> Self {
        let (seen, due) = ((of.asked)(), clock.now() + QUIET);
        Self { of, clock, seen, due }
    }

    /// Does a step if one is due; gives the time to the next call.
    ///
    /// # Errors
    /// Those of `inspect`; the same part comes again then.
    pub fn step(
        &mut self,
        inspect: impl FnOnce(Inspection<'_>) -> Result<Inspected>,
    ) -> Result<Duration> {
        let now = self.clock.now();
        if let Some(left) = self.due.checked_sub(now).filter(|left| !left.is_zero()) {
            return Ok(left);
        }
        let asked = (self.of.asked)();
        if asked != std::mem::replace(&mut self.seen, asked) {
            self.due = now + QUIET;
            return Ok(QUIET);
        }
        let mut next = None;
        let damaged = &mut self.of.damaged;
        let read = inspect(Inspection {
            from: self.of.from,
            at_once: STEP_BYTES,
            amid_requests: true,
            reached: &mut |reached| {
                next = reached.next;
                ControlFlow::Break(())
            },
            damaged: &mut |place| damaged(&place),
        });
        self.seen = (self.of.asked)();
        let rest = match &read {
            Ok(found) => {
                let rest = Duration::from_secs_f64(found.bytes as f64 / self.of.rate.max(1) as f64);
                // A round rests, however little there is to read.
                if next.is_none() { rest.max(QUIET) } else { rest }
            }
            Err(_) => QUIET,
        };
        // From the step's end on: a slow disk is left alone as long as a quick one.
        self.due = self.clock.now() + rest;
        read?;
        self.of.from = next.unwrap_or(0);
        (self.of.note)(self.of.from);
        Ok(rest)
    }
}

/// What is served and is scrubbed meanwhile.
pub trait Scrubs {
    /// Does a step of the scrub, if there is one and a step is due; gives the time to the next
    /// call.
    ///
    /// # Errors
    /// Those of the store.
    fn scrub(&mut self) -> Result<Option<Duration>>;
}

/// The error of a volume that is inspected as a whole only.
pub(crate) fn only_as_a_whole() -> Error {
    Error::Unsupported("a volume in whole files is scrubbed by a check, not in a mount".into())
}
