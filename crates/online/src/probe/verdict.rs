//! What a probe finds, and what follows from it.

use oblivio_store::{Objects, Result};
use std::fmt;
use std::time::Duration;

/// Makes one more connection. A runtime of its own lets the probe cut a put by closing it.
pub type Connect<'a> = &'a (dyn Fn() -> Result<Box<dyn Objects>> + Sync);

/// How much to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Connections in a race.
    pub racers: usize,
    /// Races of each kind.
    pub rounds: usize,
    /// Round trips that are measured.
    pub pings: usize,
    /// Bytes each way to measure the speed.
    pub bytes: usize,
}

impl Effort {
    /// What `init` does: half a minute on a near service.
    pub const FULL: Self = Self { racers: 8, rounds: 25, pings: 20, bytes: 8 << 20 };
    /// The same races, with fewer bytes for a slow or dear line.
    pub const SMALL: Self = Self { racers: 8, rounds: 25, pings: 20, bytes: 512 << 10 };

    /// [`Self::SMALL`] with this number of races of each kind; [`Self::FULL`] without a number.
    #[must_use]
    pub fn of(races: Option<usize>) -> Self {
        races.map_or(Self::FULL, |rounds| Self { rounds: rounds.max(1), ..Self::SMALL })
    }
}

/// How a session begins on this store, so that one at a time is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begin {
    /// By creating an object that nobody else can create.
    Exclusive,
    /// By storing an object of its own and finding it alone in a list.
    Alone,
    /// Not at all, and why.
    Refused(&'static str),
}

/// The outcome of races.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Race {
    /// How many were run.
    pub rounds: usize,
    /// In how many several won.
    pub several_won: usize,
    /// In how many nobody won, which is harmless.
    pub nobody_won: usize,
}

/// How many of the things looked for were not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LostCounts {
    /// Looked for.
    pub of: usize,
    /// Not found, or wrong.
    pub lost: usize,
}

/// What a put leaves that is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Torn {
    /// Nothing.
    Never,
    /// Part of the object, under its name.
    Seen,
    /// All puts were done before they could be cut.
    Unknown,
}

/// How fast it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speed {
    /// The median round trip.
    pub ping: Duration,
    /// The longest.
    pub slowest_ping: Duration,
    /// Bytes a second to the service.
    pub up: u64,
    /// Bytes a second from it.
    pub down: u64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeVerdict {
    /// How a session begins.
    pub begin: Begin,
    /// Races for one name. `None` if the service does not promise anything about it.
    pub creates: Option<Race>,
    /// Races to be alone in a list.
    pub alone: Race,
    /// Entries that were in no list right after the put, of any connection.
    pub listed: LostCounts,
    /// Objects that another connection did not read right after the put.
    pub read: LostCounts,
    /// Ranges that were wrong.
    pub ranges: LostCounts,
    /// Objects that were "not there" for one who had asked before they were.
    pub absent_kept: LostCounts,
    /// What a put leaves that is cut short.
    pub torn: Torn,
    /// How fast it is.
    pub speed: Speed,
}

/// The rule, over what was found.
pub(super) fn begin(found: &ProbeVerdict) -> Begin {
    let lists = found.listed.lost == 0 && found.alone.several_won == 0;
    let creates = found.creates.is_some_and(|race| race.several_won == 0);
    // Who keeps "not there" in a cache does not see a later session by its name.
    let looks = found.absent_kept.lost == 0;
    if found.ranges.lost > 0 {
        Begin::Refused("it does not read ranges of objects")
    } else if found.read.lost > 0 {
        Begin::Refused("what one connection stores, another does not read")
    } else if creates && looks {
        Begin::Exclusive
    } else if lists {
        Begin::Alone
    } else if creates {
        Begin::Refused("it says \"not there\" of objects that are, and its lists are incomplete")
    } else {
        Begin::Refused("its lists are incomplete, and several can create the same object")
    }
}

impl fmt::Display for LostCounts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lost {
            0 => write!(out, "all {} right", self.of),
            lost => write!(out, "{lost} of {} wrong", self.of),
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.several_won {
            0 => write!(out, "{} races, never two winners", self.rounds)?,
            several => write!(out, "{several} of {} races had several winners", self.rounds)?,
        }
        match self.nobody_won {
            0 => Ok(()),
            nobody => write!(out, ", {nobody} had none"),
        }
    }
}

impl ProbeVerdict {
    /// The verdict in words, a line for each part.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let begin = match &self.begin {
            Begin::Exclusive => "usable: a session begins by creating an object".to_owned(),
            Begin::Alone => "usable: a session begins by being alone in a list".to_owned(),
            Begin::Refused(why) => format!("refused: {why}"),
        };
        let creates = match &self.creates {
            Some(race) => race.to_string(),
            None => "not promised".to_owned(),
        };
        let torn = match self.torn {
            Torn::Never => "nothing",
            Torn::Seen => "part of the object, which is noticed by its length",
            Torn::Unknown => "not seen, as all puts were done first",
        };
        let (ms, mib) =
            (|time: Duration| time.as_secs_f64() * 1e3, |it: u64| it as f64 / 1048576.0);
        let speed = self.speed;
        vec![
            begin,
            format!("create if absent: {creates}"),
            format!("alone in a list: {}", self.alone),
            format!("listed at once: {}", self.listed),
            format!("read at once: {}", self.read),
            format!("ranges: {}", self.ranges),
            format!("seen after \"not there\": {}", self.absent_kept),
            format!("a put that is cut leaves: {torn}"),
            format!(
                "a round trip takes {:.1} ms, at most {:.1}; {:.1} MiB/s up, {:.1} down",
                ms(speed.ping),
                ms(speed.slowest_ping),
                mib(speed.up),
                mib(speed.down)
            ),
        ]
    }
}
