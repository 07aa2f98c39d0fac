//! What each report of a public rule says, whatever the home.

use crate::options::Rule;
use oblivio_engine::tree::TreeOram;

/// The rule of an engine's next requests.
pub(crate) fn rule_of(engine: &TreeOram) -> Rule {
    let geometry = engine.config().geometry();
    Rule {
        blocks: engine.capacity(),
        floor: engine.floor().depth.0,
        slots: engine.config().blocks_per_bucket as u32,
        leaf_slots: engine.shape().leaf_slots as u32,
        floor_slots: engine.floor().leaf_slots as u32,
        cached: engine.cached_buckets(),
        bucket_bytes: geometry.bucket_bytes() as u64,
        slot_bytes: (geometry.bucket_bytes_with(1) - geometry.bucket_bytes_with(0)) as u64,
        turn: engine.evictions(),
        requests: engine.requests(),
        ..Rule::default()
    }
}

/// Ascending numbers as runs `(first, count)`.
pub(crate) fn runs(ascending: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in ascending {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}
