//! What a tree reports of itself.

use crate::engine::VolumeInfo;
use crate::report::words::{grouped, size};
use crate::report::{EngineReport, Picture};

/// Information about a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeInfo {
    /// Slots in a bucket.
    pub blocks_per_bucket: usize,
    /// Bytes of a bucket in the store.
    pub bucket_bytes: usize,
    /// Blocks addressable now (the size class that the store can see).
    pub addressable_blocks: u64,
    /// Blocks that the tree is sized for now.
    pub size_class: u64,
    /// Blocks that exist.
    pub live_blocks: u64,
    /// The level of the tree's leaves.
    pub depth: u32,
    /// Slots of the leaves' buckets; all others have [`Self::blocks_per_bucket`].
    pub leaf_slots: usize,
    /// Slots of all stored buckets.
    pub stored_slots: u64,
    /// Levels of recursion of the position map; 1 when it is all in memory.
    pub recursion_levels: usize,
    /// The most accesses that are shown before their records are durable; 0 if none is.
    pub most_ahead: u64,
}

impl TreeInfo {
    /// The most that one access reads and writes, before the top of the tree is in memory: the path
    /// that it reads, and its share of the rewritten paths.
    fn access_bytes(&self, block_bytes: usize) -> (u64, u64) {
        let short = (self.blocks_per_bucket - self.leaf_slots) * block_bytes;
        let path = (u64::from(self.depth) + 1) * self.bucket_bytes as u64 - short as u64;
        // One path in three is read once more and written (see the decision on eviction).
        (path + path / 3, path / 3)
    }

    /// The report on it.
    pub(super) fn report(&self, info: &VolumeInfo) -> EngineReport {
        let class = self.size_class.saturating_mul(info.block_bytes as u64);
        let (read, written) = self.access_bytes(info.block_bytes);
        let mut report = EngineReport::default();
        report.numbers([
            ("blocks_per_bucket", self.blocks_per_bucket as u64),
            ("bucket_bytes", self.bucket_bytes as u64),
            ("size_class_bytes", class),
            ("size_class_blocks", self.size_class),
            ("addressable_blocks", self.addressable_blocks),
            ("depth", self.depth.into()),
            ("leaf_slots", self.leaf_slots as u64),
            ("recursion_levels", self.recursion_levels as u64),
            ("most_ahead", self.most_ahead),
            ("access_bytes_read", read),
            ("access_bytes_written", written),
            ("replayed_batches", info.replayed),
        ]);
        let stored = size(info.bytes_stored);
        report.row("on disk", format!("{stored} for a size class of {}", size(class)));
        report.row("memory", format!("up to {}", size(info.memory_bytes as u64)));
        report.row("records", self.records());
        report.row("commits", grouped(info.epoch));
        report.recovered(info.replayed, "batch");
        self.say_leaks(info, class, &mut report);
        self.say_costs(info, &mut report);
        report.picture = Some(Picture::Paths {
            bucket_bytes: self.bucket_bytes as u64,
            size_class_bytes: class,
            depth: self.depth,
        });
        report
    }

    fn records(&self) -> String {
        match self.most_ahead {
            0 => "each is synced before its reads".into(),
            most => format!("up to {most} accesses are ahead of their records"),
        }
    }

    fn say_leaks(&self, info: &VolumeInfo, class: u64, report: &mut EngineReport) {
        report.say("\nWhat its storage learns");
        report.say(
            "  - when you work, and how many accesses you make; so roughly how much is read or \
             written",
        );
        report.say(
            "  - when something is synced, and roughly how much was written since the last time",
        );
        if self.most_ahead > 0 {
            report.say(
                "  - after a power cut, which of the last few accesses were for the same (--strict: \
                 nothing)",
            );
        }
        report.say(format!(
            "  - the size class: {} now ({} blocks of {}); it follows what is stored by eighths of \
             a power of two",
            size(class),
            grouped(self.size_class),
            size(info.block_bytes as u64)
        ));
        if self.recursion_levels > 1 {
            report.say(
                "  - how often a part of its map was fetched first: it may grow so far that not all \
                 of it stays in memory",
            );
        }
        report.say_openers(info.passphrases);
        report.say("What it does not learn");
        report.say_of(
            "  - which file or directory, their names, number and sizes",
            "  - which part of the disk, what is on it, and where it is full",
        );
        report.say(
            "  - whether one access reads or writes, and whether it is for the same as before",
        );
    }

    fn say_costs(&self, info: &VolumeInfo, report: &mut EngineReport) {
        let (read, written) = self.access_bytes(info.block_bytes);
        report.say("\nWhat one access costs");
        report.say(format!(
            "  up to {} read and {} written for a block of {}; less when blocks are asked for",
            size(read),
            size(written),
            size(info.block_bytes as u64)
        ));
        report.say(
            "  together, and while the top of the tree is in memory. If you only need encryption,",
        );
        report.say("  other tools are faster.");
    }
}
