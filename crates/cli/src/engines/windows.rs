//! What a month of a tree in windows asks of its store.

use crate::price::{Month, Use};
use oblivio_volume::windows::{WindowCost, WindowOptions};

/// Accesses beside those for content: directories and inodes.
const METADATA: f64 = 1.1;
/// Operations that a batch has when files are read or written in a row, and the syncs of who works
/// on files all day.
const BATCH: u64 = 16;
const SYNCS_A_DAY: f64 = 1000.0;
/// What is stored, unless the volume may hold less.
const STORED: u64 = 50 << 30;

/// A month of a volume with such blocks and objects, for up to `capacity` bytes, with a disk cache
/// of `cache`.
pub fn month(
    (block_bytes, object_bytes): (usize, usize),
    capacity: u64,
    expected: Use,
    cache: u64,
) -> Month {
    let options = WindowOptions { object_bytes, ..WindowOptions::new(block_bytes, capacity, true) };
    let stored = expected.stored.unwrap_or(STORED).min(capacity);
    let cost = WindowCost::of(&options, stored, cache);
    let accesses = |bytes: u64| bytes as f64 / block_bytes as f64 * METADATA;
    let day = cost
        .access(BATCH)
        .times(accesses(expected.read) + accesses(expected.written))
        .and(cost.sync(expected.written / SYNCS_A_DAY as u64).times(SYNCS_A_DAY));
    Month::of(Use { stored: Some(stored), ..expected }, cost.stored(), day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::price::of_url;

    /// The design's user, with the default blocks and 10 GiB of cache, to within a third: there,
    /// batches and metadata were guessed a little differently.
    #[test]
    fn a_bill_is_of_the_size_that_the_design_simulated() {
        let month = month((32 << 10, 2 << 20), 256 << 30, Use::default(), 10 << 30);
        let bill = |url| month.bill(&of_url(url).expect("known")).iter().sum::<f64>();
        for (url, simulated) in [("s3://b/a?region=eu-central-1", 160.0), ("b2://b/a", 19.0)] {
            let found = bill(url);
            assert!((found / simulated - 1.0f64).abs() < 0.34, "{url}: {found}");
        }
        assert!(bill("r2://b/a?account=x") < 5.0);
        assert!(of_url("s3://b/a?endpoint=http://localhost:9000").is_none());
    }
}
