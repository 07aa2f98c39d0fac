//! Whether the files of the folder are what they must be, and who makes them whole again.
//!
//! A sync client may lose a file, cut it, or put another one in its place. Every file has a digest
//! in an entry, and every entry is sealed. A computer that holds the right bytes beside the folder
//! puts them back under the same name: two that do so at once leave the same file. Which files it
//! writes follows from which of them are damaged or late, and from nothing else.
//!
//! # Why nothing old comes back
//!
//! Only files that a newest epoch names are put back, and none while there is an entry that may be
//! newer and cannot be read: this computer may have been overtaken.

use super::base::{readable, whole};
use super::copies::{Copies, put_new};
use super::entry::{DIGEST, OpenedEpoch};
use super::histories::Histories;
use super::names::EpochId;
use super::parity::held;
use super::selection::short_name;
use super::store::EpochSource;
use crate::damage::{DamagedPlace, Inspected};
use crate::scrub::Reached;
use crate::{Error, Result};
use oblivio_crypto::digest;
use oblivio_store::{Objects, PutMode, StoreError};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;
use std::slice;

/// A file of an epoch, and what it must hold.
#[derive(Clone, Debug)]
struct Expected {
    name: String,
    /// The name of this computer's own copy.
    held: String,
    /// The name of an entry's other copy in the folder.
    other: Option<String>,
    digest: [u8; DIGEST],
    /// The extent and its length; none for an entry.
    extent: Option<(u64, u64)>,
}

impl Expected {
    /// The epoch whose file of the same extent has these bytes.
    fn older(&self, found: [u8; DIGEST], histories: &Histories) -> Option<EpochId> {
        let (extent, _) = self.extent?;
        let held = |it: &OpenedEpoch| it.entry.table.get(extent as usize).copied().flatten();
        let mut held = histories.entries.values().filter_map(held);
        held.find(|(_, digest)| *digest == found).map(|(id, _)| id)
    }
}

/// What is wrong with a file of the folder.
#[derive(Debug)]
enum Fault {
    Missing,
    /// The bytes that are there, of all.
    Cut(u64, u64),
    Changed,
    /// It is the file of an older epoch.
    Older(EpochId),
    Unreadable(StoreError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("missing in the folder"),
            Self::Cut(has, len) => write!(f, "cut: {has} of {len} bytes are in the folder"),
            Self::Changed => f.write_str("changed in the folder"),
            Self::Older(id) => write!(f, "an older one, of epoch {}", short_name(*id)),
            Self::Unreadable(error) => write!(f, "unreadable in the folder: {error}"),
        }
    }
}

/// Groups of epochs of which two files are broken.
type Hopeless = BTreeSet<(EpochId, u64)>;

fn place(name: &str, why: impl fmt::Display) -> DamagedPlace {
    DamagedPlace { object: name.to_owned(), bytes: 0..0, why: why.to_string() }
}

impl Copies {
    /// The files of an epoch, both of its entry first.
    fn expected(&self, opened: &OpenedEpoch) -> Vec<Expected> {
        let (id, names) = (opened.entry.id, opened.names().collect::<Vec<_>>());
        let entry = |name: &String| Expected {
            name: name.clone(),
            held: id.entry(),
            other: names.iter().find(|other| *other != name).cloned(),
            digest: opened.digest,
            extent: None,
        };
        let files = opened.entry.files().map(|(extent, (id, digest))| {
            let len = self.shape.bytes_of(extent);
            let (name, extent) = (id.extent(extent), Some((extent, len)));
            Expected { held: name.clone(), name, other: None, digest, extent }
        });
        names.iter().map(entry).chain(files).collect()
    }

