//! The files of a volume of any kind, for one who keeps it open.

use crate::metadata::Usage;
use crate::session::Medium;
#[cfg(feature = "share")]
use oblivio_app::shared::SharedFiles;
use oblivio_app::walk::WriteFiles;
use oblivio_volume::Result;
use oblivio_volume::fs::FileSystem;

/// The files of a volume.
pub(crate) type Files = Box<dyn KeptFiles>;

/// What commands do with files, and what the life of a volume needs.
pub(crate) trait KeptFiles: WriteFiles {
    /// How much there is.
    fn usage(&self) -> Result<Usage>;

    /// Whether the volume wants a commit now.
    fn wants_commit(&self) -> bool;

    /// Does a little of what is due while nothing else is done.
    fn idle(&self) -> Result<()>;

    /// Makes all changes durable and lets go of the volume.
    fn finish(self: Box<Self>) -> Result<()>;
}

impl KeptFiles for FileSystem {
    fn usage(&self) -> Result<Usage> {
        let usage = FileSystem::usage(self)?;
        let bytes = |blocks: u64| blocks.saturating_mul(usage.block_bytes);
        let (free, capacity) = (bytes(usage.free_blocks), bytes(usage.capacity_blocks));
        Ok(Usage { used: usage.logical_bytes, free, capacity })
    }

    fn wants_commit(&self) -> bool {
        FileSystem::wants_commit(self)
    }

    fn idle(&self) -> Result<()> {
        FileSystem::idle(self).map(drop)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.into_blocks().map(drop)
    }
}

#[cfg(feature = "share")]
impl KeptFiles for SharedFiles {
    fn usage(&self) -> Result<Usage> {
        let (capacity, free) = self.space()?;
        Ok(Usage { used: capacity.saturating_sub(free), free, capacity })
    }

    fn wants_commit(&self) -> bool {
        false
    }

    fn idle(&self) -> Result<()> {
        // Threads of its own answer others.
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let committed = self.commit();
        // The session ends all the same: others need not wait for this computer.
        let ended = self.end();
        committed.and(ended)
    }
}

impl Medium for Files {
    fn commit(&self) -> Result<()> {
        (**self).commit()
    }

    fn wants_commit(&self) -> bool {
        (**self).wants_commit()
    }

    fn idle(&self) -> Result<()> {
        (**self).idle()
    }

    fn finish(self) -> Result<()> {
        KeptFiles::finish(self)
    }
}
