//! The parameters of a sequential engine, and the levels that follow from them.

use super::map_node::{LEAF_FIXED, NODE_ENTRY, NODE_FIXED};
use super::pages::{Pages, TIME_BYTES};
use crate::{EngineError, Result};

/// The parameters. All of them are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequentialConfig {
    /// Bytes of a block. The stored block has the same length.
    pub block_bytes: usize,
    /// Addressable blocks.
    pub blocks: u64,
    /// Blocks of a bucket (β in the paper): the blocks that a flush writes to each level, and the
    /// writes between two flushes.
    pub bucket_blocks: u64,
    /// Buckets of the write queue. The queue holds two such halves in memory.
    pub queue_buckets: u64,
    /// The most by which a level may be larger than the one above it (k).
    pub fan_out: u64,
    /// The most blocks of the last level that may be rewritten per block written, in percent. A
    /// higher value costs writes and saves space.
    pub last_ratio: u64,
    /// Pages of the access time map that each flush writes, if the map is in the ORAM; 0 keeps it
    /// in memory. The pages take the place of as many writes.
    pub time_pages: u64,
    /// The nodes of buffer maps are rounded up to this many bytes: the disk's sector.
    pub sector_bytes: usize,
    /// Inner nodes of buffer maps kept in memory (§6.3, map caches).
    pub cached_nodes: usize,
    /// Leaves of buffer maps kept in memory.
    pub cached_leaves: usize,
}

impl SequentialConfig {
    /// The defaults for this number of blocks, on a disk with seeks. docs/sequential.md derives
    /// them.
    ///
    /// Levels grow by 16. The queue is the smallest that saves a level, up to 64 MiB and a 64th of
    /// the volume. A bucket's map leaf fills a sector.
    pub fn new(block_bytes: usize, blocks: u64) -> Self {
        Self::growing_by(16, block_bytes, blocks)
    }

    /// The defaults on a disk without seeks, where a merge may read from many places: levels grow
    /// by up to 256. The queue has 32 MiB at least, or a 64th of the volume.
    pub fn without_seeks(block_bytes: usize, blocks: u64) -> Self {
        let usual = Self::growing_by(256, block_bytes, blocks);
        let least = most_queued(32 << 20, block_bytes, blocks).div_ceil(usual.bucket_blocks);
        Self { queue_buckets: usual.queue_buckets.max(least), ..usual }
    }

    fn growing_by(fan_out: u64, block_bytes: usize, blocks: u64) -> Self {
        let sector_bytes = 4096;
        let bucket_blocks = ((sector_bytes - LEAF_FIXED) / NODE_ENTRY) as u64;
        let most = most_queued(64 << 20, block_bytes, blocks);
        let mut queue_blocks = blocks.div_ceil(fan_out);
        while queue_blocks > most {
            queue_blocks = queue_blocks.div_ceil(fan_out);
        }
        Self {
            block_bytes,
            blocks,
            bucket_blocks,
            queue_buckets: queue_blocks.div_ceil(bucket_blocks).max(1),
            fan_out,
            last_ratio: 100,
            time_pages: 0,
            sector_bytes,
            cached_nodes: 512,
            cached_leaves: 8 << 10,
        }
    }

    /// Keeps the access time map in the ORAM and writes `time_pages` of its pages in each flush.
    /// This saves memory, so the caches shrink too.
    #[must_use]
    pub fn map_on_disk(self, time_pages: u64) -> Self {
        let (cached_nodes, cached_leaves) = (self.cached_nodes / 4, self.cached_leaves / 64);
        Self { time_pages, cached_nodes, cached_leaves, ..self }
    }

    /// Blocks of one half of the queue.
    pub fn queue_blocks(&self) -> u64 {
        self.bucket_blocks * self.queue_buckets
    }

    /// Children of an inner node of a buffer map.
    pub fn map_fan_out(&self) -> u64 {
        (self.sector_bytes.saturating_sub(NODE_FIXED) / NODE_ENTRY) as u64
    }

