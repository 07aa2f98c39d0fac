//! What a sequential engine reports of itself.

use super::DISK_OBJECT;
use crate::engine::VolumeInfo;
use crate::report::flushes::Flushes;
use crate::report::words::{grouped, size};
use crate::report::{EngineReport, Fact, Picture};
use oblivio_engine::Level;
use oblivio_engine::sequential::{Generation, GenerationBucket, Layout};

/// What is public of a volume's lanes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneInfo {
    /// How many there are.
    pub count: u8,
    /// The capacity of each, in bytes.
    pub bytes: u64,
    /// What may be written to the volume while they are shut, in bytes, before they lose anything.
    pub grace_bytes: u64,
    /// Bytes written to them for each byte written to the volume, whatever is in them.
    pub written_per_byte: f64,
}

/// Information about a sequential engine. Only the two counts at the end ever change.
#[derive(Clone, Debug, PartialEq)]
pub struct SequentialInfo {
    /// The fan-outs of the levels, from the top.
    pub fan_outs: Vec<u64>,
    /// Bytes of one half of the write queue.
    pub queue_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of all levels.
    pub disk_bytes: u64,
    /// Bytes written to the levels for each byte of user data, once all are in use.
    pub written_per_byte: f64,
    /// Whether the access time map is in the ORAM.
    pub map_on_disk: bool,
    /// The lanes beside it, if any.
    pub lanes: Option<LaneInfo>,
    /// Flushes so far; an observer of the disk can count them.
    pub flushes: u64,
    /// Writes so far, padding included.
    pub writes: u64,
}

impl LaneInfo {
    fn shown(&self) -> String {
        let bytes = size(self.bytes);
        match self.count {
            1 => format!("1 of {bytes}; what it holds, if anything, only its passphrase tells"),
            count => format!(
                "{count} of {bytes} each; what they hold, if anything, only their passphrases tell"
            ),
        }
    }
}

impl SequentialInfo {
    /// The report on it; `layout` says where its levels are.
    pub(super) fn report(&self, info: &VolumeInfo, layout: &Layout) -> EngineReport {
        let mut report = EngineReport::default();
        report.facts.push(("fan_outs", Fact::Numbers(self.fan_outs.clone())));
        report.numbers([
            ("queue_bytes", self.queue_bytes),
            ("log_bytes", self.log_bytes),
            ("levels_bytes", self.disk_bytes),
        ]);
        report.facts.push(("written_per_byte", Fact::Ratio(self.written_per_byte)));
        report.facts.push(("map_on_disk", Fact::Flag(self.map_on_disk)));
        if let Some(lanes) = self.lanes {
            report.numbers([
                ("lanes", lanes.count.into()),
                ("lane_bytes", lanes.bytes),
                ("lane_grace_bytes", lanes.grace_bytes),
            ]);
            report.row("lanes", lanes.shown());
        }
        report.numbers([
            ("flushes", self.flushes),
            ("writes", self.writes),
            ("replayed_writes", info.replayed),
        ]);
        let stored = size(info.bytes_stored);
        report.row("on disk", format!("{stored}, all of it taken from the beginning"));
        report.row("states", grouped(info.epoch));
        report.row("writes", format!("{} blocks, padding included", grouped(self.writes)));
        report.recovered(info.replayed, "write");
        self.say_all(info, &mut report);
        report.picture = Some(self.picture(layout));
        report
    }

    fn say_all(&self, info: &VolumeInfo, report: &mut EngineReport) {
        report.say("\nWhat somebody learns who has every snapshot of it");
        report.say("  - how many blocks were written in between, and when something was synced");
        report.say("  - that a session ended well, or did not");
        report.say_openers(info.passphrases);
        report.say("What nobody learns");
        say_hidden_writes(report);
        report.say("  - whether a write was new, the same as before, or gave space back");
        if self.lanes.is_some() {
            report.say(
                "  - whether a lane holds anything: all are written at every act, used or not",
            );
        }
        report.say(
            "What is not hidden: reads. Whoever watches the computer or the store at work sees \
             them.",
        );
        report.say("\nWhat it costs");
        let levels: Vec<String> = self.fan_outs.iter().map(u64::to_string).collect();
        report.say(format!(
            "  each byte is written {:.1} times, and once to the log; levels grow by {}",
            self.written_per_byte,
            levels.join(" x ")
        ));
        if let Some(lanes) = self.lanes {
            report.say(format!(
                "  and {:.1} times more to the lanes, used or not; {} may be written while they",
                lanes.written_per_byte,
                size(lanes.grace_bytes)
            ));
            report.say("  are shut, before they lose anything");
        }
        let map = if self.map_on_disk { "on the disk" } else { "in memory" };
        let queue = size(2 * self.queue_bytes);
        report.say(format!("  up to {queue} of queue in memory; the access time map is {map}"));
    }

    fn picture(&self, layout: &Layout) -> Picture {
        let last = layout.schedule().last();
        let name = |level: Level| match level == last {
            true => "last level".into(),
            false => format!("level {}", level.0 + 1),
        };
        let levels = layout.schedule().levels();
        let levels = levels.map(|level| (name(level), layout.level_bytes(level))).collect();
        let flushes = flushes_after(self.flushes, layout);
        Picture::Rounds { object: DISK_OBJECT, levels, flushes }
    }
}

/// What no observer of writes learns.
pub(crate) fn say_hidden_writes(report: &mut EngineReport) {
    report.say_of(
        "  - which file was written, or whether a file was written at all",
        "  - which part of the disk was written, and what is on it",
    );
}

/// What an observer counts of a disk with this many flushes so far.
fn flushes_after(flushes: u64, layout: &Layout) -> Flushes {
    let level = Level(0);
    let first = |number| {
        layout.bucket(GenerationBucket { generation: Generation { level, number }, index: 0 })
    };
    let buckets = layout.schedule().queue_buckets();
    Flushes {
        seen: flushes.saturating_sub(buckets),
        bucket_bytes: first(0).bytes,
        buckets,
        stride: first(1).offset,
        end: layout.level_bytes(level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_engine::sequential::{Flush, SequentialConfig};

    #[test]
    fn flushes_are_counted_from_what_they_write() {
        for (bucket_blocks, queue_buckets, fan_out) in [(2, 3, 3), (1, 1, 2), (5, 20, 4)] {
            let config = SequentialConfig {
                bucket_blocks,
                queue_buckets,
                fan_out,
                sector_bytes: 128,
                ..SequentialConfig::new(64, 1000)
            };
            let layout = Layout::new(&config).unwrap();
            let (mut all, mut late) = (flushes_after(0, &layout), None);
            for flush in 0..500 {
                // One by one, and adjacent ones in one piece, as a store may get them.
                let mut writes = layout.writes(Flush(flush));
                if flush % 2 == 0 {
                    writes.sort_unstable();
                    writes.dedup_by(|next, last| {
                        let joined = last.end() == next.offset;
                        last.bytes += if joined { next.bytes } else { 0 };
                        joined
                    });
                }
                let mut counts: Vec<&mut Flushes> =
                    [&mut all].into_iter().chain(&mut late).collect();
                for write in writes {
                    counts.iter_mut().for_each(|count| count.see(write.offset, write.bytes));
                }
                assert_eq!(all.seen, (flush + 1).saturating_sub(queue_buckets));
                late = late.or((flush == 200).then(|| flushes_after(201, &layout)));
            }
            assert_eq!(late.map(|late| late.seen), Some(500 - queue_buckets));
        }
    }
}
