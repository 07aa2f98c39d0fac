//! Where the log of the top of the tree is stored: an object of equal places, used in turn
//! (docs/decisions/0048-top-log.md).
//!
//! An entry goes to the place of its number. Between two commits as many may come as there are
//! places beyond the span of the log: then none is written over that the durable commit needs.

use super::size_class::SECTOR;
use crate::Result;
use oblivio_engine::WritePiece;
use oblivio_engine::tree::{LOG_ENTRIES, TopView, TreeOram};
use oblivio_store::{Log, StoreError, WriteAt};

/// The object that holds the entries.
pub const TOP_OBJECT: &str = "top-log";

/// The places of a log's entries.
#[derive(Default)]
pub struct TopPlaces {
    entry_bytes: usize,
    /// Entries that have a place at a time; 0 without a log.
    places: u64,
    /// The first entry that the durable commit may need.
    needed: u64,
    /// Whether entries were written since the last commit.
    pub fresh: bool,
    /// Whether any ever were.
    there: bool,
}

impl TopPlaces {
    /// Those of the log that an engine has under way.
    pub fn of(engine: &TreeOram) -> Self {
        let Some((rule, entries)) = TopView::of(engine).rule() else { return Self::default() };
        let (entry_bytes, places) = (TopView::of(engine).entry_bytes(), rule.places);
        let there = !entries.is_empty();
        Self { entry_bytes, places, needed: entries.start, fresh: false, there }
    }

    /// Whether there is a log.
    pub fn is_kept(&self) -> bool {
        self.places > 0
    }

    /// Whether less than `coming` entries can come before the next commit.
    pub fn is_short(&self, next: u64, coming: u64) -> bool {
        self.places > 0 && next + coming > self.needed + self.places
    }

    /// Notes that a commit is durable which needs entries from this one on.
    pub fn committed(&mut self, needed: u64) {
        (self.fresh, self.needed) = (false, needed);
    }

    /// The distance of two places in bytes.
    pub fn slot_bytes(&self) -> u64 {
        Self::distance(self.entry_bytes)
    }

    /// The same for entries of this length.
    pub fn distance(entry_bytes: usize) -> u64 {
        entry_bytes.next_multiple_of(SECTOR) as u64
    }

    /// Where an entry is.
    pub(super) fn offset(&self, number: u64) -> u64 {
        number % self.places.max(1) * self.slot_bytes()
    }

    /// Gives the space of a log that ended back.
    ///
    /// # Errors
    /// Those of the store.
    pub fn give_back(&mut self, store: &dyn Log) -> Result<()> {
        if !std::mem::take(self).there {
            return Ok(());
        }
        match store.truncate(TOP_OBJECT, 0) {
            Err(StoreError::Missing { .. }) => Ok(()),
            done => Ok(done?),
        }
    }

    /// The write of an entry, which an engine's extent names; `None` for a bucket.
    pub fn place(&mut self, extent: u64) -> Option<u64> {
        let number = extent.checked_sub(LOG_ENTRIES)?;
        (self.fresh, self.there) = (true, true);
        Some(self.offset(number))
    }
}

/// The write of a part of an engine's step.
pub(super) fn entry_write<'a>(offset: u64, piece: &WritePiece<'a>) -> WriteAt<'a> {
    match piece.shared {
        Some(sealed) => WriteAt::shared(TOP_OBJECT, offset, sealed),
        None => WriteAt::new(TOP_OBJECT, offset, piece.data),
    }
}
