//! What stored states pad to.

/// The stash's padding in a stored state, in blocks. An eviction leaves more than this with
/// probability below 2^-80, by extrapolation from simulation, which no theorem covers
/// (docs/decisions/0003-eviction.md). With leaves of two slots, and accesses in one particular
/// rhythm, it is 2^-69 (0010). A larger stash would show as twice the padding.
pub const STASH_BOUND: usize = 64;
/// In the place of a number that is missing.
pub(super) const EMPTY: u64 = u64::MAX;

/// The least multiple of `bound` that holds `count`, at least `bound`.
pub(super) fn padded(count: usize, bound: usize) -> usize {
    count.div_ceil(bound).max(1) * bound
}
