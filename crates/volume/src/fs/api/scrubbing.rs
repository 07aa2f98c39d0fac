//! A scrub in the quiet moments of a volume that holds files.

use super::{FileSystem, panicked};
use crate::Result;
use std::time::Duration;

impl FileSystem {
    /// Does a step of the scrub, if there is one and a step is due; gives the time to the next
    /// call.
    ///
    /// # Errors
    /// Those of the store.
    pub fn scrub(&mut self) -> Result<Option<Duration>> {
        let state = self.state.lock().map_err(|_| panicked())?;
        let mut pool = state.pool.lock();
        pool.blocks()?.scrub()
    }
}
