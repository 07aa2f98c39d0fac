//! A session of this computer: it stores entries in order, and ends when another began.

use super::ask::there;
use super::claim::{ClaimMode, Claims, Who};
use super::entry::{BEAT, BEGIN, COMMIT, Draft, FIRST_KIND, Mark, RELEASE, Start};
use super::hint;
use super::names::{self, SessionId};
use super::others;
use super::planted::{Planted, PlantedFault};
use super::pointer;
use super::vault::Vault;
use crate::trust::SessionHint;
use crate::{Error, Result};
use oblivio_crypto::Tag;
use oblivio_store::{Guard, Objects, Store, StoreError, WriteAt};
use std::sync::Arc;

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
    cache: Option<Arc<dyn Store>>,
    /// Its entries in there.
    cached: Vec<String>,
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
    /// Checkpoints that were confirmed, and the entry of the last of these.
    pub(super) confirmed: u64,
    commit: u64,
    /// Whether a later session was seen: this one stores nothing more.
    overtaken: bool,
}

impl OwnSession {
    /// One that has its number.
    pub(super) fn new(
        store: Arc<dyn Objects>,
        cache: Option<Arc<dyn Store>>,
        (way, vault): (ClaimMode, Vault),
        planted: Planted,
        id: SessionId,
    ) -> Self {
        Self {
            cache,
            cached: Vec::new(),
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
            commit: 1,
            overtaken: false,
        }
    }

    /// What it stands on, and its claim once more, sealed anew.
    pub(super) fn stand_on(&mut self, start: Start, claim_copy: Vec<u8>) {
        self.claim_copy = claim_copy;
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

    /// Sends the first entry: what the session stands on, and the caller's part. Once that is
    /// stored, later sessions go on from this one.
    ///
    /// # Errors
    /// `Overtaken`, `TooLarge`.
    pub fn start(&mut self, payload: &[u8]) -> Result<Mark> {
        let payload = self.start.encode(payload);
        self.push(BEGIN, &payload, 0)?;
        let bytes = std::mem::take(&mut self.claim_copy);
        if !bytes.is_empty() {
            let [_, name] = Claims { store: &*self.store, way: self.way }.names(self.id);
            self.begin(Sent { name, bytes });
        }
        Ok(self.last)
    }

    /// Where a search begins that looks for this session.
    pub fn hint(&self) -> SessionHint {
        let SessionId { number, random } = self.id;
        let (pointer, entry, last) = (self.confirmed, self.commit, self.last.index);
        SessionHint { number, random, pointer, entry, last }
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
        self.store_all()?;
        if !self.planted.is(PlantedFault::NoLook) && !self.planted.is(PlantedFault::EarlyLook) {
            self.look()?;
        }
        self.settled = self.last.index;
        Ok(())
    }

    /// Waits for all that was sent.
    fn store_all(&mut self) -> Result<()> {
        let stored = self.store_sent();
        self.failed = stored.is_err();
        stored?;
        self.sent.clear();
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
        self.point(checkpoint)
    }

    /// The same for the only checkpoint of a session that ends: there is no pointer before. The
    /// caller settles before it relies on it.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub fn confirm_last(&mut self, checkpoint: Mark) -> Result<()> {
        self.check()?;
        self.store_all()?;
        self.point(checkpoint)
    }

    fn point(&mut self, checkpoint: Mark) -> Result<()> {
        self.confirmed += 1;
        self.commit = checkpoint.index;
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
        self.send_release(payload, None)?;
        self.settle()
    }

    /// Sends the same, and the hint for those who know nothing, and waits for nothing. A checkpoint
    /// may be about to be confirmed.
    ///
    /// # Errors
    /// `Overtaken`.
    pub fn send_release(&mut self, payload: &[u8], due: Option<Mark>) -> Result<()> {
        self.push(RELEASE, payload, 0)?;
        if self.way == ClaimMode::Create {
            let mut hint = self.hint();
            if let Some(due) = due {
                (hint.pointer, hint.entry) = (hint.pointer + 1, due.index);
            }
            // Nothing depends on it.
            let _ = self.store.begin(&[(names::HINT, &hint::to_bytes(&hint))]);
        }
        Ok(())
    }

    /// Waits for the hint, whatever becomes of it.
    pub fn settle_hint(&self) {
        let _ = self.store.settle(&[names::HINT]);
    }

    /// Checkpoints that were confirmed.
    pub fn commits(&self) -> u64 {
        self.confirmed
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
        self.cache_entry(kind, mark, &bytes);
        self.begin(Sent { name: self.id.entry(mark.index), bytes });
        Ok(mark)
    }

    /// Keeps what the next session of this computer may begin with: the first entry or that of the
    /// newest checkpoint, and the last one. A disk that fails costs a read.
    fn cache_entry(&mut self, kind: u64, mark: Mark, bytes: &[u8]) {
        let Some(cache) = self.cache.as_ref().filter(|_| matches!(kind, BEGIN | COMMIT | RELEASE))
        else {
            return;
        };
        let name = self.id.entry(mark.index);
        let _ = cache.write(&[WriteAt::new(&name, 0, bytes)]);
        if kind == COMMIT {
            let before = std::mem::take(&mut self.cached);
            let _ = cache.delete(&before.iter().map(String::as_str).collect::<Vec<_>>());
        }
        self.cached.push(name);
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
