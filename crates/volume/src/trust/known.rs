//! What one computer knows of a volume, and where it keeps that.

use crate::{Error, Result};
use oblivio_crypto::{Entropy, Tag, VolumeId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name of a computer in one volume: random, and a new one after a session that did not end
/// well. So no two different acts ever bear the same name and number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputerId(pub [u8; 16]);

impl ComputerId {
    /// A new name.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut id = [0; 16];
        entropy.fill(&mut id);
        Self(id)
    }
}

/// Something that a computer did: a record in a volume's log, or a commit. It counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Act {
    /// Whose act it is.
    pub computer: ComputerId,
    /// How many acts it had done then, this one included.
    pub number: u64,
}

/// A place in the log, and what stands before it: the tag of the record that ends there. Each record
/// names the tag of the one before it, so this fixes the whole log up to there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMark {
    /// Where the record ends: an offset in the journal of a tree, of a ring log how many quanta
    /// there were. 0 before the first.
    pub end: u64,
    /// Its tag.
    pub tag: Tag,
}

/// What is known of the log that stands on a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSeen {
    /// Its newest record.
    Mark(LogMark),
    /// The number of syncs only: noted by a version before marks were.
    Syncs(u64),
}

/// What a computer knows of a volume: the newest state that it made or saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The volume.
    pub volume: VolumeId,
    /// The number of the last commit.
    pub epoch: u64,
    /// What identifies that commit among others of the same number.
    pub digest: [u8; 32],
    /// The newest record of the log that stands on it.
    pub log: LogSeen,
    /// The newest act of all that led to this state; a later state has it too. `None` in what was
    /// noted by a version that did not count acts, or of a volume that was last written by one.
    pub newest: Option<Act>,
    /// The name of this computer.
    pub computer: ComputerId,
    /// The last session of this computer ended well: it did nothing that is not noted.
    pub ended: bool,
}

/// How well a note is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It survives the process; a power failure may leave an earlier note.
    Soon,
    /// It survives a power failure.
    Durable,
}

/// Where a computer keeps what it knows of volumes, outside of every store.
pub trait Keeper: Send {
    /// What is known of a volume, `None` the first time. From now on, until this is dropped, no
    /// other session of this computer can take the same volume. The identity is authenticated.
    ///
    /// # Errors
    /// `Busy` when another session has it, `OtherVolume` when another volume is known at its place,
    /// `Forgotten` when what is kept cannot be read.
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>>;

    /// Keeps this in the place of what was kept.
    ///
    /// # Errors
    /// `Forgotten` when it cannot.
    fn note(&mut self, known: &Known, keep: Keep) -> Result<()>;

    /// Whether what is kept is still what was noted last; nobody else may have changed it.
    ///
    /// # Errors
    /// `Forgotten` when it cannot be read.
    fn holds(&mut self, known: &Known) -> Result<bool>;
}

/// A computer's notes in memory: for tests, and for callers who keep them elsewhere. Copies share
/// the notes.
#[derive(Debug, Default)]
pub struct MemoryKeeper {
    notes: Arc<Mutex<Notes>>,
    taken: Option<VolumeId>,
}

#[derive(Clone, Debug, Default)]
struct Notes {
    known: HashMap<VolumeId, Known>,
    open: HashSet<VolumeId>,
}

impl MemoryKeeper {
    /// A computer that knows this.
    pub fn knowing(known: Known) -> Self {
        let keeper = Self::default();
        keeper.notes().known.insert(known.volume, known);
        keeper
    }

    /// What is known of a volume.
    pub fn known(&self, volume: VolumeId) -> Option<Known> {
        self.notes().known.get(&volume).copied()
    }

    /// Another computer, which knows as much now.
    #[must_use]
    pub fn twin(&self) -> Self {
        let known = self.notes().known.clone();
        let notes = Notes { known, ..Notes::default() };
        Self { notes: Arc::new(Mutex::new(notes)), taken: None }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for MemoryKeeper {
    fn clone(&self) -> Self {
        Self { notes: Arc::clone(&self.notes), taken: None }
    }
}

impl Drop for MemoryKeeper {
    fn drop(&mut self) {
        if let Some(volume) = self.taken {
            self.notes().open.remove(&volume);
        }
    }
}

impl Keeper for MemoryKeeper {
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>> {
        let mut notes = self.notes();
        if !notes.open.insert(volume) {
            return Err(Error::Busy);
        }
        let known = notes.known.get(&volume).copied();
        drop(notes);
        self.taken = Some(volume);
        Ok(known)
    }

    fn note(&mut self, known: &Known, _keep: Keep) -> Result<()> {
        self.notes().known.insert(known.volume, *known);
        Ok(())
    }

    fn holds(&mut self, known: &Known) -> Result<bool> {
        Ok(self.known(known.volume) == Some(*known))
    }
}
