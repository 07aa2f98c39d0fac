//! A scrub in the quiet moments of a volume that holds files.

use super::{FileSystem, panicked};
use crate::Result;
use crate::scrub::Scrubs;
use std::time::Duration;

impl Scrubs for FileSystem {
    fn scrub(&mut self) -> Result<Option<Duration>> {
        let state = self.state.lock().map_err(|_| panicked())?;
        let mut pool = state.pool.lock();
        pool.blocks()?.scrub()
    }
}
