//! The length of each stored bucket: as many slots as its level had at its last write. And that of
//! records.

use super::stored::Stored;
use crate::observer::size_class;
use crate::trace::TraceRule;

/// The least bytes of a record of written bytes.
const LEAST_RECORD: u64 = 20 << 10;
/// The most slots that a bucket can lack.
const MOST: usize = 3;

/// The buckets that lack slots.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths([Stored; MOST]);

impl Lengths {
    /// As a rule states at the start of a session; `None` when it makes no sense.
    pub(super) fn of(rule: &TraceRule) -> Option<Self> {
        let mut lengths = Lengths::default();
        if rule.lacking.len() > MOST || rule.slots as usize > MOST + 1 {
            return None;
        }
        for (lacking, runs) in lengths.0.iter_mut().zip(&rule.lacking) {
            *lacking = Stored::of(runs)?;
        }
        Some(lengths)
    }

    /// Records a write of a bucket with `slots` of `rule`'s slots.
    pub(super) fn set(&mut self, bucket: u64, slots: u32, rule: &TraceRule) {
        let missing = rule.slots.saturating_sub(slots) as usize;
        for (at, lacking) in self.0.iter_mut().enumerate() {
            // Most buckets never lack any slots; they take no room here.
            if lacking.contains(bucket) != (at + 1 == missing) {
                lacking.set(bucket, at + 1 == missing);
            }
        }
    }

    /// Slots of a bucket.
    pub(super) fn slots(&self, bucket: u64, rule: &TraceRule) -> u32 {
        let missing = self.0.iter().position(|lacking| lacking.contains(bucket));
        rule.slots.saturating_sub(missing.map_or(0, |at| at as u32 + 1))
    }

    /// Bytes of a bucket.
    pub(super) fn bytes(&self, bucket: u64, rule: &TraceRule) -> u64 {
        let missing = self.0.iter().position(|lacking| lacking.contains(bucket));
        let missing = missing.map_or(0, |at| at as u64 + 1);
        rule.bucket_bytes.saturating_sub(missing.saturating_mul(rule.slot_bytes))
    }

    /// The missing bytes of all buckets.
    pub(super) fn missing(&self, rule: &TraceRule) -> u64 {
        let missing = |(at, lacking): (usize, &Stored)| {
            lacking.count().saturating_mul(rule.slot_bytes).saturating_mul(at as u64 + 1)
        };
        self.0.iter().enumerate().map(missing).fold(0, u64::saturating_add)
    }

    /// Forgets the buckets from `end` on.
    pub(super) fn cut(&mut self, end: u64) {
        self.0.iter_mut().for_each(|lacking| lacking.cut(end));
    }
}

/// The heap index after the last bucket of a tree.
pub(super) fn end_of(depth: u32) -> u64 {
    2u64.checked_shl(depth).filter(|&end| end > 0).unwrap_or(u64::MAX)
}

/// Whether a record of written bytes may have this length: whole pages, then eighths of a power of
/// two.
pub(super) fn is_size_class(bytes: u64) -> bool {
    bytes >= LEAST_RECORD && size_class(bytes) == bytes
}
