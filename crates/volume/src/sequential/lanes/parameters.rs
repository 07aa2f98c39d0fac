//! What is public of a volume's lanes: how many there are, how large, and their objects.

use crate::{Error, Result};
use oblivio_crypto::KdfParams;

/// The objects of a lane.
pub struct LaneObjects {
    /// Its levels.
    pub disk: &'static str,
    /// Its log.
    pub log: &'static str,
    /// Its states.
    pub state: &'static str,
    /// Its access times after a clean end.
    pub times: &'static str,
}

/// The objects of each lane.
pub const LANE_OBJECTS: [LaneObjects; 2] = [
    LaneObjects { disk: "lane-1", log: "lane-1-log", state: "lane-1-state", times: "lane-1-times" },
    LaneObjects { disk: "lane-2", log: "lane-2-log", state: "lane-2-state", times: "lane-2-times" },
];

/// What a volume's header says of its lanes. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneParameters {
    /// How many there are: one or two.
    pub count: u8,
    /// The part of the volume's capacity that each has: one in this many.
    pub share: u8,
    /// The grace: how much may be written to the volume while the lanes are shut, before they lose
    /// anything: one part in this many of its capacity.
    pub grace: u8,
    /// The memory that a guess of a lane's passphrase takes: two to the power of this, in KiB.
    pub guess: u8,
}

/// What a new volume in one file has by default.
impl Default for LaneParameters {
    fn default() -> Self {
        Self { count: 1, share: 8, grace: 16, guess: 16 }
    }
}

impl LaneParameters {
    /// The same, with guesses that cost about as much as this.
    #[must_use]
    pub fn guessed_at(self, kdf: KdfParams) -> Self {
        let guess = kdf.memory_kib.max(8).next_power_of_two().ilog2() as u8;
        Self { guess, ..self }
    }

    /// The cost of a guess.
    pub fn guessing(&self) -> KdfParams {
        let memory_kib = 1 << self.guess.min(22);
        // Four threads need eight blocks each.
        let (passes, lanes) = if memory_kib < 32 { (1, 1) } else { (3, 4) };
        KdfParams { memory_kib, passes, lanes }
    }

    /// Refuses impossible ones.
    ///
    /// # Errors
    /// `Invalid` says which.
    pub fn check(&self) -> Result<()> {
        if !(1..=LANE_OBJECTS.len()).contains(&self.count.into()) {
            return Err(Error::Invalid("a volume has one lane or two, or none".into()));
        }
        if !(2..=64).contains(&self.share) || !(1..=64).contains(&self.grace) {
            let why = "a lane has a half to a 64th of the volume, and all of it to a 64th as grace";
            return Err(Error::Invalid(why.into()));
        }
        if !(3..=22).contains(&self.guess) {
            let why = "a guess of a lane's passphrase takes 8 KiB to 4 GiB";
            return Err(Error::Invalid(why.into()));
        }
        Ok(())
    }

    /// The objects of the lanes.
    pub fn objects(&self) -> &'static [LaneObjects] {
        &LANE_OBJECTS[..usize::from(self.count).min(LANE_OBJECTS.len())]
    }
}
