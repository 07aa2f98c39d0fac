//! Reading and authenticating every stored bucket, in the order of the heap.

use crate::Result;
use crate::damage::{DamagedPlace, Inspected};
use crate::scrub::{Inspection, Reached};
use crate::tree::slab::Slab;
use crate::tree::tuning::VERIFIED_AT_ONCE;
use oblivio_engine::BucketId;
use oblivio_engine::tree::{PartChecked, TreeOram, Verifier};
use oblivio_store::Slots;
use std::collections::BTreeMap;

/// Checks stored buckets against the tag tree, whatever is damaged; the places are heap indices. At
/// the end it gives also the versions of lost blocks that were asked for.
///
/// # Errors
/// Those of the store.
pub fn verify(
    store: &dyn Slots,
    slab: &Slab,
    engine: &mut TreeOram,
    inspection: Inspection<'_>,
) -> Result<(Inspected, Option<BTreeMap<u64, u64>>)> {
    let Inspection { from, at_once, amid_requests, reached, damaged } = inspection;
    let stored: Vec<BucketId> = slab.stored().collect();
    let first = stored.partition_point(|bucket| bucket.0 < from);
    let bucket_bytes = engine.bucket_bytes();
    let mut verifier = match stored.get(first) {
        _ if first == 0 && !amid_requests => Verifier::new(engine),
        Some(bucket) if !amid_requests => {
            Verifier::of_part(engine, PartChecked::From(bucket.level()))
        }
        _ => Verifier::of_part(engine, PartChecked::Alone),
    };
    let mut found = Inspected::default();
    let mut note = |found: &mut Inspected, place: DamagedPlace| {
        found.damaged += 1;
        damaged(place);
    };
    let (total, mut done) = (stored.len() as u64, first);
    let together = (at_once.min(VERIFIED_AT_ONCE) / bucket_bytes).max(1);
    loop {
        let end = stored.len().min(done + together);
        let chunk = &stored[done..end];
        for (bucket, mut bytes) in chunk.iter().zip(slab.fetch(store, chunk)?) {
            found.bytes += bytes.len() as u64;
            if let Some(why) = verifier.check(*bucket, &mut bytes)? {
                note(&mut found, slab.damaged_place(*bucket, why));
            }
        }
        found.count += chunk.len() as u64;
        done = end;
        let next = stored.get(end).map(|bucket| bucket.0);
        let goes_on = reached(Reached { done: done as u64, total, next }).is_continue();
        match next {
            None => break,
            Some(_) if goes_on => {}
            Some(_) => return Ok((found, None)),
        }
    }
    let lacking = verifier.finish();
    for bucket in lacking.buckets {
        note(&mut found, slab.damaged_place(bucket, "it is missing"));
    }
    found.lost = lacking.blocks;
    Ok((found, Some(lacking.versions)))
}
