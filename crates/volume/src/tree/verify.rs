//! Reading and authenticating every stored bucket, in the order of the heap.

use crate::Result;
use crate::damage::{DamagedPlace, Inspected};
use crate::scrub::{Inspection, Reached, SMALL};
use crate::tree::slab::Slab;
use crate::tree::tuning::VERIFIED_AT_ONCE;
use oblivio_engine::BucketId;
use oblivio_engine::tree::{PartChecked, TreeOram, Verifier};
use oblivio_store::Slots;
use std::collections::BTreeMap;

/// Checks stored buckets against the tag tree, whatever is damaged; the places are heap indices. At
/// the end it gives also the versions of lost blocks that were asked for.
///
/// Amid requests a part costs what it reads, however large the volume is. So it counts heap
/// indices, not buckets. What is small is then a part of its own.
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
    let mut rest = slab.stored_from(from).peekable();
    let (mut done, total) = match amid_requests {
        true => (0, slab.indices() + 1),
        false => {
            let stored = |until| slab.stored().take_while(|it| it.0 < until).count() as u64;
            (stored(from), stored(u64::MAX))
        }
    };
    let bucket_bytes = engine.bucket_bytes();
    let mut verifier = match rest.peek() {
        _ if amid_requests => Verifier::of_part(engine, PartChecked::Alone),
        _ if done == 0 => Verifier::new(engine),
        Some(bucket) => Verifier::of_part(engine, PartChecked::From(bucket.level())),
        None => Verifier::of_part(engine, PartChecked::Alone),
    };
    let mut found = Inspected::default();
    let mut note = |found: &mut Inspected, place: DamagedPlace| {
        found.damaged += 1;
        damaged(place);
    };
    let together = (at_once.min(VERIFIED_AT_ONCE) / bucket_bytes).max(1);
    loop {
        let chunk: Vec<BucketId> = rest.by_ref().take(together).collect();
        for (bucket, mut bytes) in chunk.iter().zip(slab.fetch(store, &chunk)?) {
            found.bytes += bytes.len() as u64;
            if let Some(why) = verifier.check(*bucket, &mut bytes)? {
                note(&mut found, slab.damaged_place(*bucket, why));
            }
        }
        found.count += chunk.len() as u64;
        let small = (amid_requests && !chunk.is_empty()).then_some(SMALL);
        let next = rest.peek().map(|bucket| bucket.0).or(small);
        done = match amid_requests {
            true => next.map_or(total, |next| next.min(total - 1)),
            false => done + chunk.len() as u64,
        };
        let goes_on = reached(Reached { done, total, next }).is_continue();
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
