//! Holes: blocks that a repair found to be lost. They are known from then on, so a check names them
//! and still calls the volume clean. They read as an error until they are written or removed.

use super::api::FileSystem;
use super::check_lost::LostFiles;
use super::state::State;
use super::types::{CheckReport, Handle};
use crate::{Error, LostBytes, Result};
use redb::{ReadableTable, TableDefinition};
use std::collections::BTreeSet;
use std::ops::Range;

/// The blocks. Volumes that were never repaired have no such table.
const HOLES: TableDefinition<'_, u64, ()> = TableDefinition::new("holes");

/// Bytes of zeros written at once.
const ZEROS: u64 = 1 << 20;

impl State {
    /// Those among lost blocks that a repair found.
    pub(super) fn known_holes(&self, lost: &BTreeSet<u64>) -> Result<BTreeSet<u64>> {
        // To open the table makes it.
        if lost.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut known = BTreeSet::new();
        for entry in self.meta.open(HOLES)?.iter()? {
            known.insert(entry?.0.value());
        }
        Ok(known.intersection(lost).copied().collect())
    }

    /// Notes that these blocks, and no others, are holes.
    fn note_holes(&mut self, lost: &BTreeSet<u64>) -> Result<()> {
        self.make_way()?;
        let mut table = self.meta.open(HOLES)?;
        table.retain(|_, ()| false)?;
        for &block in lost {
            table.insert(block, ())?;
        }
        drop(table);
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
        self.note_holes(&blocks)?;
        Ok((report, files))
    }
}

impl FileSystem {
    /// Takes what is lost for holes, or with `zeros` writes zeros in its place. Gives what a check
    /// finds before.
    ///
    /// # Errors
    /// `Lost` if metadata is lost; those of a check and of a write.
    pub fn repair(&self, zeros: bool, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport> {
        let (report, files) = self.run(|state| state.find_losses(progress))?;
        for (ino, ranges) in files.into_iter().filter(|_| zeros) {
            let handle = self.open_file(ino)?;
            let filled = ranges.into_iter().try_for_each(|range| self.fill(handle, range));
            self.close(handle)?;
            filled?;
        }
        Ok(report)
    }

    fn fill(&self, handle: Handle, range: Range<u64>) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let len = ZEROS.min(range.end - at);
            self.write(handle, at, &vec![0; len as usize])?;
            at += len;
        }
        Ok(())
    }
}
