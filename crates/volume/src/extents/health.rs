//! Whether the files of the folder are what they must be, and who makes them whole again.
//!
//! A sync client may lose a file, cut it, or put another one in its place. Every file has a digest
//! in an entry, and every entry is sealed. A computer that holds the right bytes beside the folder
//! puts them back under the same name: two that do so at once leave the same file. Which files it
//! writes follows from which of them are damaged, and from nothing else.
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
use super::parity::{held, lone};
use super::selection::short_name;
use super::store::EpochSource;
use crate::damage::{DamagedPlace, Inspected};
use crate::scrub::Reached;
use crate::{Error, Result};
use oblivio_crypto::digest;
use oblivio_store::{PutMode, StoreError};
use std::collections::BTreeSet;
use std::fmt;
use std::ops::ControlFlow;

/// A file of an epoch, and what it must hold.
#[derive(Clone, Debug)]
struct Expected {
    name: String,
    /// The name of this computer's own copy.
    held: String,
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

fn place(name: &str, why: impl fmt::Display) -> DamagedPlace {
    DamagedPlace { object: name.to_owned(), bytes: 0..0, why: why.to_string() }
}

impl Copies {
    /// The files of an epoch, both of its entry first.
    fn expected(&self, opened: &OpenedEpoch) -> Vec<Expected> {
        let held = opened.entry.id.entry();
        let entry =
            |name| Expected { name, held: held.clone(), digest: opened.digest, extent: None };
        let files = opened.entry.files().map(|(extent, (id, digest))| {
            let len = self.shape.bytes_of(extent);
            let (name, extent) = (id.extent(extent), Some((extent, len)));
            Expected { held: name.clone(), name, digest, extent }
        });
        opened.names().map(entry).chain(files).collect()
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
        self.seen.keep_only(&files.iter().map(|file| file.name.clone()).collect());
        self.heal(files, histories)
    }

    /// Whether this computer holds files, and nothing that may be newer is unread.
    fn may_heal(&self, histories: &Histories) -> bool {
        self.source() == EpochSource::Beside && histories.torn_ahead().next().is_none()
    }

    /// Puts back all files of an epoch that is about to be published: what is gone from the folder,
    /// or is not what it was.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn heal_all_of(&mut self, opened: &OpenedEpoch, histories: &Histories) -> Result<()> {
        match self.source() {
            EpochSource::Folder => Ok(()),
            EpochSource::Beside => {
                let mut files = self.expected(opened);
                files.retain(|file| file.extent.is_some());
                self.heal(files, histories)
            }
        }
    }

    fn heal(&mut self, files: Vec<Expected>, histories: &Histories) -> Result<()> {
        for file in files {
            let print = self.fingerprint(&file.name);
            if self.seen.has(&file.name, print) || self.beside.len(&file.held)?.is_none() {
                continue;
            }
            match self.fault(&file, histories)? {
                Some(fault) => drop(self.put_back(&file, &fault)?),
                None => self.seen.note(&file.name, print),
            }
        }
        self.write_seen()
    }

    /// What is wrong with a file; `None` if nothing is.
    fn fault(&self, file: &Expected, histories: &Histories) -> Result<Option<Fault>> {
        let Some(has) = self.folder.len(&file.name)? else { return Ok(Some(Fault::Missing)) };
        match file.extent {
            Some((_, len)) if has < len => return Ok(Some(Fault::Cut(has, len))),
            Some((_, len)) if has > len => return Ok(Some(Fault::Changed)),
            _ => {}
        }
        let found = match whole(&*self.folder, &file.name) {
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
        let found = readable(&*self.beside, &file.held)?;
        Ok(found.filter(|bytes| digest(bytes) == file.digest))
    }

    /// Puts a file back, if this computer holds it; says whether.
    fn put_back(&mut self, file: &Expected, fault: &Fault) -> Result<bool> {
        let Some(bytes) = self.held(file)? else { return Ok(false) };
        put_new(&*self.folder, &file.name, &bytes)?;
        self.healed.push(place(&file.name, fault));
        if file.extent.is_some() {
            self.keep(&file.name, &bytes)?;
        }
        Ok(true)
    }

    /// Makes this computer's own copy of a file of the folder whole, if it is not. Says whether
    /// there is one that is damaged and stays so.
    fn mend_own(&mut self, file: &Expected) -> Result<bool> {
        if self.beside.len(&file.held)?.is_none() || self.held(file)?.is_some() {
            return Ok(false);
        }
        let found = readable(&*self.folder, &file.name)?;
        let Some(bytes) = found.filter(|it| digest(it) == file.digest) else { return Ok(true) };
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
        let mut broken = Vec::new();
        for file in files {
            if self.mend_own(&file)? {
                broken.push((file, Fault::Changed));
            }
        }
        self.make_again(on, &mut broken)?;
        Ok(broken.into_iter().map(|(file, _)| file.name).collect())
    }

    /// Reads every file that an epoch needs which is kept, and the newest ones, or `only` this one,
    /// and puts back what this computer holds. It begins at a place of their list, and goes on as
    /// `reached` says. `damaged` gets all others that are not what they must be. Gives how many
    /// those are, the number of files, and whether it came to the end.
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
        let heals = only.is_none() && self.may_heal(histories);
        let (epochs, lost) = match only {
            Some(opened) => (vec![opened.clone()], Vec::new()),
            None => needed(histories),
        };
        let mut bad = if from == 0 { lost } else { Vec::new() };
        let mut tried = BTreeSet::new();
        let mut files: Vec<Expected> = epochs.iter().flat_map(|it| self.expected(it)).collect();
        files.retain(|file| tried.insert(file.name.clone()));
        let (total, mut found, mut ended) = (files.len() as u64, Inspected::default(), true);
        let mut broken = Vec::new();
        for (at, file) in (0..).zip(&files).skip_while(|(at, _)| *at < from) {
            match self.fault(file, histories)? {
                Some(fault) if !heals || !self.put_back(file, &fault)? => {
                    broken.push((file.clone(), fault));
                }
                None if heals => drop(self.mend_own(file)?),
                _ => {}
            }
            found.bytes += file.extent.map_or(0, |(_, len)| len);
            let done = at + 1;
            if reached(Reached { done, total, next: Some(done) }).is_break() {
                ended = false;
                break;
            }
        }
        for opened in epochs.iter().filter(|_| heals) {
            self.make_again(opened, &mut broken)?;
        }
        bad.extend(broken.iter().map(|(file, fault)| place(&file.name, fault)));
        self.write_seen()?;
        found.damaged = bad.len() as u64;
        bad.into_iter().for_each(damaged);
        Ok((found, total, ended))
    }

    /// Makes files of an epoch whole that are broken in both places, where its parities do.
    fn make_again(
        &mut self,
        opened: &OpenedEpoch,
        broken: &mut Vec<(Expected, Fault)>,
    ) -> Result<()> {
        let of_epoch = |(file, _): &(Expected, Fault)| {
            let (extent, _) = file.extent?;
            let (id, _) = held(&opened.entry.table, extent)?;
            (id.extent(extent) == file.name).then_some(extent)
        };
        let extents: Vec<u64> = broken.iter().filter_map(of_epoch).collect();
        for extent in lone(&self.shape, &extents) {
            if let Some(bytes) = self.made_again(&opened.entry, extent)? {
                self.restore(&opened.entry, extent, &bytes)?;
                broken.retain(|it| of_epoch(it) != Some(extent));
            }
        }
        Ok(())
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