    /// Bytes of the map leaf of a bucket of `blocks` blocks.
    pub(super) fn leaf_bytes(&self, blocks: u64) -> u64 {
        let bytes = LEAF_FIXED as u64 + blocks * NODE_ENTRY as u64;
        bytes.next_multiple_of(self.sector_bytes as u64)
    }

    /// Refuses parameters that make no sense or would overflow.
    ///
    /// # Errors
    /// `Invalid` names the parameter.
    pub fn check(&self) -> Result<()> {
        let invalid = |what: &str| Err(EngineError::Invalid(what.into()));
        let within = |value: u64, most: u64| (1..=most).contains(&value);
        if !within(self.block_bytes as u64, 1 << 26) || !within(self.blocks, 1 << 48) {
            return invalid("blocks of 1 byte to 64 MiB, at most 2^48 of them");
        }
        if !within(self.bucket_blocks, 1 << 20) || !within(self.queue_buckets, 1 << 24) {
            return invalid("a bucket has 1 to 2^20 blocks, a queue 1 to 2^24 buckets");
        }
        if !(2..=1024).contains(&self.fan_out) {
            return invalid("a level is 2 to 1024 times as large as the one above");
        }
        if !(1..=10_000).contains(&self.last_ratio) {
            return invalid("the last level is rewritten 0.01 to 100 times as fast as data comes");
        }
        if self.map_fan_out() < 2 || self.sector_bytes > 1 << 20 {
            return invalid("a node of a buffer map has at least 2 children and at most 1 MiB");
        }
        if self.time_pages >= self.bucket_blocks && self.time_pages > 0 {
            return invalid("a flush writes fewer pages of access times than a bucket has blocks");
        }
        if self.time_pages > 0 && self.block_bytes < TIME_BYTES {
            return invalid("a page of access times has room for at least one");
        }
        let pages = self.pages();
        let round = pages.count / (pages.each_flush.max(1) * self.queue_buckets);
        if self.turns_of_a_sweep() > 1 << 28 || round > 1 << 28 {
            return invalid("the queue is too small for so many blocks");
        }
        Ok(())
    }

    /// The least number of turns of a sweep of the last level.
    fn turns_of_a_sweep(&self) -> u64 {
        let queue = self.queue_blocks().saturating_mul(self.last_ratio);
        self.addresses().saturating_mul(100).div_ceil(queue).max(1)
    }

    /// The pages of the access time map.
    pub(super) fn pages(&self) -> Pages {
        let times_per_page = (self.block_bytes / TIME_BYTES).max(1) as u64;
        let (mut count, mut each_flush) = (self.blocks.div_ceil(times_per_page), self.time_pages);
        if each_flush == 0 {
            count = 0;
        }
        // No page has two turns in a flush.
        each_flush = each_flush.min(count);
        Pages { first: self.blocks, count, each_flush, times_per_page }
    }

    /// Blocks of data and pages of access times.
    pub(super) fn addresses(&self) -> u64 {
        self.blocks + self.pages().count
    }

    /// The fan-outs of the levels, from the top: as few levels as the largest fan-out allows, with
    /// fan-outs as even as possible. So a size that is no power wastes no space.
    pub fn fan_outs(&self) -> Vec<u64> {
        let mut turns = self.turns_of_a_sweep();
        let mut levels = 1;
        while self.fan_out.saturating_pow(levels) < turns {
            levels += 1;
        }
        let mut fan_outs = Vec::new();
        for left in (1..=levels).rev() {
            let reaches = |f: &u64| f.saturating_pow(left) >= turns;
            let even = (1..=self.fan_out).find(reaches).unwrap_or(self.fan_out);
            fan_outs.push(even);
            turns = turns.div_ceil(even);
        }
        // The deepest level's space counts most; above it a large fan-out saves most.
        fan_outs.sort_unstable();
        fan_outs
    }
}

