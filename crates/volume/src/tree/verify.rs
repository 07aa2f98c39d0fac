//! Reading and authenticating every stored bucket.

use crate::Result;
use crate::damage::{DamagedPlace, Inspected};
use crate::tree::slab::Slab;
use crate::tree::tuning::VERIFIED_AT_ONCE;
use oblivio_engine::BucketId;
use oblivio_engine::tree::{TreeOram, Verifier};
use oblivio_store::Slots;
use std::collections::BTreeMap;

/// Checks every stored bucket against the tag tree, whatever is damaged; `damaged` gets each bucket
/// that differs from its last write. Gives also the versions of lost blocks that were asked for.
///
/// # Errors
/// Those of the store.
pub fn verify(
    store: &dyn Slots,
    slab: &Slab,
    engine: &mut TreeOram,
    progress: &mut dyn FnMut(u64, u64),
    damaged: &mut dyn FnMut(DamagedPlace),
) -> Result<(Inspected, BTreeMap<u64, u64>)> {
    let stored: Vec<BucketId> = slab.stored().collect();
    let bucket_bytes = engine.bucket_bytes();
    let mut verifier = Verifier::new(engine);
    let mut found = Inspected::default();
    for chunk in stored.chunks((VERIFIED_AT_ONCE / bucket_bytes).max(1)) {
        for (bucket, mut bytes) in chunk.iter().zip(slab.fetch(store, chunk)?) {
            if let Some(why) = verifier.check(*bucket, &mut bytes)? {
                found.damaged += 1;
                damaged(slab.damaged_place(*bucket, why));
            }
        }
        found.count += chunk.len() as u64;
        progress(found.count, stored.len() as u64);
    }
    let lacking = verifier.finish();
    for bucket in lacking.buckets {
        found.damaged += 1;
        damaged(slab.damaged_place(bucket, "it is missing"));
    }
    found.lost = lacking.blocks;
    Ok((found, lacking.versions))
}
