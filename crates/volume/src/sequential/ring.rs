//! The places of quanta in the ring of a log.

use oblivio_store::WriteAt;

/// Quanta of this many bytes at their places in a ring of this many: in two parts if it wraps
/// around. The next one is number `next`.
pub(super) fn in_ring<'a>(
    object: &'static str,
    sealed: &'a [u8],
    (bytes, quanta): (usize, u64),
    next: u64,
) -> impl Iterator<Item = WriteAt<'a>> {
    let first = next - (sealed.len() / bytes) as u64;
    let until_end = (quanta - first % quanta).saturating_mul(bytes as u64);
    let cut = usize::try_from(until_end).unwrap_or(usize::MAX).min(sealed.len());
    let (data, again) = sealed.split_at(cut);
    let offset = first % quanta * bytes as u64;
    let parts = [WriteAt::new(object, offset, data), WriteAt::new(object, 0, again)];
    parts.into_iter().filter(|part| !part.data.is_empty())
}
