//! Reading and authenticating every stored bucket.

use super::ledger::WindowLedger;
use crate::{Error, Result};
use oblivio_engine::tree::BucketSpot;
use oblivio_store::ReadAt;

/// Checks every stored bucket against the tags; gives their number.
///
/// # Errors
/// `Tampered` names the first bucket that differs from its last write.
pub(super) fn verify(
    ledger: &mut WindowLedger,
    at_once: usize,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64> {
    let (rule, places) = (ledger.places.rule, &ledger.places);
    let (shapes, depth) = (ledger.engine.shapes().clone(), ledger.engine.depth());
    let config = *ledger.engine.config();
    let mut objects = Vec::new();
    for (level, window) in places.current(depth) {
        let slots = shapes.slots(level, window, config.blocks_per_bucket);
        if slots > 0 {
            let bytes = config.geometry().bucket_bytes_with(slots);
            objects.push((places.object(level, window)?, level, window, bytes));
        }
    }
    let all = objects.len() as u64;
    let mut verifier = ledger.engine.verifier();
    let (mut done, mut checked) = (0, 0);
    let turns = rule.turns() as usize;
    let largest = objects.iter().map(|object| object.3 * turns).max().unwrap_or(1);
    for some in objects.chunks((at_once / largest).max(1)) {
        let mut bufs: Vec<Vec<u8>> = some.iter().map(|it| vec![0; it.3 * turns]).collect();
        let reads = some.iter().zip(&mut bufs);
        let mut reads: Vec<ReadAt<'_>> =
            reads.map(|(it, buf)| ReadAt { object: &it.0, offset: 0, buf }).collect();
        ledger.store.read(&mut reads)?;
        for ((_, level, window, bytes), buf) in some.iter().zip(&mut bufs) {
            for (index, sealed) in (0..).zip(buf.chunks_mut(*bytes)) {
                let bucket = rule.bucket(BucketSpot { level: *level, window: *window, index });
                if let Some(why) = verifier.check(bucket, sealed)? {
                    return Err(Error::Tampered(format!("bucket {}: {why}", bucket.0)));
                }
                checked += 1;
            }
        }
        done += some.len() as u64;
        progress(done, all);
    }
    match verifier.finish().buckets.first() {
        Some(bucket) => Err(Error::Tampered(format!("bucket {} is missing", bucket.0))),
        None => Ok(checked),
    }
}
