//! A session of this computer: it begins, stores entries in order, and ends when another began.

use super::claim::{Claims, Way, Who};
use super::entry::{BEGIN, COMMIT, Draft, FIRST_KIND, Mark, RELEASE, Start};
use super::history::{History, Reader};
use super::names::{self, SessionId};
use super::planted::{Fault, Planted};
use super::pointer;
use super::vault::Vault;
use crate::environment::Environment;
use crate::{Error, Result};
use oblivio_crypto::{Entropy, Tag};
use oblivio_store::{PutMode, Store, WriteAt};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Attempts to take a number while others take it too.
const ATTEMPTS: u32 = 40;
/// The first pause between two; it doubles, to 64 times that.
const PAUSE: Duration = Duration::from_millis(50);
/// How a session begins.
pub struct Opening {
    pub store: Arc<dyn Store>,
    pub way: Way,
    pub vault: Vault,
    pub environment: Environment,
    pub who: Who,
    /// The largest number of a session that is known. Any other costs only time.
    pub hint: u64,
    /// Whether a claim that does not open may hide a session.
    pub accept_gaps: bool,
    pub planted: Planted,
}

impl Opening {
    /// Takes the next number, then reads the history. Nothing is shown to the store yet that could
    /// be shown again: call [`Session::start`] before any read that follows from it.
    ///
    /// # Errors
    /// `Overtaken` if another computer began meanwhile, `Busy` if others kept on taking the number.
    /// `Tampered` if something is gone or damaged that an honest store has. Those of the store.
    pub fn begin(mut self) -> Result<(Session, History)> {
        let early = self.planted.is(Fault::EarlyRead).then(|| self.read_early()).transpose()?;
        let id = self.take()?;
        let history = match early {
            Some(history) => Ok(history),
            None => self.read(id.number),
        };
        let mut session = Session::new(self, id);
        // Reading may fail only because a later session deletes.
        session.look()?;
        let history = history?;
        let commit = history.commit.as_ref().map(|(mark, _)| *mark);
        session.stand_on(Start { parent: history.parent, commit });
        Ok((session, history))
    }

    fn read(&mut self, number: u64) -> Result<History> {
        let (store, vault) = (&*self.store, &mut self.vault);
        Reader { store, way: self.way, vault, accept_gaps: self.accept_gaps }.history(number)
    }

    fn read_early(&mut self) -> Result<History> {
        let number = Claims { store: &*self.store, way: self.way }.largest(self.hint)? + 1;
        self.read(number)
    }

    /// Takes a number. Each attempt has a random part of its own, so an attempt that failed never
    /// comes to life.
    fn take(&mut self) -> Result<SessionId> {
        let claims = Claims { store: &*self.store, way: self.way };
        let (clock, randomness) = (&self.environment.clock, &mut self.environment.randomness);
        for attempt in 0..ATTEMPTS {
            let number = claims.largest(self.hint)? + 1;
            if number > names::MOST_NUMBER {
                return Err(Error::Tampered("sessions: the largest number is taken".into()));
            }
            let id = SessionId { number, random: randomness.next_u64() };
            if claims.claim(&mut self.vault, id, &self.who)? {
                return Ok(id);
            }
            self.hint = number;
            // Drawn, so that two do not go on in step.
            let pause = PAUSE * (1 << attempt.min(6));
            clock.sleep(pause / 2 + pause * (randomness.next_u64() % 1024) as u32 / 1024);
        }
        Err(Error::Busy)
    }
}

/// An entry that was sent.
struct Sent {
    name: String,
    bytes: Vec<u8>,
}

/// A session of this computer.
pub struct Session {
    store: Arc<dyn Store>,
    way: Way,
    vault: Vault,
    id: SessionId,
    planted: Planted,
    start: Start,
    /// The last entry that was sent: index 0 before the first.
    last: Mark,
    /// Entries that may not be stored yet. A repeated store sends the same bytes.
    sent: Vec<Sent>,
    /// Whether the store of one of them failed.
    failed: bool,
    /// Those up to here are stored, and acknowledged.
    stored: u64,
    settled: u64,
    commits: u64,
    /// Pointers to commits that are not stored yet: name and bytes.
    due: VecDeque<(String, Vec<u8>)>,
    /// Whether a later session was seen: this one stores nothing more.
    overtaken: bool,
}

impl Session {
    fn new(opening: Opening, id: SessionId) -> Self {
        let Opening { store, way, vault, planted, .. } = opening;
        Self {
            store,
            way,
            vault,
            id,
            planted,
            start: Start { parent: None, commit: None },
            last: Mark { session: id, index: 0, tag: Tag::default() },
            sent: Vec::new(),
            failed: false,
            stored: 0,
            settled: 0,
            commits: 0,
            due: VecDeque::new(),
            overtaken: false,
        }
    }

    fn stand_on(&mut self, start: Start) {
        self.last.tag = start.parent.map(|parent| parent.tag).unwrap_or_default();
        self.start = start;
    }

    /// Its number and its random part.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The last entry that was sent.
    pub fn mark(&self) -> Mark {
        self.last
    }

    /// The number of the last entry that was acknowledged.
    #[cfg(test)]
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// Stores the first entry: what the session stands on, and the caller's part. From then on
    /// later sessions go on from this one.
    ///
    /// # Errors
    /// As [`Self::settle`], which makes up for a store that failed.
    pub fn start(&mut self, payload: &[u8]) -> Result<Mark> {
        let payload = self.start.encode(payload);
        self.push(BEGIN, &payload, 0)?;
        self.settle()?;
        Ok(self.last)
    }

