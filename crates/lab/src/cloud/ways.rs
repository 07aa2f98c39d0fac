//! Ways to store the paper's files, all measured alike.

use super::corpus::{Clock, Corpus, Times};
use super::space::{Batches, Counts, LabSpace};
use anyhow::Result;
use oblivio_engine::tree::{Eviction, TreeConfig};

/// A tree and its parameters.
pub struct Way {
    /// Its name in the table.
    pub name: &'static str,
    /// Blocks of a bucket.
    pub slots: usize,
    /// When paths are written.
    pub eviction: Eviction,
    /// Whether tails and small files share blocks.
    pub packed: bool,
    /// Which operations are served together.
    pub batches: Batches,
}

/// The paper's engine before its optimizations.
pub const PATH_ORAM: Way = Way {
    name: "Path ORAM",
    slots: 3,
    eviction: Eviction::ReadPaths { extra_every: 0 },
    packed: false,
    batches: Batches::Most(1),
};

/// Ours, with the schedule that suits this many blocks in a bucket.
pub const fn scheduled(name: &'static str, slots: usize, packed: bool, batches: Batches) -> Way {
    let eviction = Eviction::Scheduled { every: slots as u32 - 1 };
    Way { name, slots, eviction, packed, batches }
}

impl Way {
    /// Writes and reads files of these sizes in segments of `segment` bytes.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn measure(&self, segment: usize, sizes: &[u64]) -> Result<(Times, Counts)> {
        let config = TreeConfig {
            blocks_per_bucket: self.slots,
            eviction: self.eviction,
            ..TreeConfig::new(segment, (1u64 << 32) / segment as u64)
        };
        let round_to = (!self.packed).then_some(segment as u64);
        let corpus = Corpus { sizes: sizes.to_vec(), round_to };
        let (space, meter) = LabSpace::new(config, self.batches)?;
        let (times, fs) = corpus.run(Box::new(space), Clock::Processor)?;
        let counts = meter.now();
        drop(fs);
        Ok((times, counts))
    }
}
