//! One computer's knowledge of a volume, and where it keeps that.

use crate::{Error, Result};
use oblivio_crypto::{Entropy, Tag, VolumeId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A computer's name in one volume: random, and a new one after a session that did not end well. So
/// no two different acts ever bear the same name and number.
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

/// One act of a computer: a record in a volume's log, or a commit. The computer counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Act {
    /// Its author.
    pub computer: ComputerId,
    /// Its author's number of acts, this one included.
    pub number: u64,
}

/// An act as stored.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct StoredAct {
    computer: [u8; 16],
    number: U64,
}

impl StoredAct {
    pub fn new(act: Act) -> Self {
        Self { computer: act.computer.0, number: U64::new(act.number) }
    }

    pub fn get(&self) -> Act {
        Act { computer: ComputerId(self.computer), number: self.number.get() }
    }
}

/// A place in the log, and the tag of the record that ends there. Each record names its
/// predecessor's tag, so this fixes the whole log up to there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogMark {
    /// The record's end: in a tree's journal an offset, in a ring log the number of quanta. 0
    /// before the first.
    pub end: u64,
    /// Its tag.
    pub tag: Tag,
}

/// This computer's knowledge of a commit's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSeen {
    /// Its newest record.
    Mark(LogMark),
    /// Only the number of syncs: noted by a version without marks.
    Syncs(u64),
}

/// Where the search for the newest session of a volume in an online store may begin: a session, and
/// entries of it. It says where to look first, and nothing is believed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHint {
    /// The session's number, from 1 on.
    pub number: u64,
    /// The random part of its name.
    pub random: u64,
    /// Its newest commit with a pointer; 0 for none.
    pub pointer: u64,
    /// Its entry from which it is read: that of a commit, or the first.
    pub entry: u64,
    /// Its last entry.
    pub last: u64,
}

impl SessionHint {
    /// Whether it is about this session.
    pub fn is_of(&self, number: u64, random: u64) -> bool {
        (self.number, self.random) == (number, random)
    }
}

/// A computer's knowledge of a volume: the newest state that it made or saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The volume.
    pub volume: VolumeId,
    /// The number of the last commit.
    pub epoch: u64,
    /// Identifies that commit among others of the same number.
    pub digest: [u8; 32],
    /// The newest record of its log.
    pub log: LogSeen,
    /// The newest act of all that led to this state; a later state has it too. `None` if the note,
    /// or the volume's last write, is by a version that did not count acts.
    pub newest: Option<Act>,
    /// This computer's name.
    pub computer: ComputerId,
    /// Whether this computer's last session ended well: every act of it is noted.
    pub ended: bool,
    /// Its last session in an online store; `None` for other volumes.
    pub session: Option<SessionHint>,
}

impl Known {
    /// The knowledge of a volume of which nothing is known yet, by a computer of this name.
    pub fn nothing(volume: VolumeId, computer: ComputerId) -> Self {
        let log = LogSeen::Mark(LogMark::default());
        let (epoch, digest, newest, ended) = (0, [0; 32], None, false);
        Self { volume, epoch, digest, log, newest, computer, ended, session: None }
    }
}

/// How safely a note is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// It survives the process; a power failure may leave an earlier note.
    Soon,
    /// It survives a power failure.
    Durable,
}

/// Makes notes durable.
pub type NoteSyncer = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Where a computer keeps its knowledge of volumes, outside of every store.
pub trait Keeper: Send {
    /// The knowledge of a volume; `None` the first time. Until this is dropped, no other session of
    /// this computer can take the same volume. The identity is authenticated.
    ///
    /// # Errors
    /// `Busy` if another session has it, `OtherVolume` if another volume is known at its place,
    /// `Forgotten` if the note cannot be read.
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>>;

    /// Replaces the note.
    ///
    /// # Errors
    /// `Forgotten` if it cannot.
    fn note(&mut self, known: &Known, keep: Keep) -> Result<()>;

    /// A name that all sessions of this computer have in common, however they end. It lets others
    /// of them see at once that one has ended: only one at a time has a volume. `None`: there is no
    /// such name, and that of the newest note stands for it.
    fn machine(&self) -> Option<ComputerId> {
        None
    }

    /// Makes the notes so far durable, from any thread, without being in the way of the next note.
    /// `None` if nothing can be done for that.
    fn syncer(&self) -> Option<NoteSyncer> {
        None
    }

    /// Whether the note is still the last one made; nobody else may have changed it.
    ///
    /// # Errors
    /// `Forgotten` if it cannot be read.
    fn holds(&mut self, known: &Known) -> Result<bool>;
}

/// What another keeper knows, for a session that adds nothing to it.
pub(crate) struct ReadOnlyKeeper(pub Box<dyn Keeper>);

impl Keeper for ReadOnlyKeeper {
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>> {
        self.0.take(volume)
    }

    fn note(&mut self, _known: &Known, _keep: Keep) -> Result<()> {
        Ok(())
    }

    fn machine(&self) -> Option<ComputerId> {
        self.0.machine()
    }

    fn holds(&mut self, _known: &Known) -> Result<bool> {
        Ok(true)
    }
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
    /// A computer with this knowledge.
    pub fn knowing(known: Known) -> Self {
        let keeper = Self::default();
        keeper.notes().known.insert(known.volume, known);
        keeper
    }

    /// The knowledge of a volume.
    pub fn known(&self, volume: VolumeId) -> Option<Known> {
        self.notes().known.get(&volume).copied()
    }

    /// Another computer, with the same knowledge so far.
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
