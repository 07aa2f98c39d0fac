//! Past holes, to be put back: computers that know less.

use oblivio_crypto::VolumeId;
use oblivio_volume::{Error, Keep, Keeper, Known, LogSeen, MemoryKeeper, Result};
use std::sync::{Arc, Mutex, OnceLock};

/// A past mistake of a computer (docs/decisions/0018-trust.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hole {
    /// C1: an unauthenticated header chose the knowledge.
    HeaderReadTwice,
    /// H1: of a log, only the number of syncs was known.
    LogByCount,
    /// H2: only the store's own lock kept two sessions apart.
    NoLock,
    /// H3: a commit of a higher number was believed, whatever led to it.
    NoTable,
    /// M2: any volume with the same passphrase passed for another.
    AnyVolume,
    /// H4: only the store noted the next reads.
    IntentsNotNoted,
}

/// A computer with a hole, or none.
#[derive(Clone)]
pub struct Computer {
    notes: MemoryKeeper,
    hole: Option<Hole>,
    /// The volume in a header that was read before the opened one.
    named: Option<VolumeId>,
    syncs: Arc<Mutex<Syncs>>,
    /// The volume at the one place.
    place: Arc<OnceLock<VolumeId>>,
}

#[derive(Default)]
struct Syncs {
    epoch: u64,
    count: u64,
    /// Whether a sync is in progress.
    under_way: bool,
}

impl Computer {
    pub fn new(hole: Option<Hole>) -> Self {
        let (syncs, place) = (Arc::default(), Arc::default());
        Self { notes: MemoryKeeper::default(), hole, named: None, syncs, place }
    }

    /// The same, with a header that names a volume.
    pub fn told(&self, named: VolumeId) -> Self {
        Self { named: Some(named), ..self.clone() }
    }

    /// Notes the begin or end of a sync.
    pub fn sync(&self, under_way: bool) {
        self.syncs.lock().expect("one thread").under_way = under_way;
    }
}

impl Keeper for Computer {
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>> {
        let here = *self.place.get_or_init(|| volume);
        if here != volume && self.hole != Some(Hole::AnyVolume) {
            return Err(Error::OtherVolume(format!("{volume}, and not {here}")));
        }
        let known = match self.hole {
            Some(Hole::NoLock) => self.notes.known(volume),
            _ => self.notes.take(volume)?,
        };
        let Some(known) = known else { return Ok(None) };
        let syncs = self.syncs.lock().expect("one thread");
        Ok(match self.hole {
            Some(Hole::HeaderReadTwice) if self.named.is_some_and(|named| named != volume) => None,
            Some(Hole::LogByCount) => {
                let count = if syncs.epoch == known.epoch { syncs.count } else { 0 };
                Some(Known { log: LogSeen::Syncs(count), newest: None, ..known })
            }
            Some(Hole::NoTable) => Some(Known { newest: None, ..known }),
            _ => Some(known),
        })
    }

    fn note(&mut self, known: &Known, keep: Keep) -> Result<()> {
        let mut syncs = self.syncs.lock().expect("one thread");
        if syncs.epoch != known.epoch {
            (syncs.epoch, syncs.count) = (known.epoch, 0);
        }
        if syncs.under_way && keep == Keep::Soon {
            syncs.count += 1;
        }
        let intent = keep == Keep::Soon && !syncs.under_way;
        if self.hole == Some(Hole::IntentsNotNoted) && intent {
            return Ok(());
        }
        self.notes.note(known, keep)
    }

    fn holds(&mut self, known: &Known) -> Result<bool> {
        match self.hole {
            Some(Hole::NoLock | Hole::IntentsNotNoted) => Ok(true),
            _ => self.notes.holds(known),
        }
    }
}
