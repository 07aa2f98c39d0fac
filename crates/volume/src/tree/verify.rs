//! Reading and authenticating every stored bucket.

use crate::tree::slab::Slab;
use crate::tree::tuning::VERIFIED_AT_ONCE;
use crate::{Error, Result};
use oblivio_engine::BucketId;
use oblivio_engine::tree::TreeOram;
use oblivio_store::Slots;

/// Checks every stored bucket against the tag tree; gives their number.
///
/// # Errors
/// `Tampered` names the first bucket that differs from its last write.
pub fn verify(
    store: &dyn Slots,
    slab: &Slab,
    engine: &mut TreeOram,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<u64> {
    let stored: Vec<BucketId> = slab.stored().collect();
    let bucket_bytes = engine.bucket_bytes();
    let mut verifier = engine.verifier();
    let mut done = 0;
    for chunk in stored.chunks((VERIFIED_AT_ONCE / bucket_bytes).max(1)) {
        for (bucket, mut bytes) in chunk.iter().zip(slab.fetch(store, chunk)?) {
            let checked = verifier.check(*bucket, &mut bytes);
            checked.map_err(|error| Error::Tampered(error.to_string()))?;
        }
        done += chunk.len() as u64;
        progress(done, stored.len() as u64);
    }
    let _ = verifier.finish();
    Ok(done)
}
