//! A handle that a failure closes: what is in memory may differ from what is stored then.

use crate::{Error, Result};
use std::sync::OnceLock;

/// Whether a volume's handle is still of use, and why not.
#[derive(Debug, Default)]
pub(crate) struct Handle(OnceLock<Failed>);

#[derive(Debug)]
enum Failed {
    Overtaken,
    Other(String),
}

impl Handle {
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

    /// Passes a result on. A failure closes the handle; what was invalid changed nothing.
    pub fn judged<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && !matches!(error, Error::Invalid(_))
        {
            self.close(error);
        }
        result
    }

    /// Closes it. The first failure is the one to report.
    pub fn close(&self, error: &Error) {
        let failed = match error {
            Error::Overtaken => Failed::Overtaken,
            other => Failed::Other(other.to_string()),
        };
        let _ = self.0.set(failed);
    }
}
