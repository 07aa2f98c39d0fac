//! A session of this computer: it begins, stores entries in order, and ends when another began.

use super::ask::there;
use super::claim::{self, ClaimMode, Claims, Who};
use super::entry::{BEAT, BEGIN, COMMIT, Draft, FIRST_KIND, Mark, RELEASE, Start};
use super::history::{History, HistoryReader, Stands};
use super::names::{self, SessionId};
use super::others::{self, Holder, OtherComputer};
use super::planted::{Planted, PlantedFault};
use super::pointer;
use super::vault::Vault;
use crate::environment::Environment;
use crate::options::OnWait;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Entropy, Kind, Tag};
use oblivio_store::{Guard, Objects, StoreError};
use std::sync::Arc;
use std::time::Duration;

/// Attempts to take a number while others take it too.
const ATTEMPTS: u32 = 40;
/// The first pause between two; it doubles, to 64 times that.
const PAUSE: Duration = Duration::from_millis(50);
/// How a session begins.
pub struct SessionOpening {
    pub store: Arc<dyn Objects>,
    pub way: ClaimMode,
    pub vault: Vault,
    pub environment: Environment,
    pub who: Who,
    /// The identity of this computer's session before.
    pub was: ComputerId,
    /// The largest number of a session that is known. Any other costs only time.
    pub hint: u64,
    /// Whether a claim that does not open may hide a session.
    pub accept_gaps: bool,
    /// Whether the store has all objects of a checkpoint.
    pub stands: Stands,
    /// Asks the computer that has the volume for it, and waits. Without it, the volume is taken
    /// over at once.
    pub on_wait: Option<OnWait>,
    pub planted: Planted,
}

impl SessionOpening {
    /// Takes the next number, then reads the history. Nothing is shown to the store yet that could
    /// be shown again: call [`Session::start`] before any read that follows from it.
    ///
    /// # Errors
    /// `Overtaken` if another computer began meanwhile, `Busy` if others kept on taking the number.
    /// `Held` if another one goes on with the volume. `Tampered` if something is gone or damaged
    /// that an honest store has. Those of the store.
    pub fn begin(mut self) -> Result<(OwnSession, History)> {
        if let Some(mut on_wait) = self.on_wait.take() {
            self.asking().wait(&mut on_wait)?;
        }
        let early = self.planted.is(PlantedFault::EarlyRead).then(|| self.peek()).transpose()?;
        let id = self.take()?;
        let history = match early {
            Some(history) => Ok(history),
            None => self.read(id.number),
        };
        let who = self.who.clone();
        let mut session = OwnSession::new(self, id);
        // Reading may fail only because a later session deletes.
        session.look()?;
        let history = history?;
        let commit = history.commit.as_ref().map(|(mark, _)| *mark);
        session.stand_on(Start { parent: history.parent, commit });
        session.claim_copy = claim::seal(&mut session.vault, Kind::Claim, id, &who)?;
        Ok((session, history))
    }

    fn read(&mut self, number: u64) -> Result<History> {
        self.asking().reader.history(number)
    }

    /// Who has the volume now, or had it last.
    ///
    /// # Errors
    /// Those of the store.
    pub fn holder(&mut self) -> Result<Option<Holder>> {
        self.asking().holder()
    }

    /// What a session would start from now, without taking a number.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn peek(&mut self) -> Result<History> {
        let number = Claims { store: &*self.store, way: self.way }.largest(self.hint)? + 1;
        self.read(number)
    }

    /// What reads the sessions so far, and asks the last one.
    fn asking(&mut self) -> OtherComputer<'_> {
        let Self { store, way, vault, accept_gaps, stands, planted, .. } = self;
        let (store, way, stands, planted) = (&**store, *way, *stands, *planted);
        let reader = HistoryReader::new(store, (way, vault), *accept_gaps, (stands, planted));
        let (clock, was) = (&*self.environment.clock, self.was);
        OtherComputer { reader, clock, who: &self.who, was, hint: &mut self.hint }
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

/// An entry or a pointer that was sent.
struct Sent {
    name: String,
    bytes: Vec<u8>,
}

/// A session of this computer.
pub struct OwnSession {
    pub(super) store: Arc<dyn Objects>,
    pub(super) way: ClaimMode,
    pub(super) vault: Vault,
    pub(super) id: SessionId,
    /// The second copy of its claim, until the first entry is sent.
    claim_copy: Vec<u8>,
    planted: Planted,
    start: Start,
    /// The last entry that was sent: index 0 before the first.
    last: Mark,
    /// Entries, and the last pointer, that may not be stored yet. A repeated store sends the same
    /// bytes.
    sent: Vec<Sent>,
    /// Whether the store of one of them failed.
    failed: bool,
    /// Entries up to here are acknowledged.
    settled: u64,
    /// Checkpoints that were confirmed.
    pub(super) confirmed: u64,
    /// Whether a later session was seen: this one stores nothing more.
    overtaken: bool,
}

