//! The rule that a failure closes a handle: what is in memory may differ from what is stored then.

use crate::{Error, Result};
use std::sync::OnceLock;

/// Whether a handle of a volume or a file system is still of use, and why not. It closes once.
#[derive(Debug, Default)]
pub(crate) struct Latch(OnceLock<Failed>);

#[derive(Debug)]
enum Failed {
    Overtaken,
    Other(String),
}

impl Latch {
    /// Refuses everything after a failure.
    ///
    /// # Errors
    /// `Closed` with the first failure's words; `Overtaken` again.
    pub fn expect_open(&self) -> Result<()> {
        match self.0.get() {
            Some(Failed::Overtaken) => Err(Error::Overtaken),
            Some(Failed::Other(why)) => Err(Error::Closed(why.clone())),
            None => Ok(()),
        }
    }

    /// Whether a failure closed it.
    pub fn is_closed(&self) -> bool {
        self.0.get().is_some()
    }

    /// Passes a result on. A failure closes the handle; what was invalid changed nothing, and what
    /// is lost is no failure of the rest.
    pub fn judged<T>(&self, result: Result<T>) -> Result<T> {
        match result {
            Err(error @ (Error::Invalid(_) | Error::Lost(_))) => Err(error),
            other => self.closed_by(other),
        }
    }

    /// Passes a result on. Every failure closes the handle.
    pub fn closed_by<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.close(error))
    }

    /// Closes it. The first failure is the one to report.
    pub fn close(&self, error: &Error) {
        let failed = match error {
            Error::Overtaken => Failed::Overtaken,
            Error::Closed(why) => Failed::Other(why.clone()),
            other => Failed::Other(other.to_string()),
        };
        let _ = self.0.set(failed);
    }
}
