//! The second copies of metadata.

use super::FileSystem;
use crate::Result;

impl FileSystem {
    /// Reads both copies of all metadata, and writes both anew from whichever is there. A mount and
    /// the end of a session do it by themselves where the store sees what they read. Elsewhere only
    /// this does, where a caller asks for it: the writes would show what was read.
    ///
    /// # Errors
    /// The block space's own.
    pub fn heal_metadata(&self) -> Result<()> {
        self.run(|state| {
            state.commit()?;
            let mut pool = state.pool.lock();
            pool.heal_all()?;
            pool.blocks()?.commit()
        })
    }
}
