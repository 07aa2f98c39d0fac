//! What a check found.

use oblivio_volume::LostBytes;
use oblivio_volume::fs::CheckReport;

/// What was found behind the buckets.
pub enum Contents {
    Files(CheckReport),
    /// A disk of this many bytes; only its user can judge the content.
    Disk(u64, Vec<LostBytes>),
}

impl Contents {
    pub fn problems(&self) -> &[String] {
        match self {
            Contents::Files(report) => &report.problems,
            Contents::Disk(..) => &[],
        }
    }

    pub fn lost(&self) -> &[LostBytes] {
        match self {
            Contents::Files(report) => &report.lost,
            Contents::Disk(_, lost) => lost,
        }
    }

    /// What an earlier repair left.
    pub fn holes(&self) -> &[LostBytes] {
        match self {
            Contents::Files(report) => &report.holes,
            Contents::Disk(..) => &[],
        }
    }
}

/// The units that were read and authenticated one by one.
pub struct PartsRead {
    pub count: u64,
    /// The name of a unit.
    pub unit: &'static str,
    /// Places that were damaged and have a second copy.
    pub healed: Vec<String>,
    /// How many others are damaged.
    pub damaged: u64,
    /// The first of them.
    pub places: Vec<String>,
}
