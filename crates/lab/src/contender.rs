//! Libraries to measure beside each other, all in one way.

use anyhow::Result;

/// A library under measurement.
pub trait Contender {
    /// Its name in the table.
    fn name(&self) -> String;
    /// Serves these accesses: a block, and whether it is written.
    ///
    /// # Errors
    /// Those of the library.
    fn serve(&mut self, accesses: &[(u64, bool)], batch: usize) -> Result<()>;
    /// The batch sizes to measure.
    fn batches(&self) -> &'static [usize] {
        &[1]
    }
    /// Whether its speed means anything only when it is full.
    fn must_be_full(&self) -> bool {
        false
    }
}

/// How to make a contender, and its memory use.
pub struct Entry {
    /// Its name in the table.
    pub name: &'static str,
    /// Bytes of memory, by number of blocks and block size.
    pub memory: fn(u64, usize) -> u64,
    /// Makes it.
    pub make: fn(u64, usize) -> Result<Box<dyn Contender>>,
}
