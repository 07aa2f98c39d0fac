//! The bytes that a batch moves, by public numbers.

use oblivio_volume::Rule;

/// The formula, for the page.
pub const TOLD: &str = "The formula. A tree has levels 0 to d; level l has m = 2^l buckets of B bytes, \
    the last one's with fewer slots. A batch of a accesses, and s scheduled paths after them (one for \
    each three accesses), meets s + (m - s) (1 - (1 - 1/m)^a) of them. It reads those that are not in \
    memory, and writes s of each level below the top that is in the log. Without a log, a level in \
    memory whose buckets have fewer turns than there are paths I between two commits costs s m / I. \
    With a log, each access appends 5/4 entries of a block and 64 bytes.";

/// Bytes of what was moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moves {
    /// Of buckets read.
    pub read: f64,
    /// Of buckets written.
    pub buckets: f64,
    /// Of entries of the top's log.
    pub entries: f64,
}

impl Moves {
    /// Adds others.
    pub fn add(&mut self, other: &Moves) {
        self.read += other.read;
        self.buckets += other.buckets;
        self.entries += other.entries;
    }
}

/// What a batch of accesses and scheduled paths moves on average.
pub fn batch(rule: &Rule, depth: u32, accesses: u64, paths: u64) -> Moves {
    let mut moves = Moves::default();
    let interval = rule.flush_at.saturating_sub(rule.turn).max(1) as f64;
    let (a, s) = (accesses as f64, paths as f64);
    for level in 0..=depth {
        let count = (1u64 << level) as f64;
        let lacks = if level == depth { rule.slots - rule.leaf_slots } else { 0 };
        let bucket = (rule.bucket_bytes - u64::from(lacks) * rule.slot_bytes) as f64;
        let cached = share(rule.cached, level);
        let turns = s.min(count);
        let met = turns + (count - turns) * (1.0 - (1.0 - 1.0 / count).powf(a));
        moves.read += met * bucket * (1.0 - cached);
        moves.buckets += bucket
            * match &rule.log {
                Some(log) => turns * (1.0 - share(log.buckets, level)),
                None => turns * (1.0 - cached) + s * cached * (count / interval).min(1.0),
            };
    }
    if let Some(log) = &rule.log {
        moves.entries = 1.25 * a * log.entry_bytes as f64;
    }
    moves
}

/// The share of a level's buckets that is among the first ones, in heap order.
fn share(first: u64, level: u32) -> f64 {
    let count = 1u64 << level;
    (first + 1).saturating_sub(count).min(count) as f64 / count as f64
}
