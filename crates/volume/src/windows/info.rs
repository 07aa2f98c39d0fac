//! What a tree in windows reports of itself.

use crate::engine::VolumeInfo;
use crate::report::words::{grouped, size};
use crate::report::{EngineReport, Fact};
use oblivio_engine::tree::{TreeConfig, Windows};

/// Information about a tree in windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowInfo {
    /// The engine's parameters.
    pub config: TreeConfig,
    /// The rule of its windows.
    pub rule: Windows,
    /// Blocks addressable now.
    pub addressable_blocks: u64,
    /// Blocks that the tree is sized for now.
    pub size_class: u64,
    /// The level of the leaves.
    pub depth: u32,
    /// Slots of the leaves' buckets.
    pub leaf_slots: usize,
    /// Windows so far.
    pub windows: u64,
    /// The number of this session.
    pub session: u64,
    /// Whether the session before said that it was done: if not, it crashed, or it was taken over.
    pub released: bool,
}

impl WindowInfo {
    /// What an access reads, and its share of what a window writes.
    fn access_bytes(&self) -> (u64, u64) {
        let levels = u64::from((self.depth + 1).saturating_sub(self.rule.pool_levels));
        let bucket = self.config.geometry().bucket_bytes() as u64;
        let path = levels * bucket;
        let every = u64::from(self.rule.every);
        // A window reads and writes the buckets of its turns, and writes two blocks an access.
        (path + path / every, path / every + 2 * self.config.block_bytes as u64)
    }

    /// The report on it.
    pub(super) fn report(&self, info: &VolumeInfo) -> EngineReport {
        let (read, written) = self.access_bytes();
        let mut report = EngineReport::default();
        report.numbers([
            ("blocks_per_bucket", self.config.blocks_per_bucket as u64),
            ("size_class_blocks", self.size_class),
            ("addressable_blocks", self.addressable_blocks),
            ("depth", self.depth.into()),
            ("leaf_slots", self.leaf_slots as u64),
            ("pool_levels", self.rule.pool_levels.into()),
            ("window_turns", self.rule.turns()),
            ("windows", self.windows),
            ("session", self.session),
        ]);
        report.facts.push(("session_before_ended", Fact::Flag(self.released)));
        report.numbers([
            ("access_bytes_read", read),
            ("access_bytes_written", written),
            ("replayed_batches", info.replayed),
        ]);
        let (stored, class) = (size(info.bytes_stored), self.size_class * info.block_bytes as u64);
        report.row("stored", format!("{stored} for a size class of {}", size(class)));
        report.row("memory", format!("up to {}", size(info.memory_bytes as u64)));
        report.row("session", format!("number {} of this volume", grouped(self.session)));
        if !self.released {
            report.row("taken over", "from a session that had not ended");
        }
        report.row("commits", grouped(info.epoch));
        report.recovered(info.replayed, "batch");
        self.say_leaks(info, &mut report);
        report.say("\nWhat one access costs");
        report.say(format!(
            "  some {} down and {} up for a block of {}, and one request for each level below the \
             pool",
            size(read),
            size(written),
            size(info.block_bytes as u64)
        ));
        report
    }

    fn say_leaks(&self, info: &VolumeInfo, report: &mut EngineReport) {
        report.say("\nWhat its storage learns");
        report.say("  - when you work, from where, and how many accesses you make");
        report.say(
            "  - when something is synced, and roughly how much was written since the last time",
        );
        report.say(format!(
            "  - the size class: {} blocks of {}; it follows what is stored by eighths of a power \
             of two",
            grouped(self.size_class),
            size(info.block_bytes as u64)
        ));
        report.say("  - which batches carry out writes, by when they come");
        report.say("  - when each session began, and whether it ended well");
        report.say_openers(info.passphrases);
        report.say("What it does not learn");
        report.say_of(
            "  - which file or directory, their names, number and sizes",
            "  - which part of the disk, what is on it, and where it is full",
        );
        report.say(
            "  - whether one access is for the same as another, and whether anything is there",
        );
    }
}
