//! The numbers of a volume of this construction.

use super::bloom_filter::{FilterRule, FilterShape};
use super::error::{PaperError, Result};
use super::ids::LevelId;
use super::level::Schedule;
use oblivio_crypto::VolumeId;

/// How surely a bounded buffer suffices: lambda squared. A buffer of lambda * sqrt(m) fails with
/// probability 2 * exp(-2 * lambda^2); 23 gives 2^-65 for each merge (the design's lambda is 4.8).
pub const LAMBDA_SQUARED: u64 = 23;

/// The numbers of a volume. All are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaperConfig {
    /// The volume.
    pub volume: VolumeId,
    /// `c`, and how many heights.
    pub schedule: Schedule,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// The filters.
    pub filter: FilterRule,
    /// How a construction sorts.
    pub sorting: Sorting,
}

/// How a construction sorts. These numbers shape what the server sees, so all clients share them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sorting {
    /// Elements that a client sorts in memory.
    pub run: usize,
    /// Elements of one request.
    pub chunk: usize,
    /// See [`LAMBDA_SQUARED`]; smaller only in tests that want a buffer to fail.
    pub lambda_squared: u64,
}

impl Default for Sorting {
    fn default() -> Self {
        Self { run: 1 << 10, chunk: 64, lambda_squared: LAMBDA_SQUARED }
    }
}

impl PaperConfig {
    /// A volume with the default filters and sorting, for `log * 2^(heights - 1)` blocks.
    ///
    /// # Errors
    /// Those of [`Schedule::new`].
    pub fn new(volume: VolumeId, log: u64, heights: u32, block_bytes: usize) -> Result<Self> {
        let schedule = Schedule::new(log, heights)?;
        let (filter, sorting) = (FilterRule::default(), Sorting::default());
        Ok(Self { volume, schedule, block_bytes, filter, sorting })
    }

    /// Refuses numbers that cannot work.
    ///
    /// # Errors
    /// If a client would have to sort or to send nothing at a time.
    pub fn check(&self) -> Result<()> {
        if self.sorting.run == 0 || self.sorting.chunk < 2 {
            return Err(PaperError::Invalid("a run has at least 1 element, a request at least 2"));
        }
        if self.filter.hashes == 0 || self.filter.bits_per_item == 0 {
            return Err(PaperError::Invalid("a filter has hashes and bits"));
        }
        Ok(())
    }

    /// The filter of a level.
    pub fn filter_of(&self, level: LevelId) -> FilterShape {
        self.filter.shape(self.schedule.items(level.height))
    }
}