/// The blocks of a queue of this many bytes, and at most a 64th of the volume.
fn most_queued(bytes: u64, block_bytes: usize, blocks: u64) -> u64 {
    (bytes / block_bytes.max(1) as u64).min(blocks / 64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(blocks: u64, queue: u64, fan_out: u64, last_ratio: u64) -> SequentialConfig {
        SequentialConfig {
            bucket_blocks: 1,
            queue_buckets: queue,
            fan_out,
            last_ratio,
            ..SequentialConfig::new(4096, blocks)
        }
    }

    #[test]
    fn levels_are_as_few_as_the_fan_out_allows_and_hold_everything() {
        for fan_out in 2..=17 {
            for blocks in (1..2000).chain([1 << 20, (1 << 20) + 1, 1 << 38]) {
                for (queue, ratio) in [(1, 100), (7, 100), (7, 250), (64, 30)] {
                    let fan_outs = config(blocks, queue, fan_out, ratio).fan_outs();
                    let turns = (blocks * 100).div_ceil(queue * ratio);
                    let product: u64 = fan_outs.iter().product();
                    assert!(product >= turns, "{fan_outs:?} for {turns} turns");
                    assert!(fan_outs.iter().all(|f| (1..=fan_out).contains(f)));
                    let fewer = fan_out.saturating_pow(fan_outs.len() as u32 - 1);
                    assert!(fan_outs.len() == 1 || fewer < turns, "{fan_outs:?} for {turns}");
                    assert!(product <= 2 * turns, "{fan_outs:?} waste space for {turns} turns");
                }
            }
        }
    }

    #[test]
    fn exact_powers_have_the_fan_out_everywhere() {
        assert_eq!(config(4096, 1, 16, 100).fan_outs(), [16, 16, 16]);
        assert_eq!(config(4096, 1, 8, 100).fan_outs(), [8, 8, 8, 8]);
        assert_eq!(config(9, 1, 8, 100).fan_outs(), [3, 3]);
        assert_eq!(config(3, 5, 8, 100).fan_outs(), [1]);
    }

    #[test]
    fn the_defaults_use_the_whole_fan_out() {
        for gib in [1u64, 2, 16, 40, 100, 256, 1024] {
            let config = SequentialConfig::new(4096, gib << 18);
            config.check().expect("the defaults make sense");
            let fan_outs = config.fan_outs();
            let bytes = config.queue_blocks() * 4096;
            assert!(bytes <= 65 << 20, "{gib} GiB with a queue of {bytes}");
            assert!(fan_outs.iter().all(|&fan_out| fan_out >= 14), "{gib} GiB: {fan_outs:?}");
        }
        assert_eq!(SequentialConfig::new(4096, 256 << 18).fan_outs().len(), 3);
    }

    /// One level above the last up to 16 GiB, two beyond, and a queue of 32 to 64 MiB.
    #[test]
    fn without_seeks_there_are_few_levels() {
        for (gib, levels) in [(1u64, 1), (2, 1), (8, 1), (16, 1), (40, 2), (256, 2), (1024, 2)] {
            let config = SequentialConfig::without_seeks(4096, gib << 18);
            config.check().expect("the defaults make sense");
            let (fan_outs, queue) = (config.fan_outs(), config.queue_blocks() * 4096);
            assert_eq!(fan_outs.len(), levels, "{gib} GiB: {fan_outs:?}");
            assert!(fan_outs.iter().all(|&fan_out| fan_out <= 256), "{gib} GiB: {fan_outs:?}");
            let least = (gib << 24).min(32 << 20);
            assert!((least..65 << 20).contains(&queue), "{gib} GiB with a queue of {queue}");
        }
    }

    #[test]
    fn senseless_parameters_are_refused() {
        let good = SequentialConfig::new(4096, 1000);
        good.check().expect("the defaults make sense");
        for bad in [
            SequentialConfig { block_bytes: 0, ..good },
            SequentialConfig { blocks: 0, ..good },
            SequentialConfig { bucket_blocks: 0, ..good },
            SequentialConfig { queue_buckets: 0, ..good },
            SequentialConfig { fan_out: 1, ..good },
            SequentialConfig { last_ratio: 0, ..good },
            SequentialConfig { sector_bytes: 64, ..good },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
