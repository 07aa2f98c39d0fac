//! [`StoredShare`]: a shared volume in a folder, whatever ends its process.

use super::folder::{self, Folder, Healed, Tables};
use super::keeper::MissingParts;
use super::shared::Shared;
use oblivio_store::share::{Result, Share, ShareCall, ShareClock, ShareReply};
use std::path::Path;

/// A shared volume in a folder. One process has it at a time.
pub struct StoredShare(Shared<Folder>);

impl StoredShare {
    /// Opens the volume of a folder, and makes it if there is none. Leases follow this clock.
    ///
    /// # Errors
    /// Those of storage; `Busy` as a store's error if another process has it.
    pub fn open(dir: &Path, clock: ShareClock) -> Result<Self> {
        Self::with_segments(dir, clock, folder::SEGMENT_BYTES)
    }

    /// As [`Self::open`], with files of the history that end after this many bytes. For tests.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub fn with_segments(dir: &Path, clock: ShareClock, segment_bytes: u64) -> Result<Self> {
        Self::with(dir, clock, segment_bytes, None, MissingParts::Refused)
    }

    /// As [`Self::open`], with tables in a store somewhere else. A volume has them there from the
    /// beginning, or never.
    ///
    /// # Errors
    /// As for [`Self::open`]; the store is another volume's, or lacks a table.
    pub fn with_tables(dir: &Path, clock: ShareClock, tables: Tables) -> Result<Self> {
        Self::opened(dir, clock, Some(tables), MissingParts::Refused)
    }

    /// As [`Self::open`] or [`Self::with_tables`], whatever it lacks, if that is accepted.
    ///
    /// # Errors
    /// As for these.
    pub fn opened(
        dir: &Path,
        clock: ShareClock,
        tables: Option<Tables>,
        lacking: MissingParts,
    ) -> Result<Self> {
        Self::with(dir, clock, folder::SEGMENT_BYTES, tables, lacking)
    }

    pub(crate) fn with(
        dir: &Path,
        clock: ShareClock,
        segment_bytes: u64,
        tables: Option<Tables>,
        lacking: MissingParts,
    ) -> Result<Self> {
        let (keeper, kept) = Folder::open(dir, segment_bytes, tables, lacking)?;
        Shared::open(keeper, kept, clock).map(Self)
    }

    /// What it was opened without, one for each object.
    pub fn lacks(&self) -> &[String] {
        self.0.keeper().lacks()
    }

    /// What was damaged or lost of it, and is there in another copy: what became of that.
    pub fn mended(&self) -> &[Healed] {
        self.0.keeper().mended()
    }

    /// Whether the tables are in a store somewhere else that was not given: the volume can be
    /// looked after, and not used.
    pub fn lacks_tables(&self) -> bool {
        self.0.keeper().lacks_tables()
    }

    /// The file with the end of the history, if this start set it aside because a crash tore it.
    pub fn set_aside(&self) -> Option<&Path> {
        self.0.keeper().set_aside()
    }

    /// Sets how many bytes the volume may take.
    ///
    /// # Errors
    /// Those of storage.
    pub fn set_quota(&self, quota: Option<u64>) -> Result<()> {
        self.0.set_quota(quota)
    }

    /// How many asks of each device wait, by its number.
    pub fn waiting(&self) -> Vec<(u16, u64)> {
        self.0.waiting()
    }

    /// Removes the asks of a device that is gone, and the answers that only wait for it.
    pub fn forget_device(&self, device: u16) {
        self.0.forget_device(device);
    }

    /// Makes what was appended so far durable: answers, for which nobody waits.
    ///
    /// # Errors
    /// Those of storage.
    pub fn settle(&self) -> Result<()> {
        self.0.settle()
    }
}

impl Share for StoredShare {
    /// Nobody checks it here.
    fn device(&self) -> u16 {
        0
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        self.0.call(call)
    }
}