    /// Puts back what the newest epochs name, and this computer holds.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn heal_newest(&mut self, histories: &Histories) -> Result<()> {
        if !self.may_heal(histories) {
            return Ok(());
        }
        let newest = histories.newest().into_iter();
        let files: Vec<Expected> = newest.flat_map(|it| self.expected(it)).collect();
        let names = files.iter().map(|file| file.name.clone()).collect();
        self.seen.keep_only(&names);
        self.late.keep_only(&names);
        self.heal(files, histories, true)
    }

    /// Whether this computer holds files, and nothing that may be newer is unread.
    fn may_heal(&self, histories: &Histories) -> bool {
        self.source() == EpochSource::Beside && histories.torn_ahead().next().is_none()
    }

    /// Puts back all files of an epoch that is about to be published: what is gone from the folder,
    /// or is not what it was. What may still arrive as well: from now on this computer answers for
    /// it.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn heal_all_of(&mut self, opened: &OpenedEpoch, histories: &Histories) -> Result<()> {
        match self.source() {
            EpochSource::Folder => Ok(()),
            EpochSource::Beside => {
                let mut files = self.expected(opened);
                files.retain(|file| file.extent.is_some());
                self.heal(files, histories, false)
            }
        }
    }

    fn heal(
        &mut self,
        files: Vec<Expected>,
        histories: &Histories,
        waits_for_late: bool,
    ) -> Result<()> {
        for file in files {
            let print = self.fingerprint(&file.name);
            if self.seen.has(&file.name, print) || self.beside.len(&file.held)?.is_none() {
                continue;
            }
            match self.fault(&file, histories)? {
                Some(fault) if waits_for_late && self.is_late(&file, &fault) => {}
                Some(fault) => drop(self.put_back(&file, &fault)?),
                None => self.has_come(&file, print),
            }
        }
        self.write_notes()
    }

    fn is_late(&self, file: &Expected, fault: &Fault) -> bool {
        matches!(fault, Fault::Missing | Fault::Cut(..)) && self.may_come(&file.name)
    }

    /// Notes a file that is whole in the folder.
    fn has_come(&mut self, file: &Expected, print: Option<u64>) {
        self.seen.note(&file.name, print);
        self.late.forget(&file.name);
    }

    /// What is wrong with a file; `None` if nothing is.
    fn fault(&self, file: &Expected, histories: &Histories) -> Result<Option<Fault>> {
        let Some(has) = self.folder.len(&file.name)? else { return Ok(Some(Fault::Missing)) };
        let most = self.most_bytes(file.extent.map(|it| it.0));
        let len = match file.extent {
            Some((_, len)) => Some(len),
            None => self.beside.len(&file.held)?,
        };
        match len {
            Some(len) if has < len => return Ok(Some(Fault::Cut(has, len))),
            _ if has > most => return Ok(Some(Fault::Changed)),
            _ => {}
        }
        let found = match whole(&*self.folder, &file.name, most) {
            Err(Error::Store(error @ StoreError::Io { .. })) => {
                return Ok(Some(Fault::Unreadable(error)));
            }
            found => found?.map(|bytes| digest(&bytes)),
        };
        Ok(match found {
            None => Some(Fault::Missing),
            Some(found) if found == file.digest => None,
            Some(found) => Some(file.older(found, histories).map_or(Fault::Changed, Fault::Older)),
        })
    }

    /// The bytes of a file, if this computer holds them.
    fn held(&self, file: &Expected) -> Result<Option<Vec<u8>>> {
        if self.source() == EpochSource::Folder {
            return Ok(None);
        }
        self.read(&*self.beside, &file.held, file)
    }

    /// The bytes of a file, if they are right in this object.
    fn read(&self, store: &dyn Objects, object: &str, file: &Expected) -> Result<Option<Vec<u8>>> {
        let found = readable(store, object, self.most_bytes(file.extent.map(|it| it.0)))?;
        Ok(found.filter(|bytes| digest(bytes) == file.digest))
    }

    /// Puts a file back, if this computer holds it, or it is one of two copies; says whether.
    fn put_back(&mut self, file: &Expected, fault: &Fault) -> Result<bool> {
        let bytes = match (self.held(file)?, &file.other) {
            (None, Some(other)) => self.read(&*self.folder, other, file)?,
            (held, _) => held,
        };
        let Some(bytes) = bytes else { return Ok(false) };
        put_new(&*self.folder, &file.name, &bytes)?;
        // What may still arrive is no damage.
        if !self.is_late(file, fault) {
            self.healed.push(place(&file.name, fault));
        }
        self.late.forget(&file.name);
        if file.extent.is_some() {
            self.keep(&file.name, &bytes)?;
        }
        Ok(true)
    }

    /// Makes this computer's own copy of a file of the folder whole, if it is not. Says whether
    /// there is one that is damaged and stays so.
    fn mend_own(&mut self, file: &Expected) -> Result<bool> {
        let keeps = self.source() == EpochSource::Beside && self.beside.len(&file.held)?.is_some();
        if !keeps || self.held(file)?.is_some() {
            return Ok(false);
        }
        let found = self.read(&*self.folder, &file.name, file)?;
        let Some(bytes) = found else { return Ok(true) };
        match file.extent {
            Some(_) => self.keep(&file.name, &bytes)?,
            None => self.beside.put(&file.held, &bytes, PutMode::Replace)?,
        }
        self.healed.push(place(&file.name, "changed beside the folder"));
        Ok(false)
    }

    /// Makes this computer's own copies of these objects whole, where the folder has them: an
    /// opening reads all of them, and knows no way around damage in them. What is damaged in both
    /// places is made again from the others. Gives the names of those that cannot be.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn mend_own_of(&mut self, on: &OpenedEpoch, objects: &[&str]) -> Result<Vec<String>> {
        if self.source() == EpochSource::Folder {
            return Ok(Vec::new());
        }
        let mut files = self.expected(on);
        files.retain(|file| {
            let within = |object: &&str, extent| self.shape.of(object).contains(&extent);
            file.extent.is_some_and(|(extent, _)| objects.iter().any(|it| within(it, extent)))
        });
        let (mut broken, mut hopeless) = (Vec::new(), Hopeless::new());
        for file in files {
            if self.mend_own(&file)?
                && !self.make_again(slice::from_ref(on), &file, &mut hopeless)?
            {
                broken.push(file.name);
            }
        }
        Ok(broken)
    }

    /// Reads every file that an epoch needs which is kept, and the newest ones, or `only` this one,
    /// and puts back what this computer holds. It begins at a place of their list, and goes on as
    /// `reached` says. `damaged` gets all others that are not what they must be, each before
    /// `reached` goes beyond it. Gives how many those are, the number of files, and whether it came
    /// to the end.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn inspect(
        &mut self,
        histories: &Histories,
        (only, from): (Option<&OpenedEpoch>, u64),
        reached: &mut dyn FnMut(Reached) -> ControlFlow<()>,
        damaged: &mut dyn FnMut(DamagedPlace),
    ) -> Result<(Inspected, u64, bool)> {
        let heals = only.is_none() && histories.torn_ahead().next().is_none();
        let (epochs, lost) = match only {
            Some(opened) => (vec![opened.clone()], Vec::new()),
            None => needed(histories),
        };
        let (mut tried, mut hopeless) = (BTreeSet::new(), Hopeless::new());
        let mut files: Vec<Expected> = epochs.iter().flat_map(|it| self.expected(it)).collect();
        files.retain(|file| tried.insert(file.name.clone()));
        let (total, mut found, mut ended) = (files.len() as u64, Inspected::default(), true);
        let mut note = |found: &mut Inspected, place: DamagedPlace| {
            found.damaged += 1;
            damaged(place);
        };
        lost.into_iter().filter(|_| from == 0).for_each(|place| note(&mut found, place));
        for (at, file) in (0..).zip(&files).skip_while(|(at, _)| *at < from) {
            let fault = self.fault(file, histories)?;
            let left = match fault {
                Some(fault) if heals => self.mend(&epochs, (file, fault), &mut hopeless)?,
                None if heals => {
                    self.mend_own(file)?;
                    None
                }
                fault => fault,
            };
            if let Some(fault) = left {
                note(&mut found, place(&file.name, fault));
            }
            found.bytes += file.extent.map_or(0, |(_, len)| len);
            let done = at + 1;
            if reached(Reached { done, total, next: Some(done) }).is_break() {
                ended = false;
                break;
            }
        }
        self.write_notes()?;
        Ok((found, total, ended))
    }

    /// Makes a file whole in the folder; gives the fault if that stays. One that may still arrive
    /// is let be.
    fn mend(
        &mut self,
        epochs: &[OpenedEpoch],
        (file, fault): (&Expected, Fault),
        hopeless: &mut Hopeless,
    ) -> Result<Option<Fault>> {
        let mended = self.is_late(file, &fault)
            || self.put_back(file, &fault)?
            || self.make_again(epochs, file, hopeless)?;
        Ok((!mended).then_some(fault))
    }

    /// Makes a file whole that is broken in both places, where the parities of one of these epochs
    /// do. Says whether they did.
    fn make_again(
        &mut self,
        epochs: &[OpenedEpoch],
        file: &Expected,
        hopeless: &mut Hopeless,
    ) -> Result<bool> {
        let Some((extent, _)) = file.extent else { return Ok(false) };
        for OpenedEpoch { entry, .. } in epochs {
            let is_its =
                held(&entry.table, extent).is_some_and(|it| it.0.extent(extent) == file.name);
            let group = (entry.id, self.shape.parity_of(extent));
            if !is_its || hopeless.contains(&group) {
                continue;
            }
            if let Some(bytes) = self.made_again(entry, extent)? {
                self.restore(entry, extent, &bytes)?;
                return Ok(true);
            }
            hopeless.insert(group);
        }
        Ok(false)
    }
}

/// The newest epochs and those that are kept; and what is known to be needed beside them, and
/// cannot be read.
fn needed(histories: &Histories) -> (Vec<OpenedEpoch>, Vec<DamagedPlace>) {
    let mut bad = Vec::new();
    let mut epochs: Vec<OpenedEpoch> = histories.newest().into_iter().cloned().collect();
    let kept: BTreeSet<EpochId> =
        epochs.iter().flat_map(|it| it.entry.kept.iter().copied()).collect();
    let torn: BTreeSet<EpochId> = histories.torn_ahead().collect();
    for id in kept {
        match histories.get(id) {
            Some(opened) => epochs.push(opened.clone()),
            None => bad.push(place(&id.entry(), "not whole: the entry of a kept history")),
        }
    }
    let why = "not whole: the entry of an epoch that may be newer";
    bad.extend(torn.into_iter().map(|id| place(&id.entry(), why)));
    let why = "missing in the folder, where files of its epoch are";
    bad.extend(histories.without_entry().into_iter().map(|id| place(&id.entry(), why)));
    let why = "not whole: it says where a computer stands, which says so anew";
    bad.extend(histories.torn_stands().iter().map(|name| place(name, why)));
    (epochs, bad)
}
