//! What a check found.

use anyhow::Result;
use oblivio_volume::fs::CheckReport;
use oblivio_volume::{DamagedPlace, Inspected, LostBytes, Volume, VolumeInfo};

/// The most damaged places that are named one by one.
const MOST_PLACES: usize = 100;

/// What was found. The session may have failed to end: that costs no finding.
pub struct CheckFindings {
    pub read: PartsRead,
    pub contents: Contents,
    pub ended: Result<()>,
}

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
    /// Whether such volumes can be repaired in place.
    pub repairs: bool,
    /// Places that were damaged and have a second copy.
    pub healed: Vec<String>,
    /// How many others are damaged.
    pub damaged: u64,
    /// The first of them.
    pub places: Vec<String>,
}

/// Keeps a damaged place to name it, if it is one of the first.
pub fn keep_place(places: &mut Vec<String>, place: &DamagedPlace) {
    if places.len() < MOST_PLACES {
        places.push(place.to_string());
    }
}

impl PartsRead {
    /// What an inspection found, and these places of it.
    pub fn of(volume: &Volume, info: &VolumeInfo, found: &Inspected, places: Vec<String>) -> Self {
        let healed = volume.damaged().into_iter().filter(DamagedPlace::has_copy);
        Self {
            count: found.count,
            unit: info.verified,
            repairs: info.engine.repairs,
            healed: healed.map(|place| place.to_string()).collect(),
            damaged: found.damaged,
            places,
        }
    }

    /// What to do where something is lost.
    pub fn advice(&self) -> &'static str {
        if self.repairs {
            "`oblivio get -r` reads what is whole; `oblivio repair VOLUME` makes the volume writable \
             and clean again."
        } else {
            "A computer that holds what is damaged puts it back: run `oblivio check` there. `oblivio \
             get -r --incomplete` reads what is whole."
        }
    }
}
