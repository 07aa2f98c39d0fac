//! Holes: blocks that a repair found to be lost. They are known from then on, so a check names them
//! and still calls the volume clean. They read as an error until they are written or removed.

use super::api::FileSystem;
use super::check_lost::LostFiles;
use super::state::State;
use super::tables::Meta;
use super::twin_io::TwinIo;
use super::types::{CheckReport, Handle};
use crate::{Error, LostBytes, Result};
use redb::{ReadableTable, TableDefinition, TableHandle};
use std::collections::BTreeSet;
use std::ops::Range;

/// The blocks. Volumes that were never repaired have no such table.
pub(super) const HOLES: TableDefinition<'_, u64, ()> = TableDefinition::new("holes");

/// Bytes of zeros written at once.
const ZEROS: u64 = 1 << 20;

impl Meta {
    /// The holes.
    pub(super) fn holes(&self) -> Result<BTreeSet<u64>> {
        // To open the table makes it.
        if !self.txn()?.list_tables()?.any(|table| table.name() == HOLES.name()) {
            return Ok(BTreeSet::new());
        }
        let table = self.open(HOLES)?;
        let blocks = table.iter()?.map(|entry| Ok(entry?.0.value()));
        blocks.collect()
    }
}

impl State {
    /// Notes that these blocks, and no others, are holes.
    fn note_holes(&mut self, lost: &BTreeSet<u64>) -> Result<()> {
        if self.meta.holes()? == *lost {
            return Ok(());
        }
        // It also says what is promised, so new metadata knows whether it may take twins.
        if !self.has_room(0) {
            self.commit()?;
        }
        self.make_way()?;
        let mut table = self.meta.open(HOLES)?;
        table.retain(|_, ()| false)?;
        for &block in lost {
            table.insert(block, ())?;
        }
        drop(table);
        self.pool.lock().holes.clone_from(lost);
        self.progress.operations += 1;
        Ok(())
    }

    fn find_losses(
        &mut self,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(CheckReport, LostFiles)> {
        let (mut found, report) = self.examine(true, progress)?;
        if found.metadata_lost {
            return Err(Error::Lost(LostBytes::metadata()));
        }
        let blocks = std::mem::take(&mut found.lost_blocks);
        let files = self.lost_files(&blocks, &mut found)?;
        // The notes make second copies old, also that of a block that is lost: after a crash it
        // would have none.
        TwinIo(&mut self.pool.lock()).heal_all()?;
        self.note_holes(&blocks)?;
        self.commit()?;
        // A mount, or the end of a session, does that only where the store sees what they read.
        TwinIo(&mut self.pool.lock()).heal_all()?;
        Ok((report, files))
    }
}

/// Takes what is lost for holes, or with `zeros` writes zeros in its place, and writes both copies
/// of all metadata anew. Gives what a check finds before.
///
/// # Errors
/// `Lost` if metadata is lost; those of a check and of a write.
pub fn repair(
    fs: &FileSystem,
    zeros: bool,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<CheckReport> {
    let (report, files) = fs.run(|state| state.find_losses(progress))?;
    for (ino, ranges) in files.into_iter().filter(|_| zeros) {
        let handle = fs.open_file(ino)?;
        let filled = ranges.into_iter().try_for_each(|range| fill(fs, handle, range));
        fs.close(handle)?;
        filled?;
    }
    fs.commit()?;
    Ok(report)
}

fn fill(fs: &FileSystem, handle: Handle, range: Range<u64>) -> Result<()> {
    let mut at = range.start;
    while at < range.end {
        let len = ZEROS.min(range.end - at);
        fs.write(handle, at, &vec![0; len as usize])?;
        at += len;
    }
    Ok(())
}
