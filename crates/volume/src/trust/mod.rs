//! Which state of a volume is the newest: this computer's memory, and its judgement of a store's
//! answers.
//!
//! A store may show any past state, and states of sessions that never knew of each other. This
//! computer checks it against what it knows (docs/decisions/0018-trust.md):
//! - a commit of a lower number, or a different one of the same number, is older or a fork;
//! - on the same commit, the log must have the last noted record at its place;
//! - a commit of a higher number must carry, in its table of computers, the newest act that this
//!   computer knew of.

mod known;
pub mod notes;
mod table;

pub use known::{
    Act, ComputerId, Keep, Keeper, Known, LogMark, LogSeen, MemoryKeeper, NoteSyncer, SessionHint,
};
pub(crate) use known::{ReadOnlyKeeper, StoredAct};
pub(crate) use table::{MOST_ROWS, Table};

use crate::options::OpenOptions;
use crate::{Error, Result};
use oblivio_crypto::VolumeId;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The error of an older state that was shown because the newest, of two in this object, does not
/// open: that one is damaged. Nobody put an old one back, as far as that shows.
pub(crate) fn beside_damage(error: Error, damaged: bool, object: &str) -> Error {
    match error {
        Error::RolledBack(_) if damaged => Error::Tampered(format!(
            "{object}: the newest of its two records is damaged, and the other one is older than \
             this computer knows"
        )),
        error => error,
    }
}

/// What this computer knows of an open volume.
pub(crate) struct Trust {
    notes: SharedNotes,
    /// The knowledge at the opening, if that must still hold.
    before: Option<Known>,
    /// The identity of this computer's session before.
    was: ComputerId,
    table: Table,
    most_rows: usize,
}

/// The notes of a session. A thread that makes records durable notes them, too.
#[derive(Clone)]
pub(crate) struct SharedNotes(Arc<Mutex<Notes>>);

/// The present note, and who keeps it.
pub(crate) struct Notes {
    keeper: Option<Box<dyn Keeper>>,
    noted: Known,
}

