//! What a query costs on average in a full volume, in closed form: the ground for the figures.
//!
//! The tests compare these numbers with a trace, to the byte.

use super::bloom_filter::SEGMENT_BYTES;
use super::config::PaperConfig;
use super::construct::{slot_bytes, weight};
use super::ids::{Generation, Height, LevelId};
use super::query_log::ENTRY_BYTES;
use oblivio_crypto::SEAL_OVERHEAD;

/// Bytes of a name, and of a number.
const NAME: u64 = 16;
const NUMBER: u64 = 8;

/// The cost of all queries of one cycle, in which the bottom is made twice and every other level as
/// often as it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Queries of the cycle.
    pub queries: u64,
    /// Bytes that queries send and receive.
    pub online: u64,
    /// Bytes that constructions read and write, the top's included.
    pub construction: u64,
    /// Slots that constructions of all levels but the top write into levels.
    pub made: u64,
}

impl Cost {
    /// The cost of a volume that has had its first two cycles.
    pub fn of(config: &PaperConfig) -> Self {
        let schedule = &config.schedule;
        let queries = 2 * schedule.items(schedule.bottom());
        let (mut construction, mut made) = (queries / schedule.log() * top(config), 0);
        for target in schedule.heights().flat_map(|height| targets(config, height)) {
            let life = schedule.deletions(target);
            // Both targets of a height follow each other; at the bottom, one follows itself.
            let times = if is_sink(config, target) { queries / life } else { queries / (2 * life) };
            construction += times * weight(config, target);
            made += times * schedule.entries(target);
        }
        Self { queries, online: online(config, queries), construction, made }
    }

    /// Bytes of a query, everything included.
    pub fn bytes_per_query(&self) -> u64 {
        (self.online + self.construction) / self.queries
    }
}

fn is_sink(config: &PaperConfig, target: LevelId) -> bool {
    target.star && target.height == config.schedule.bottom()
}

/// What a height is made into: a star, and then the level below; the bottom always a star.
fn targets(config: &PaperConfig, height: Height) -> Vec<LevelId> {
    let sink = LevelId { height, generation: Generation(3), star: true };
    if is_sink(config, sink) {
        return vec![sink];
    }
    let star = LevelId { height, generation: Generation(2), star: true };
    let below = LevelId { height: Height(height.0 + 1), generation: Generation(1), star: false };
    vec![star, below]
}

/// Bytes of the end of a period.
fn top(config: &PaperConfig) -> u64 {
    let log = config.schedule.log();
    let segments = config.filter.shape(log).segments;
    log * (ENTRY_BYTES as u64 + slot_bytes(config))
        + 2 * log * (NAME + slot_bytes(config))
        + segments * (SEGMENT_BYTES + SEAL_OVERHEAD) as u64
}

fn online(config: &PaperConfig, queries: u64) -> u64 {
    let schedule = &config.schedule;
    let (log, heights) = (schedule.log(), u64::from(schedule.height_count()));
    let hashes = u64::from(config.filter.hashes);
    let segment = (SEGMENT_BYTES + SEAL_OVERHEAD) as u64 + NUMBER;
    // A copy and a half at each height, and two at the bottom.
    let copies = 3 * (heights - 1) + 4;
    let lookups = queries / 2 * copies * (hashes * segment + NAME + slot_bytes(config));
    let log_reads = queries / log * (log * (log + 1) / 2) * ENTRY_BYTES as u64;
    let result_reads = queries / log * (log * (log - 1) / 2) * slot_bytes(config);
    let once = ENTRY_BYTES as u64 + NUMBER + heights * NAME + slot_bytes(config);
    lookups + log_reads + result_reads + queries * once
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pyramid_paper::bloom_filter::FilterRule;
    use oblivio_crypto::VolumeId;

    /// 2^20 blocks of 4 KiB, 64 queries a period: the design's column "A" says 6,515 KB without
    /// memory and 1,862 KB with a buffer of 4,911 slots, at 8 hashes and 2,400 bits. The rest is
    /// the deletions' fakes (4 entries made for each query and height, not 3), a bottom with two
    /// copies, and the seals.
    #[test]
    fn figures_beside_those_of_the_design() {
        let mut config = PaperConfig::new(VolumeId([0; 16]), 64, 15, 4096).expect("valid");
        let mut kilobytes = |run, hashes, bits_per_item| {
            config.sorting.run = run;
            config.filter = FilterRule { hashes, bits_per_item };
            Cost::of(&config).bytes_per_query() / 1000
        };
        assert_eq!(kilobytes(1, 8, 2_400), 9_078);
        assert_eq!(kilobytes(4_911, 8, 2_400), 2_916);
        assert_eq!(kilobytes(4_911, 15, 1_826), 3_035, "2^-104 a lookup, not 2^-65.85");
        assert_eq!(kilobytes(4_911, 104, 151), 5_729, "2^-104 in the fewest bits");
        assert_eq!(kilobytes(1 << 14, 15, 1_826), 2_323);
        let cost = Cost::of(&config);
        assert_eq!(cost.made / (cost.queries / 100) / 15, 393, "59/15 entries a height");
    }
}