impl OwnSession {
    fn new(opening: SessionOpening, id: SessionId) -> Self {
        let SessionOpening { store, way, vault, planted, .. } = opening;
        Self {
            store,
            way,
            vault,
            id,
            claim_copy: Vec::new(),
            planted,
            start: Start { parent: None, commit: None },
            last: Mark { session: id, index: 0, tag: Tag::default() },
            sent: Vec::new(),
            failed: false,
            settled: 0,
            confirmed: 0,
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
        let bytes = std::mem::take(&mut self.claim_copy);
        if !bytes.is_empty() {
            let [_, name] = Claims { store: &*self.store, way: self.way }.names(self.id);
            self.begin(Sent { name, bytes });
        }
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

    /// Waits for all entries that were sent, and for the last pointer, and looks. Then they are
    /// acknowledged: each later session has them in its history.
    ///
    /// # Errors
    /// Those of the store: nothing is known of what is not settled, and another call goes on.
    /// `Overtaken`: what is not settled may or may not be part of the history.
    pub fn settle(&mut self) -> Result<()> {
        self.check()?;
        if self.sent.is_empty() && self.settled == self.last.index {
            return Ok(());
        }
        let stored = self.store_sent();
        self.failed = stored.is_err();
        stored?;
        self.sent.clear();
        if !self.planted.is(PlantedFault::NoLook) && !self.planted.is(PlantedFault::EarlyLook) {
            self.look()?;
        }
        self.settled = self.last.index;
        Ok(())
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

    /// Makes a checkpoint, and waits for nothing. It stands once all of its objects are stored: a
    /// later session then need not read what was before it. [`Self::confirm`] says that they are.
    /// With `copied` its entry has a second copy, beside it.
    ///
    /// # Errors
    /// `Overtaken`, `TooLarge`.
    pub fn checkpoint(&mut self, payload: &[u8], copied: bool) -> Result<Mark> {
        let mark = self.push(COMMIT, payload, 0)?;
        if let Some(entry) = self.sent.last().filter(|_| copied) {
            let bytes = entry.bytes.clone();
            self.begin(Sent { name: self.id.copy(mark.index), bytes });
        }
        Ok(mark)
    }

    /// All objects of a checkpoint are stored. Settles, then begins to store the pointer to it.
    /// Checkpoints are confirmed in their order.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn confirm(&mut self, checkpoint: Mark) -> Result<()> {
        // The pointer before was answered, or a late copy could be the newest for a while.
        self.settle()?;
        self.confirmed += 1;
        let nth = if self.planted.is(PlantedFault::PointerInPlace) { 1 } else { self.confirmed };
        let bytes = pointer::seal(&mut self.vault, nth, checkpoint)?;
        self.begin(Sent { name: self.id.pointer(nth), bytes });
        Ok(())
    }

    /// A checkpoint without objects, confirmed.
    #[cfg(test)]
    pub fn commit(&mut self, payload: &[u8], copied: bool) -> Result<Mark> {
        let mark = self.checkpoint(payload, copied)?;
        self.confirm(mark)?;
        self.settle()?;
        Ok(mark)
    }

    /// Deletes objects that no checkpoint from the last confirmed one on needs. Its pointer is
    /// stored before, and after that the session looks: a later one then starts from there, or
    /// from a later checkpoint.
    ///
    /// # Errors
    /// Those of the store, `Overtaken`.
    pub fn delete(&mut self, names: &[&str]) -> Result<()> {
        self.check()?;
        match () {
            () if self.planted.is(PlantedFault::BlindDelete) => {}
            () if self.planted.is(PlantedFault::EarlyDelete) => self.look()?,
            () => self.settle()?,
        }
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

    /// Whether the store shows the claim of this session, or its first entry. Both stay as long as
    /// the session does.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_shown(&self) -> Result<bool> {
        let [claim, _] = Claims { store: &*self.store, way: self.way }.names(self.id);
        Ok(there(&*self.store, &[claim, self.id.entry(1)])?.contains(&true))
    }

    /// Who wants the volume, if somebody asked this session for it.
    ///
    /// # Errors
    /// Those of the store.
    pub fn wanted(&mut self) -> Result<Option<Who>> {
        others::wanted(&*self.store, &mut self.vault, self.id)
    }

    /// Answers who asked: this session is at work, and goes on for now.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn beat(&mut self) -> Result<Mark> {
        self.push(BEAT, &[], 0)?;
        self.settle()?;
        Ok(self.last)
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

    /// Asks for a later session before a read that failed is repeated: it may have shown the same.
    pub fn guard(&self) -> Guard {
        let (way, next) = (self.way, self.id.number + 1);
        Guard::new(move |store| match (Claims { store, way }).claimed(next) {
            Ok(false) => Ok(()),
            Err(Error::Store(error)) => Err(error),
            Ok(true) | Err(_) => Err(StoreError::Busy),
        })
    }

    /// Whether it has an entry.
    pub fn has_started(&self) -> bool {
        self.last.index > 0
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
        if self.planted.is(PlantedFault::EarlyLook) {
            self.look()?;
        }
        let draft = Draft { before: self.last, settled: self.settled, kind, payload, least };
        let (mark, bytes) = draft.seal(&mut self.vault)?;
        self.last = mark;
        self.begin(Sent { name: self.id.entry(mark.index), bytes });
        Ok(mark)
    }

    /// Begins to store an object.
    fn begin(&mut self, sent: Sent) {
        let begun = self.store.begin(&[(&sent.name, &sent.bytes)]);
        self.failed |= begun.is_err();
        self.sent.push(sent);
    }

    fn store_sent(&self) -> oblivio_store::Result<()> {
        if self.failed {
            let sent = self.sent.iter().map(|sent| (sent.name.as_str(), sent.bytes.as_slice()));
            self.store.begin(&sent.collect::<Vec<_>>())?;
        }
        let names: Vec<&str> = self.sent.iter().map(|sent| sent.name.as_str()).collect();
        self.store.settle(&names)
    }
}