impl SharedNotes {
    fn lock(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Trust::logged`].
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn logged(&self, log: LogMark, newest: Option<Act>) -> Result<()> {
        let mut notes = self.lock();
        notes.noted.log = LogSeen::Mark(log);
        notes.noted.newest = newest;
        notes.note(Keep::Soon)
    }

    /// As [`Keeper::syncer`].
    pub fn syncer(&self) -> Option<NoteSyncer> {
        self.lock().keeper.as_ref().and_then(|keeper| keeper.syncer())
    }
}

impl Notes {
    fn note(&mut self, keep: Keep) -> Result<()> {
        match &mut self.keeper {
            Some(keeper) => keeper.note(&self.noted, keep),
            None => Ok(()),
        }
    }
}

impl Trust {
    /// Takes the knowledge of a volume, for a session. Its identity is authenticated.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn take(volume: VolumeId, options: &mut OpenOptions) -> Result<Self> {
        let mut keeper = options.keeper.take();
        let mut randomness = options.environment.randomness.clone();
        let before = match &mut keeper {
            Some(keeper) => keeper.take(volume)?,
            None => None,
        };
        let accepted = options.accept_rollback;
        let id = ComputerId::generate(&mut randomness);
        let mut noted = before.unwrap_or_else(|| Known::nothing(volume, id));
        let was = noted.computer;
        // Acts not noted may have been hidden, and may be shown to others.
        if !noted.ended || accepted {
            noted.computer = ComputerId::generate(&mut randomness);
        }
        let before = before.filter(|_| !accepted);
        let table = Table::default();
        let notes = SharedNotes(Arc::new(Mutex::new(Notes { keeper, noted })));
        Ok(Self { notes, before, was, table, most_rows: MOST_ROWS })
    }

    /// The session that this computer had before, and whether that ended at its last entry.
    pub fn session_before(&self) -> Option<(SessionHint, bool)> {
        self.before.as_ref().and_then(|before| Some((before.session?, before.ended)))
    }

    /// How far this session is. The next note says it.
    pub fn reached(&mut self, session: SessionHint) {
        self.notes.lock().noted.session = Some(session);
    }

    /// The identity of this computer in its session before this one.
    pub fn was(&self) -> ComputerId {
        self.was
    }

    /// What all sessions of this computer have in common, if its keeper knows.
    pub fn machine(&self) -> Option<ComputerId> {
        self.notes.lock().keeper.as_ref().and_then(|keeper| keeper.machine())
    }

    /// Limits the rows of tables; 0 for a state without room for one.
    pub fn limit_rows(&mut self, rows: usize) {
        self.most_rows = rows;
    }

    /// Judges the shown commit, with its table, if it carries one.
    ///
    /// # Errors
    /// `RolledBack` if this computer knows a newer state, or one that did not lead to it.
    pub fn judge_commit(
        &mut self,
        epoch: u64,
        digest: [u8; 32],
        table: Option<Table>,
    ) -> Result<()> {
        let has = |act| table.as_ref().is_some_and(|table| table.has(act));
        if let Some(before) = &self.before {
            if epoch < before.epoch {
                return Err(Error::RolledBack(format!(
                    "the volume is at commit {epoch}, but this computer knows commit {}",
                    before.epoch
                )));
            }
            if epoch == before.epoch && digest != before.digest {
                return Err(Error::RolledBack(format!(
                    "commit {epoch} is another one than the one that this computer knows"
                )));
            }
            if epoch > before.epoch && before.newest.is_some_and(|act| !has(act)) {
                return Err(Error::RolledBack(format!(
                    "commit {epoch} does not lead on from commit {}, which this computer knows: \
                     it is of another history, or this computer was away for very long",
                    before.epoch
                )));
            }
        }
        self.table = table.unwrap_or_default();
        let mut notes = self.notes.lock();
        (notes.noted.epoch, notes.noted.digest) = (epoch, digest);
        Ok(())
    }

    /// Whether this state is that of another session's judged commit, or leads on from it.
    pub fn leads_on_from(&self, other: &Self) -> bool {
        let maker = other.table.newest();
        let same_volume = self.known().volume == other.known().volume;
        same_volume && maker.number > 0 && self.table.has(maker)
    }

    /// The check of the log on the judged commit.
    pub fn log_check(&self) -> LogCheck {
        let noted = self.known();
        let same = |before: &&Known| (before.epoch, before.digest) == (noted.epoch, noted.digest);
        let expected = self.before.as_ref().filter(same).map(|before| before.log);
        LogCheck { expected, ..LogCheck::default() }
    }

    /// Adds an act of the replayed log.
    pub fn absorb(&mut self, act: Act) {
        self.table.absorb(act, self.known().epoch + 1);
    }

    /// Begins a session on the judged commit, with a log up to `log` whose newest act, if any, is
    /// `newest`. From now on nothing older passes for the newest.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn begin(&mut self, log: LogMark, newest: Option<Act>) -> Result<()> {
        let maker = Some(self.table.newest()).filter(|maker| maker.number > 0);
        let mut notes = self.notes.lock();
        notes.noted.log = LogSeen::Mark(log);
        notes.noted.newest = newest.or(maker);
        notes.noted.ended = false;
        notes.note(Keep::Durable)
    }

    /// The last act of this computer; number 0 before the first.
    pub fn last_act(&self) -> Act {
        let computer = self.known().computer;
        Act { computer, number: self.table.acts(computer) }
    }

    /// Prepares for an act of this computer; gives its name.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn go_on(&mut self) -> Result<ComputerId> {
        let mut notes = self.notes.lock();
        if notes.noted.ended {
            notes.noted.ended = false;
            notes.note(Keep::Durable)?;
        }
        Ok(notes.noted.computer)
    }

    /// Makes the next act of this computer.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn act(&mut self) -> Result<Act> {
        self.go_on()?;
        let act = Act { number: self.last_act().number + 1, ..self.last_act() };
        self.absorb(act);
        Ok(act)
    }

    /// Notes the newest record of the log. Call it once the record is durable, and before any
    /// answer or read follows from it.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn logged(&mut self, log: LogMark, newest: Option<Act>) -> Result<()> {
        self.notes.logged(log, newest)
    }

    /// Makes the next commit, with this number, an act of this computer.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn commit_act(&mut self, epoch: u64) -> Result<&Table> {
        let maker = self.act()?;
        Ok(self.commit(maker, epoch))
    }

    /// The table of the next commit, with this number and newest act.
    pub fn commit(&mut self, newest: Act, epoch: u64) -> &Table {
        self.table.commit(newest, epoch, self.most_rows);
        &self.table
    }

    /// Call it before a commit is made current.
    ///
    /// # Errors
    /// `RolledBack` if another session of this computer went on meanwhile.
    pub fn refuse_overtaken(&mut self) -> Result<()> {
        let mut notes = self.notes.lock();
        let Notes { keeper, noted } = &mut *notes;
        if keeper.as_mut().map_or(Ok(true), |keeper| keeper.holds(noted))? {
            return Ok(());
        }
        let why = "another session of this computer changed what it knows of the volume";
        Err(Error::RolledBack(why.into()))
    }

    /// Notes a durable commit; `log` is where its log begins.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn committed(
        &mut self,
        epoch: u64,
        digest: [u8; 32],
        log: LogMark,
        keep: Keep,
    ) -> Result<()> {
        let mut notes = self.notes.lock();
        (notes.noted.epoch, notes.noted.digest) = (epoch, digest);
        notes.noted.log = LogSeen::Mark(log);
        notes.noted.newest = (self.most_rows > 0).then(|| self.table.newest());
        notes.note(keep)
    }

    /// Notes a durable commit made during a replay, whose log goes further.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn replayed(&mut self, epoch: u64, digest: [u8; 32]) -> Result<()> {
        let mut notes = self.notes.lock();
        (notes.noted.epoch, notes.noted.digest) = (epoch, digest);
        notes.note(Keep::Soon)
    }

    /// Notes that the session ended well: with a commit, and nothing after it.
    ///
    /// # Errors
    /// Those of the keeper.
    pub fn end(&mut self) -> Result<()> {
        let mut notes = self.notes.lock();
        notes.noted.ended = self.most_rows > 0;
        notes.note(Keep::Soon)
    }

    /// The present knowledge.
    pub fn known(&self) -> Known {
        self.notes.lock().noted
    }

    /// The notes, for a thread that makes records durable.
    pub fn notes(&self) -> SharedNotes {
        self.notes.clone()
    }

    /// Whether this computer's last session of the volume ended well, and the judged commit is the
    /// one that it left: then nothing that was shown is forgotten.
    pub fn left_it_well(&self) -> bool {
        let noted = self.known();
        self.before.as_ref().is_some_and(|before| {
            before.ended && (before.epoch, before.digest) == (noted.epoch, noted.digest)
        })
    }
}

/// Checks a log, record by record, against the knowledge of it.
#[derive(Default)]
pub(crate) struct LogCheck {
    expected: Option<LogSeen>,
    met: bool,
    syncs: u64,
}

impl LogCheck {
    /// Notes a record that ends here.
    pub fn pass(&mut self, mark: LogMark) {
        self.met |= self.expected == Some(LogSeen::Mark(mark));
    }

    /// How many records this computer knows to be durable.
    pub fn durable(&self) -> u64 {
        match self.expected {
            Some(LogSeen::Mark(mark)) => mark.end,
            _ => 0,
        }
    }

    /// Counts a sync.
    pub fn sync(&mut self) {
        self.syncs += 1;
    }

    /// Ends the check of a log from `from` to `end`.
    ///
    /// # Errors
    /// `RolledBack` if the newest known record is missing, or another one is in its place.
    pub fn finish(&self, from: u64, end: u64) -> Result<()> {
        match self.expected {
            Some(LogSeen::Mark(mark)) if mark.end > from && !self.met => {
                let what = if end < mark.end {
                    "the end of the log is missing, which this computer knows"
                } else {
                    "the log is another one than the one that this computer knows"
                };
                Err(Error::RolledBack(what.into()))
            }
            Some(LogSeen::Syncs(seen)) if self.syncs < seen => Err(Error::RolledBack(format!(
                "the end of what was synced is missing: {} of {seen} syncs that this computer saw",
                seen - self.syncs
            ))),
            _ => Ok(()),
        }
    }
}
