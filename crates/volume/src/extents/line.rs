//! This computer's line of epochs: what it stands on, and how an epoch is published.
//!
//! # Why a crash loses nothing
//!
//! Until the entry of an epoch is kept beside the folder, nothing happened: what was put into the
//! folder has names that nobody knows, and the next session takes it away. From then on the epoch
//! is decided, and the next session puts the rest of it into the folder.

use super::base::{Base, whole};
use super::entry::{Entry, Held as File, Opened};
use super::histories::Histories;
use super::names::{self, EpochId, Named, parse, working};
use super::shape::Shape;
use super::stand::{Stand, short};
use super::store::{ExtentStore, Source};
use crate::engine::Opening;
use crate::environment::Environment;
use crate::options::Beside;
use crate::session::Vault;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Entropy, Sealer, VolumeId, digest};
use oblivio_store::{MemoryStore, PutMode, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// This computer's line of epochs.
pub struct Line {
    pub(super) folder: Arc<dyn Store>,
    pub(super) beside: Arc<dyn Store>,
    link: Option<Arc<dyn Beside>>,
    volume: VolumeId,
    pub(super) vault: Vault,
    environment: Environment,
    pub(super) shape: Shape,
    pub(super) base: Base,
    /// The epoch that it stands on; `None` before the first.
    pub(super) on: Option<Opened>,
    /// This session's number; 0 until its first epoch.
    session: u64,
    /// The number of its last attempt at an epoch.
    attempts: u64,
    /// Whether an epoch was decided, and is not complete.
    stuck: bool,
    pub(super) histories: Histories,
}

impl Line {
    /// Takes this computer's place beside the folder, and finishes what a crash interrupted there.
    ///
    /// # Errors
    /// `Busy` if another process has it, `Forgotten` if it is unreadable; those of the stores.
    pub fn take(opening: &Opening<'_>, shape: Shape) -> Result<Self> {
        let (volume, environment) = (opening.header.volume(), opening.options.environment.clone());
        let link = opening.options.beside.clone();
        let beside: Arc<dyn Store> = match &link {
            Some(link) => link.store(volume)?,
            None => Arc::new(MemoryStore::new()),
        };
        beside.lock()?;
        let mut randomness = environment.randomness.clone();
        let base = Base::read(&*beside)?;
        let base = base.unwrap_or_else(|| Base::new(ComputerId::generate(&mut randomness)));
        let sealer = Sealer::new(opening.master.entry_root(volume), Box::new(randomness));
        let mut line = Self {
            folder: Arc::clone(&opening.store),
            beside,
            link,
            volume,
            vault: Vault::new(volume, sealer),
            environment,
            shape,
            base,
            on: None,
            session: 0,
            attempts: 0,
            stuck: false,
            histories: Histories::default(),
        };
        line.recover()?;
        line.read_folder()?;
        Ok(line)
    }

    /// Finds the entry that it stands on, and completes an epoch that was decided.
    fn recover(&mut self) -> Result<()> {
        for (name, _) in self.beside.list_under("e-")? {
            let Some(Named::Entry(id)) = parse(&name) else { continue };
            let bytes = whole(&*self.beside, &name)?.unwrap_or_default();
            let opened = Entry::open(&mut self.vault, id, bytes)?;
            let opened = opened.filter(|it| it.entry.table.len() as u64 == self.shape.extents());
            if self.base.on == Some(id) {
                self.on = opened;
            } else if id.session == self.base.session
                && let Some(opened) = opened
                && opened.entry.parent.map(|it| it.0) == self.base.on
            {
                self.complete(opened)?;
                return self.sweep();
            }
        }
        if self.base.on.is_some() && self.on.is_none() {
            let what = "is unreadable: the entry of the epoch that it stands on is gone";
            return Err(Error::Forgotten(what.into()));
        }
        self.sweep()
    }

    /// Completes an epoch whose entry is kept: puts the entry into the folder, and stands on it.
    fn complete(&mut self, opened: Opened) -> Result<()> {
        let name = opened.entry.id.entry();
        let bytes = whole(&*self.beside, &name)?.unwrap_or_default();
        put_new(&*self.folder, &name, &bytes)?;
        self.base.on = Some(opened.entry.id);
        self.base.act = opened.entry.act;
        self.base.overlay += 1;
        self.base.dirty = false;
        self.base.write(&*self.beside)?;
        self.on = Some(opened);
        self.stuck = false;
        Ok(())
    }

    /// Removes what is beside the folder and means nothing any more.
    pub(super) fn sweep(&self) -> Result<()> {
        let needed: BTreeSet<String> = self.on.iter().flat_map(names_of).collect();
        let stale = |name: &str, len: u64| match parse(name) {
            Some(Named::Working(overlay, extent)) => {
                overlay != self.base.overlay || len != self.shape.bytes_of(extent)
            }
            Some(Named::Entry(_) | Named::Extent(..)) => !needed.contains(name),
            _ => false,
        };
        let all = self.beside.list()?;
        let gone = all.iter().filter(|(name, len)| stale(name, *len));
        self.delete_beside(&gone.map(|(name, _)| name.as_str()).collect::<Vec<_>>())
    }

    fn delete_beside(&self, names: &[&str]) -> Result<()> {
        if names.is_empty() { Ok(()) } else { Ok(self.beside.delete(names)?) }
    }

    /// Reads the folder again. What an attempt of this computer left there goes.
    pub(super) fn read_folder(&mut self) -> Result<()> {
        let mut known: Vec<Opened> = std::mem::take(&mut self.histories).entries.into_values().collect();
        known.extend(self.on.clone());
        let there = self.folder.list()?;
        let is_there = |it: &Opened| there.iter().any(|(name, _)| *name == it.entry.id.entry());
        let own = self.base.on;
        known.retain(|it| own == Some(it.entry.id) || is_there(it));
        self.histories = Histories::read(&*self.folder, &mut self.vault, known)?;
        let extents = self.shape.extents();
        self.histories.entries.retain(|_, it| it.entry.table.len() as u64 == extents);
        let (session, on) = (self.base.session, self.on.as_ref());
        let left = |id: EpochId| {
            id.session == session && session != self.session && on.is_none_or(|on| !on.entry.has(id))
        };
        let left: Vec<String> = self.histories.files.keys().filter(|name| match parse(name) {
            Some(Named::Extent(id, _)) => left(id),
            _ => false,
        }).cloned().collect();
        self.delete_from_folder(&left)
    }

    fn delete_from_folder(&mut self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        self.folder.delete(&refs)?;
        for name in names {
            self.histories.files.remove(name);
            if let Some(Named::Entry(id)) = parse(name) {
                self.histories.entries.remove(&id);
            }
        }
        Ok(())
    }

    /// Where files of epochs are read: without a place beside the folder, they are not kept twice.
    pub(super) fn source(&self) -> Source {
        if self.link.is_some() { Source::Beside } else { Source::Folder }
    }

    /// The store of the epoch that it stands on, with what this computer changed since.
    pub fn store(&self) -> Result<ExtentStore> {
        let mut changed = BTreeSet::new();
        for (name, _) in self.beside.list_under("o-")? {
            if let Some(Named::Working(overlay, extent)) = parse(&name)
                && overlay == self.base.overlay
            {
                changed.insert(extent);
            }
        }
        let stores = (Arc::clone(&self.folder), Arc::clone(&self.beside));
        let (shape, overlay) = (self.shape.clone(), (self.base.overlay, changed));
        Ok(ExtentStore::new(stores, self.source(), shape, self.table(), overlay))
    }

    fn table(&self) -> Vec<Option<File>> {
        let none = || vec![None; self.shape.extents() as usize];
        self.on.as_ref().map_or_else(none, |on| on.entry.table.clone())
    }

    /// Keeps all files of an epoch beside the folder. Gives those that have not arrived, or not as
    /// a whole.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn keep_all(&self, entry: &Entry, source: Source) -> Result<usize> {
        let mut missing = 0;
        for (extent, (id, expected)) in entry.files() {
            let (name, len) = (id.extent(extent), self.shape.bytes_of(extent));
            if source == Source::Beside && self.beside.len(&name)? == Some(len) {
                continue;
            }
            let found = match self.histories.files.get(&name) {
                Some(there) if *there == len => whole(&*self.folder, &name)?,
                _ => None,
            };
            match found.filter(|bytes| digest(bytes) == expected) {
                Some(bytes) if source == Source::Beside => self.keep(&name, &bytes)?,
                Some(_) => {}
                None => missing += 1,
            }
        }
        Ok(missing)
    }

    /// Keeps a file of the folder beside it too.
    fn keep(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let linked = self.link.as_ref().is_some_and(|link| link.link(self.volume, name));
        if linked && self.beside.len(name)? == Some(bytes.len() as u64) {
            return Ok(());
        }
        Ok(self.beside.put(name, bytes, PutMode::Replace)?)
    }

    /// Stands on another epoch, all files of which are kept. Nothing may be changed since the one
    /// before.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn stand_on(&mut self, target: Opened) -> Result<()> {
        let (bytes, digest) = match whole(&*self.folder, &target.entry.id.entry())? {
            Some(bytes) if digest(&bytes) == target.digest => (bytes, target.digest),
            _ => return Err(Error::StillToCome("the entry of the newest epoch".into())),
        };
        self.beside.put(&target.entry.id.entry(), &bytes, PutMode::Replace)?;
        self.base.on = Some(target.entry.id);
        self.base.overlay += 1;
        self.base.dirty = false;
        self.base.write(&*self.beside)?;
        self.on = Some(Opened { entry: target.entry, digest });
        self.sweep()
    }

    /// Says in the folder where this computer stands, unless its last epoch or stand says it.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn say_stand(&mut self) -> Result<()> {
        let Some(on) = self.base.on else { return Ok(()) };
        let own = |stand: &Stand| stand.computer == self.base.computer && stand.on == on;
        if self.link.is_none() || self.histories.stands().iter().any(own) {
            return Ok(());
        }
        // First the act, so that no two stands ever have one name.
        self.base.act += 1;
        self.base.write(&*self.beside)?;
        let (act, date) = (self.base.act, self.environment.clock.date());
        let stand = Stand { computer: self.base.computer, act, date, on };
        let bytes = stand.seal(&mut self.vault)?;
        put_new(&*self.folder, &stand.name(), &bytes)
    }

    /// Publishes what changed as an epoch, if anything did; gives whether it did. All of it must be
    /// synced. The extents are put in their order.
    ///
    /// # Errors
    /// Those of the stores. The volume must then be opened again.
    pub fn publish(&mut self, store: &ExtentStore) -> Result<bool> {
        let changed = store.changed();
        if changed.is_empty() && self.on.is_some() {
            return Ok(false);
        }
        let id = self.next()?;
        let mut entry = self.draft();
        for &extent in &changed {
            let (bytes, name) = (store.bytes_of(extent)?, id.extent(extent));
            put_new(&*self.folder, &name, &bytes)?;
            self.histories.files.insert(name.clone(), bytes.len() as u64);
            if self.source() == Source::Beside {
                self.keep(&name, &bytes)?;
            }
            if let Some(file) = entry.table.get_mut(extent as usize) {
                *file = Some((id, digest(&bytes)));
            }
        }
        let before = self.on.clone();
        let opened = self.decide(id, entry)?;
        store.go_over(opened.entry.table.clone(), self.base.overlay);
        self.tidy(before.as_ref(), &changed)?;
        Ok(true)
    }

    /// The name of the next epoch. It is noted first, so that the next session knows what to take
    /// away after a crash.
    fn next(&mut self) -> Result<EpochId> {
        if self.session == 0 {
            let mut randomness = self.environment.randomness.clone();
            while self.session == 0 {
                self.session = randomness.next_u64();
            }
            self.base.session = self.session;
            self.base.write(&*self.beside)?;
        }
        self.attempts += 1;
        if self.attempts > names::MOST {
            return Err(Error::Invalid("a session with so many epochs must end".into()));
        }
        Ok(EpochId { session: self.session, number: self.attempts })
    }

    fn draft(&self) -> Entry {
        match &self.on {
            Some(on) => on.entry.after(on.digest),
            None => Entry::first(self.shape.extents() as usize),
        }
    }

    /// Seals an entry all of whose files are in the folder, decides it, and stands on it.
    fn decide(&mut self, id: EpochId, mut entry: Entry) -> Result<Opened> {
        let (act, date) = (self.base.act + 1, self.environment.clock.date());
        entry.made(id, (self.base.computer, act), date);
        let (bytes, digest) = entry.seal(&mut self.vault)?;
        self.heal(&entry)?;
        self.stuck = true;
        self.beside.put(&id.entry(), &bytes, PutMode::Replace)?;
        let opened = Opened { entry, digest };
        self.complete(opened.clone())?;
        self.histories.files.insert(id.entry(), bytes.len() as u64);
        self.histories.entries.insert(id, opened.clone());
        Ok(opened)
    }

    /// Publishes an entry that changes no extent. This computer stays where it stands.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn announce(&mut self, mut entry: Entry) -> Result<()> {
        let id = self.next()?;
        self.base.act += 1;
        self.base.write(&*self.beside)?;
        let made = (self.base.computer, self.base.act);
        entry.made(id, made, self.environment.clock.date());
        let (bytes, _) = entry.seal(&mut self.vault)?;
        put_new(&*self.folder, &id.entry(), &bytes)
    }

    /// Notes that a caller writes: what changed is no longer what an opening makes by itself.
    ///
    /// # Errors
    /// Those of the store beside the folder.
    pub fn note_writing(&mut self) -> Result<()> {
        if self.base.dirty {
            return Ok(());
        }
        self.base.dirty = true;
        self.base.write(&*self.beside)
    }

    /// Whether something was written since the epoch that it stands on.
    pub fn is_dirty(&self) -> bool {
        self.base.dirty
    }

    /// Whether an epoch was decided and did not get into the folder: only another opening helps.
    pub fn is_stuck(&self) -> bool {
        self.stuck
    }

    /// The epoch that it stands on.
    pub fn stands_on(&self) -> Option<EpochId> {
        self.base.on
    }

    /// Puts back what an epoch names, and what is gone from the folder: another computer that did
    /// not know of this one deleted it, or somebody else did.
    pub(super) fn heal(&self, entry: &Entry) -> Result<()> {
        if self.source() == Source::Folder {
            return Ok(());
        }
        let there: BTreeSet<String> = self.folder.list()?.into_iter().map(|(name, _)| name).collect();
        let files = entry.files().map(|(extent, (id, _))| id.extent(extent));
        for name in files.chain([entry.id.entry()]) {
            if !there.contains(&name)
                && let Some(bytes) = whole(&*self.beside, &name)?
            {
                put_new(&*self.folder, &name, &bytes)?;
            }
        }
        Ok(())
    }

    /// After an epoch: removes what it replaced beside the folder, and what nobody needs in it.
    fn tidy(&mut self, before: Option<&Opened>, changed: &[u64]) -> Result<()> {
        let overlay = self.base.overlay - 1;
        let mut gone: Vec<String> = changed.iter().map(|extent| working(overlay, *extent)).collect();
        if let Some(before) = before {
            let needed: BTreeSet<String> = self.on.iter().flat_map(names_of).collect();
            gone.extend(names_of(before).filter(|name| !needed.contains(name)));
        }
        self.delete_beside(&gone.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.clean()
    }

    /// Deletes from the folder what no computer needs.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn clean(&mut self) -> Result<()> {
        self.read_folder()?;
        let gone = self.histories.unneeded(self.environment.clock.date());
        self.delete_from_folder(&gone)
    }

    /// Whether this computer has a place beside the folder.
    pub fn keeps(&self) -> bool {
        self.link.is_some()
    }

    /// This computer, as names of files have it.
    pub fn computer(&self) -> u64 {
        short(self.base.computer)
    }
}

/// The names of an entry and of its files.
fn names_of(opened: &Opened) -> impl Iterator<Item = String> + '_ {
    let files = opened.entry.files().map(|(extent, (id, _))| id.extent(extent));
    files.chain([opened.entry.id.entry()])
}

/// Stores a new file. One that is there already has the same bytes: its name is only ours, and it
/// was put before a crash, or by a sync client.
fn put_new(folder: &dyn Store, name: &str, bytes: &[u8]) -> Result<()> {
    match folder.put(name, bytes, PutMode::IfAbsent) {
        Err(StoreError::Exists { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

