//! This computer's line of epochs: what it stands on, and how an epoch is published.
//!
//! # Why a crash loses nothing
//!
//! Until the entry of an epoch is kept beside the folder, nothing happened: what was put into the
//! folder has names that nobody knows, and the next session takes it away. From then on the epoch
//! is decided, and the next session puts the rest of it into the folder.

use super::base::{Standing, readable, whole};
use super::checkout::Stand;
use super::copies::{Copies, put_new};
use super::entry::{Epoch, HeldExtent as File, OpenedEpoch};
use super::histories::Histories;
use super::names::{self, EpochId, Named, parse};
use super::parity::NextParities;
use super::shape::ExtentLayout;
use super::store::{EpochSource, ExtentStore};
use crate::around::{AnyFileLost, Repeats};
use crate::damage::DamagedPlace;
use crate::engine::Opening;
use crate::environment::Environment;
use crate::options::Beside;
use crate::session::Vault;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Entropy, Sealer, digest};
use oblivio_store::{MemoryStore, Objects, PutMode, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

/// This computer's line of epochs.
pub struct EpochLine {
    pub(super) folder: Arc<dyn Objects>,
    /// Whether the layer below the folder may repeat reads.
    pub(super) repeats: Repeats,
    pub(super) beside: Arc<dyn Store>,
    pub(super) link: Option<Arc<dyn Beside>>,
    pub(super) vault: Vault,
    pub(super) environment: Environment,
    pub(super) shape: ExtentLayout,
    pub(super) base: Standing,
    /// The epoch that it stands on; `None` before the first.
    pub(super) on: Option<OpenedEpoch>,
    /// This session's number; 0 until its first epoch.
    session: u64,
    /// The number of its last attempt at an epoch.
    attempts: u64,
    /// Whether an epoch was decided, and is not complete.
    stuck: bool,
    /// Whether this session made, or tried to make, parities of all files.
    tried_anew: bool,
    pub(super) histories: Histories,
    pub(super) copies: Copies,
}

/// A volume about to be opened in its folder.
pub(super) type FolderOpening<'a> = Opening<'a, Arc<dyn Objects>>;

impl EpochLine {
    /// Takes this computer's place beside the folder, and finishes what a crash interrupted there.
    ///
    /// # Errors
    /// `Busy` if another process has it, `Forgotten` if it is unreadable; those of the stores.
    pub fn take(opening: &FolderOpening<'_>, shape: ExtentLayout) -> Result<Self> {
        let (volume, environment) = (opening.header.volume(), opening.options.environment.clone());
        let link = opening.options.beside.clone();
        let beside: Arc<dyn Store> = match &link {
            Some(link) => link.store(volume)?,
            None => Arc::new(MemoryStore::new()),
        };
        beside.lock()?;
        let mut randomness = environment.randomness.clone();
        let base = Standing::read(&*beside)?;
        let base = base.unwrap_or_else(|| Standing::new(ComputerId::generate(&mut randomness)));
        let repeats = Repeats::default();
        let folder: Arc<dyn Objects> =
            Arc::new(AnyFileLost::new(Arc::clone(&opening.store), repeats.clone()));
        let stores = (Arc::clone(&folder), Arc::clone(&beside));
        let clock = Arc::clone(&environment.clock);
        let copies = Copies::new(stores, (link.clone(), clock), volume, shape.clone())?;
        let sealer = Sealer::new(opening.master.entry_root(volume), Box::new(randomness));
        let mut line = Self {
            folder,
            repeats,
            beside,
            link,
            vault: Vault::new(volume, sealer),
            environment,
            shape,
            base,
            on: None,
            session: 0,
            attempts: 0,
            stuck: false,
            tried_anew: false,
            histories: Histories::default(),
            copies,
        };
        line.recover()?;
        line.read_folder()?;
        line.rename_copy()?;
        Ok(line)
    }

    /// Takes a new name if the folder knows more acts of this computer than it does itself: then
    /// this state folder is a copy, or an old one was put back. Two acts must not bear one number.
    fn rename_copy(&mut self) -> Result<()> {
        let (computer, act) = (self.base.computer, self.base.act);
        let later = |stand: &Stand| stand.computer == computer && stand.act > act;
        if self.histories.stands().iter().any(later) {
            let mut randomness = self.environment.randomness.clone();
            self.base.computer = ComputerId::generate(&mut randomness);
            self.base.act = 0;
            self.base.write(&*self.beside)?;
        }
        Ok(())
    }

    /// Finds the entry that it stands on, and completes an epoch that was decided.
    fn recover(&mut self) -> Result<()> {
        for (name, _) in self.beside.list_under("e-")? {
            let Some(Named::Entry(id)) = parse(&name) else { continue };
            let bytes =
                readable(&*self.beside, &name, self.copies.most_bytes(None))?.unwrap_or_default();
            let opened = Epoch::open(&mut self.vault, id, bytes)?;
            let opened = opened.and_then(|it| it.fitting(&self.shape));
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
        if self.on.is_none() {
            self.on = self.entry_from_folder()?;
        }
        if self.base.on.is_some() && self.on.is_none() {
            let what = "is unreadable: the entry of the epoch that it stands on is gone";
            return Err(Error::Forgotten(what.into()));
        }
        self.sweep()
    }

    /// The entry that it stands on, from the folder: its own copy is damaged. No other bytes open
    /// as that entry.
    fn entry_from_folder(&mut self) -> Result<Option<OpenedEpoch>> {
        let Some(id) = self.base.on else { return Ok(None) };
        for name in [id.entry(), id.twin()] {
            let bytes =
                readable(&*self.folder, &name, self.copies.most_bytes(None))?.unwrap_or_default();
            let opened = Epoch::open(&mut self.vault, id, bytes.clone())?;
            let Some(opened) = opened.and_then(|it| it.fitting(&self.shape)) else { continue };
            self.beside.put(&id.entry(), &bytes, PutMode::Replace)?;
            let why = "not whole beside the folder".into();
            self.copies.healed.push(DamagedPlace { object: id.entry(), bytes: 0..0, why });
            return Ok(Some(opened));
        }
        Ok(None)
    }

    /// Completes an epoch whose entry is kept: puts the entry into the folder, and stands on it.
    fn complete(&mut self, opened: OpenedEpoch) -> Result<()> {
        let bytes = whole(&*self.beside, &opened.entry.id.entry(), self.copies.most_bytes(None))?;
        let bytes = bytes.unwrap_or_default();
        self.put_entry(&opened, &bytes)?;
        self.base.on = Some(opened.entry.id);
        self.base.act = opened.entry.act;
        self.base.overlay += 1;
        self.base.dirty = false;
        self.base.write(&*self.beside)?;
        self.on = Some(opened);
        self.stuck = false;
        Ok(())
    }

    /// Reads the folder again. What an attempt of this computer left there goes.
    pub(super) fn read_folder(&mut self) -> Result<()> {
        let mut known: Vec<OpenedEpoch> =
            std::mem::take(&mut self.histories).entries.into_values().collect();
        known.extend(self.on.clone());
        let there: BTreeSet<String> = self.folder.list()?.into_iter().map(|it| it.0).collect();
        let is_there = |it: &OpenedEpoch| it.names().any(|name| there.contains(&name));
        let own = self.base.on;
        known.retain(|it| own == Some(it.entry.id) || is_there(it));
        let most = self.copies.most_bytes(None);
        self.histories = Histories::read(&*self.folder, &mut self.vault, (known, most))?;
        let entries = std::mem::take(&mut self.histories.entries).into_iter();
        let fitting = entries.filter_map(|(id, it)| Some((id, it.fitting(&self.shape)?)));
        self.histories.entries = fitting.collect();
        let (session, on) = (self.base.session, self.on.as_ref());
        let left = |id: EpochId| {
            id.session == session
                && session != self.session
                && on.is_none_or(|on| !on.entry.has(id))
        };
        let left: Vec<String> = self
            .histories
            .files
            .keys()
            .filter(|name| match parse(name) {
                Some(Named::Extent(id, _)) => left(id),
                _ => false,
            })
            .cloned()
            .collect();
        self.delete_from_folder(&left)
    }

    pub(super) fn delete_from_folder(&mut self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let refs: Vec<&str> = names.iter().map(String::as_str).collect();
        self.folder.delete(&refs)?;
        for name in names {
            self.histories.files.remove(name);
            if let Some(Named::Entry(id) | Named::Twin(id)) = parse(name) {
                self.histories.entries.remove(&id);
            }
        }
        Ok(())
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
        Ok(ExtentStore::new(stores, self.copies.source(), shape, self.table(), overlay))
    }

    fn table(&self) -> Vec<Option<File>> {
        let none = || vec![None; self.shape.files() as usize];
        self.on.as_ref().map_or_else(none, |on| on.entry.table.clone())
    }

    /// Stands on another epoch, all files of which are kept. Nothing may be changed since the one
    /// before.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn stand_on(&mut self, target: OpenedEpoch) -> Result<()> {
        let Some(bytes) = self.copies.entry_of(&target)? else {
            return Err(Error::StillToCome("the entry of the newest epoch".into()));
        };
        let digest = target.digest;
        self.beside.put(&target.entry.id.entry(), &bytes, PutMode::Replace)?;
        self.base.on = Some(target.entry.id);
        self.base.overlay += 1;
        self.base.dirty = false;
        self.base.write(&*self.beside)?;
        self.on = Some(OpenedEpoch { entry: target.entry, digest });
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
        let (shape, table) = (self.shape.clone(), entry.table.clone());
        let mut parities = NextParities::after(&shape, &table);
        for &extent in &changed {
            let bytes = store.bytes_of(extent)?;
            parities.change(extent, &bytes, &mut |at, held| self.copies.right(at, held))?;
            self.put_file(&mut entry, (id, extent), &bytes)?;
        }
        let (copies, tried) = (&self.copies, &mut self.tried_anew);
        let right = &mut |at, held| copies.right(at, held);
        for (parity, bytes) in parities.finish(&entry.table, tried, right)? {
            match bytes {
                Some(bytes) => self.put_file(&mut entry, (id, parity), &bytes)?,
                None => {
                    entry.table.iter_mut().skip(parity as usize).take(1).for_each(|it| *it = None)
                }
            }
        }
        let before = self.on.clone();
        let opened = self.decide(id, entry)?;
        store.go_over(opened.entry.table.clone(), self.base.overlay);
        self.tidy(before.as_ref(), &changed)?;
        Ok(true)
    }

    /// Puts a file of the next epoch into the folder, and into its entry.
    fn put_file(
        &mut self,
        entry: &mut Epoch,
        (id, file): (EpochId, u64),
        bytes: &[u8],
    ) -> Result<()> {
        let name = id.extent(file);
        put_new(&*self.folder, &name, bytes)?;
        self.histories.files.insert(name.clone(), bytes.len() as u64);
        if self.copies.source() == EpochSource::Beside {
            self.copies.keep(&name, bytes)?;
        }
        if let Some(held) = entry.table.get_mut(file as usize) {
            *held = Some((id, digest(bytes)));
        }
        Ok(())
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
            return Err(Error::Invalid(
                "the session has the largest number of epochs, and must end".into(),
            ));
        }
        Ok(EpochId { session: self.session, number: self.attempts })
    }

    fn draft(&self) -> Epoch {
        match &self.on {
            Some(on) => on.entry.after(on.digest),
            None => Epoch::first(self.shape.files() as usize),
        }
    }

    /// Seals an entry all of whose files are in the folder, decides it, and stands on it.
    fn decide(&mut self, id: EpochId, mut entry: Epoch) -> Result<OpenedEpoch> {
        let (act, date) = (self.base.act + 1, self.environment.clock.date());
        entry.made(id, (self.base.computer, act), date);
        let (bytes, digest) = entry.seal(&mut self.vault)?;
        let opened = OpenedEpoch { entry, digest };
        self.copies.heal_all_of(&opened, &self.histories)?;
        self.stuck = true;
        self.beside.put(&id.entry(), &bytes, PutMode::Replace)?;
        self.complete(opened.clone())?;
        self.histories.files.extend(opened.names().map(|name| (name, bytes.len() as u64)));
        self.histories.entries.insert(id, opened.clone());
        Ok(opened)
    }

    /// Publishes an entry that changes no extent. This computer stays where it stands.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn announce(&mut self, mut entry: Epoch) -> Result<()> {
        let id = self.next()?;
        self.base.act += 1;
        self.base.write(&*self.beside)?;
        let made = (self.base.computer, self.base.act);
        entry.made(id, made, self.environment.clock.date());
        let (bytes, digest) = entry.seal(&mut self.vault)?;
        self.put_entry(&OpenedEpoch { entry, digest }, &bytes)
    }

    /// Puts an entry into the folder, both copies.
    fn put_entry(&self, opened: &OpenedEpoch, bytes: &[u8]) -> Result<()> {
        let mut names = opened.names();
        names.try_for_each(|name| put_new(&*self.folder, &name, bytes))
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

    /// Whether this computer has a place beside the folder.
    pub fn keeps(&self) -> bool {
        self.link.is_some()
    }
}
