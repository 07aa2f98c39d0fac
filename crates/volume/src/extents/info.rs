//! What a volume in extents reports of itself.

use crate::engine::VolumeInfo;
use crate::report::words::{grouped, size};
use crate::report::{EngineReport, Fact};
use crate::sequential::{SequentialInfo, say_hidden_writes};

/// Information about a volume in extents.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtentInfo {
    /// The engine's report.
    pub engine: SequentialInfo,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// All extents.
    pub extents: u64,
    /// Those of them that were ever written.
    pub written_extents: u64,
    /// Extents that changed since the last epoch.
    pub changed_extents: u64,
    /// The name of the epoch that this computer stands on.
    pub stands_on: String,
    /// Computers that use the volume, as far as the folder says.
    pub computers: usize,
    /// Histories that were not chosen, and are kept.
    pub kept: Vec<String>,
    /// Whether it is only looked at.
    pub view: bool,
}

impl ExtentInfo {
    /// The report on it.
    pub(super) fn report(&self, info: &VolumeInfo) -> EngineReport {
        let mut report = EngineReport::default();
        report.numbers([
            ("extent_bytes", self.extent_bytes),
            ("extents", self.extents),
            ("written_extents", self.written_extents),
            ("changed_extents", self.changed_extents),
        ]);
        report.facts.push(("stands_on", Fact::Text(self.stands_on.clone())));
        report.numbers([("computers", self.computers as u64)]);
        report.facts.push(("kept_histories", Fact::Texts(self.kept.clone())));
        report.facts.push(("written_per_byte", Fact::Ratio(self.engine.written_per_byte)));
        report.numbers([
            ("flushes", self.engine.flushes),
            ("writes", self.engine.writes),
            ("replayed_writes", info.replayed),
        ]);
        let (extents, bytes) = (grouped(self.written_extents), size(self.extent_bytes));
        let stored = size(info.bytes_stored);
        report.row("in the folder", format!("{stored}: {extents} extents of {bytes}"));
        let view = if self.view { ", which is only looked at" } else { "" };
        report.row("stands on", format!("{}{view}", self.stands_on));
        let computers = grouped(self.computers as u64);
        report.row("computers", format!("{computers}, as far as the folder says"));
        if !self.kept.is_empty() {
            report.row("kept besides", self.kept.join(", "));
        }
        report.recovered(info.replayed, "write");
        self.say_all(info, &mut report);
        report
    }

    fn say_all(&self, info: &VolumeInfo, report: &mut EngineReport) {
        report.say("\nWhat somebody learns who has every copy of the folder");
        report.say("  - how many epochs there were, when, and from which computer");
        report.say("  - roughly how many blocks were written in each, by how many extents it has");
        report.say("  - when a computer that had not written took another's epoch");
        report.say_openers(info.passphrases);
        report.say("What nobody learns");
        say_hidden_writes(report);
        report.say("  - what is read: that never leaves this computer");
        report.say("\nWhat it costs");
        report.say(format!(
            "  each byte is sent some {:.0} times, in whole extents of {}",
            self.engine.written_per_byte + 1.0,
            size(self.extent_bytes)
        ));
    }
}
