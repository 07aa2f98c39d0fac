//! CPU work that needs no engine: opening and sealing blocks. A driver may run its parts on several
//! threads and use the engine meanwhile.

use crate::{EngineError, Result};

/// A part of the work. Parts handed out together may run in parallel.
pub struct WorkPart<'a> {
    work: Box<dyn FnOnce() -> Result<()> + Send + 'a>,
    outcome: &'a mut Outcome,
}

impl<'a> WorkPart<'a> {
    pub(crate) fn new(
        work: impl FnOnce() -> Result<()> + Send + 'a,
        outcome: &'a mut Outcome,
    ) -> Self {
        Self { work: Box::new(work), outcome }
    }

    /// Does it. The next step of the engine reports the result, and refuses to continue if a part
    /// was not run.
    pub fn run(self) {
        self.outcome.0 = (self.work)();
    }
}

/// The result of a part.
pub(crate) struct Outcome(Result<()>);

impl Outcome {
    /// The first error among them, if any.
    pub fn of_all(outcomes: Vec<Self>) -> Result<()> {
        outcomes.into_iter().try_for_each(|outcome| outcome.0)
    }
}

impl Default for Outcome {
    fn default() -> Self {
        Self(Err(EngineError::State("blocks were neither opened nor sealed")))
    }
}
