//! What takes the processor's time and not the engine: blocks are opened and sealed. Whoever drives
//! the engine may have the parts of it done by several threads, and ask the engine for something else
//! meanwhile.

use super::block_reads::Opens;
use super::sealing::Seals;
use crate::{EngineError, Result};

/// A part of the work. The parts that are given out together may be done at once.
pub struct Part<'a> {
    work: Work<'a>,
    outcome: &'a mut Outcome,
}

pub(super) enum Work<'a> {
    Open(Opens<'a>),
    Seal(Vec<Seals<'a>>),
}

impl<'a> Part<'a> {
    pub(super) fn new(work: Work<'a>, outcome: &'a mut Outcome) -> Self {
        Self { work, outcome }
    }

    /// Does it. The next step of the engine tells how it went, and refuses to go on with parts that
    /// were never done.
    pub fn run(self) {
        self.outcome.0 = match self.work {
            Work::Open(blocks) => blocks.run(),
            Work::Seal(blocks) => blocks.into_iter().try_for_each(Seals::run),
        };
    }
}

/// What became of a part.
pub(super) struct Outcome(Result<()>);

impl Outcome {
    pub fn is_good(&self) -> bool {
        self.0.is_ok()
    }

    /// All of them together: the first error, if there is one.
    pub fn of_all(outcomes: Vec<Self>) -> Result<()> {
        outcomes.into_iter().try_for_each(|outcome| outcome.0)
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self(Err(EngineError::State("blocks were neither opened nor sealed")))
    }
}