    /// Sends an entry, and waits for nothing. It has its place in the order, even if the store
    /// fails: [`Self::settle`] says so, and sends it again.
    ///
    /// # Errors
    /// `Overtaken`, `TooLarge`.
    pub fn send(&mut self, kind: u64, payload: &[u8], least: usize) -> Result<Mark> {
        if kind < FIRST_KIND {
            return Err(Error::Invalid(format!("{kind} is no kind of an entry")));
        }
        self.push(kind, payload, least)
    }

    /// Waits for all entries that were sent, and looks. Then they are acknowledged: each later
    /// session has them in its history. Stores the pointers to commits among them.
    ///
    /// # Errors
    /// Those of the store: nothing is known of what is not settled, and another call goes on.
    /// `Overtaken`: what is not settled may or may not be part of the history.
    pub fn settle(&mut self) -> Result<()> {
        self.check()?;
        self.acknowledge()?;
        self.point()
    }

    /// Sends an entry and settles.
    ///
    /// # Errors
    /// As [`Self::settle`].
    #[cfg(test)]
    pub fn append(&mut self, kind: u64, payload: &[u8], least: usize) -> Result<Mark> {
        let mark = self.send(kind, payload, least)?;
        self.settle()?;
        Ok(mark)
    }

    /// Commits: stores the entry, looks, stores its pointer, looks. All objects that the commit
    /// needs are stored before.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn commit(&mut self, payload: &[u8], least: usize) -> Result<Mark> {
        let mark = self.push(COMMIT, payload, least)?;
        self.commits += 1;
        let nth = if self.planted.is(Fault::PointerInPlace) { 1 } else { self.commits };
        let bytes = pointer::seal(&mut self.vault, nth, mark)?;
        self.due.push_back((self.id.pointer(nth), bytes));
        if self.planted.is(Fault::EarlyDelete) {
            self.acknowledge()?;
        } else {
            self.settle()?;
        }
        Ok(mark)
    }

    /// Deletes objects that no commit from the newest on needs. It looks first: once a later
    /// session began, that one may need them.
    ///
    /// # Errors
    /// Those of the store, `Overtaken`.
    pub fn delete(&mut self, names: &[&str]) -> Result<()> {
        self.check()?;
        if self.planted.is(Fault::BlindDelete) {
            return Ok(self.store.delete(names)?);
        }
        if !self.planted.is(Fault::EarlyDelete) {
            // Not before the pointer to the commit that replaced them.
            self.settle()?;
        }
        self.look()?;
        Ok(self.store.delete(names)?)
    }

    /// Looks for a later session.
    ///
    /// # Errors
    /// `Overtaken` if there is one, now and ever after. Those of the store.
    pub fn look(&mut self) -> Result<()> {
        self.check()?;
        let claims = Claims { store: &*self.store, way: self.way };
        if claims.claimed(self.id.number + 1)? {
            self.overtaken = true;
        }
        self.check()
    }

    /// Says that this computer is done for now: another one need not wait. A later entry takes that
    /// back.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn release(&mut self, payload: &[u8]) -> Result<()> {
        self.push(RELEASE, payload, 0)?;
        self.settle()
    }

    fn check(&self) -> Result<()> {
        if self.overtaken { Err(Error::Overtaken) } else { Ok(()) }
    }

    /// Seals the next entry and begins to store it.
    fn push(&mut self, kind: u64, payload: &[u8], least: usize) -> Result<Mark> {
        self.check()?;
        if (self.last.index == 0) != (kind == BEGIN) {
            return Err(Error::Invalid("a session starts once, before its other entries".into()));
        }
        if self.planted.is(Fault::EarlyLook) {
            self.look()?;
        }
        let draft = Draft { before: self.last, settled: self.settled, kind, payload, least };
        let (mark, bytes) = draft.seal(&mut self.vault)?;
        let name = self.id.entry(mark.index);
        self.last = mark;
        self.sent.push(Sent { name, bytes });
        let sent = &self.sent[self.sent.len() - 1];
        let begun = self.store.write(&[WriteAt::new(&sent.name, 0, &sent.bytes)]);
        self.failed |= begun.is_err();
        Ok(mark)
    }

    /// Waits for the entries, then looks.
    fn acknowledge(&mut self) -> Result<()> {
        if self.settled == self.last.index {
            return Ok(());
        }
        if !self.sent.is_empty() {
            let stored = self.store_sent();
            self.failed = stored.is_err();
            stored?;
            self.stored = self.last.index;
            self.sent.clear();
        }
        if !self.planted.is(Fault::NoLook) && !self.planted.is(Fault::EarlyLook) {
            self.look()?;
        }
        self.settled = self.stored;
        Ok(())
    }

    fn store_sent(&self) -> oblivio_store::Result<()> {
        if self.failed {
            let writes: Vec<WriteAt<'_>> =
                self.sent.iter().map(|sent| WriteAt::new(&sent.name, 0, &sent.bytes)).collect();
            self.store.write(&writes)?;
        }
        let names: Vec<&str> = self.sent.iter().map(|sent| sent.name.as_str()).collect();
        self.store.sync(&names)
    }

    /// Stores pointers that are due, each after the one before was answered.
    fn point(&mut self) -> Result<()> {
        if self.due.is_empty() {
            return Ok(());
        }
        while let Some((name, bytes)) = self.due.front() {
            self.store.put(name, bytes, PutMode::Replace)?;
            self.due.pop_front();
        }
        self.look()
    }
}
