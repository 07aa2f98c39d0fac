//! Which epoch a session stands on.

use super::copies::MadeAgain;
use super::entry::{Epoch, OpenedEpoch};
use super::names::EpochId;
use super::parity::held;
use super::publisher::EpochLine;
use crate::options::Which;
use crate::sequential::DISK_OBJECT;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt::Write;

/// An epoch to look at, the extents that it lost, and the files that were made again.
type Found = (OpenedEpoch, BTreeSet<u64>, MadeAgain);

impl EpochLine {
    /// Stands on the newest epoch, or says why not. What this computer changed on another one is
    /// published first: it is a history of its own then.
    ///
    /// # Errors
    /// `StillToCome` if files of it have not arrived, `Parted` if there are several newest ones.
    pub fn choose(&mut self, which: &Which) -> Result<()> {
        self.publish_what_parted()?;
        self.copies.heal_newest(&self.histories)?;
        match which {
            Which::Older => self.stand_on_older()?,
            _ => self.stand_on_newest()?,
        }
        self.copies.write_notes()?;
        self.say_stand()
    }

    /// Publishes what was written here on an epoch that is not the only newest one.
    ///
    /// # Errors
    /// Those of the stores.
    pub fn publish_what_parted(&mut self) -> Result<()> {
        let elsewhere = self.newest_ids().iter().any(|id| Some(*id) != self.base.on);
        if self.base.dirty && elsewhere {
            let store = self.store()?;
            self.publish(&store)?;
        }
        Ok(())
    }

    fn newest_ids(&self) -> Vec<EpochId> {
        self.histories.newest().iter().map(|it| it.entry.id).collect()
    }

    fn stand_on_newest(&mut self) -> Result<()> {
        let newest: Vec<OpenedEpoch> = self.histories.newest().into_iter().cloned().collect();
        let target = match &newest[..] {
            [] => return Err(Error::StillToCome("the first epoch of the volume".into())),
            [one] => one.clone(),
            several => return Err(Error::Parted(self.in_words(several))),
        };
        if let Some(what) = self.coming(&target) {
            return Err(Error::StillToCome(what));
        }
        match self.go_to(&target)? {
            missing if missing.is_empty() => Ok(()),
            missing => Err(still_to_come(&target.entry, &missing, "the newest epoch")),
        }
    }

    /// The entries that are not whole and may be newer than this epoch, for people.
    fn coming(&self, target: &OpenedEpoch) -> Option<String> {
        let torn = self.histories.torn.iter().filter(|id| !target.entry.has(**id));
        let names: Vec<String> = torn.map(|id| id.entry()).collect();
        let entries = if names.len() == 1 { "entry" } else { "entries" };
        let what = format!("{} {entries} of a newer epoch that is not whole yet", names.len());
        (!names.is_empty()).then(|| format!("{what}: {}", first_few(&names)))
    }

    /// Goes to an epoch if all its files are there; gives the extents of those that are not.
    fn go_to(&mut self, target: &OpenedEpoch) -> Result<Vec<u64>> {
        if self.base.on == Some(target.entry.id) {
            return self.copies.keep_all(&target.entry);
        }
        let missing = self.copies.keep_all(&target.entry)?;
        if missing.is_empty() {
            self.stand_on(target.clone())?;
        }
        Ok(missing)
    }

    /// The epoch that this computer stands on; if there is none, the newest that is complete.
    fn stand_on_older(&mut self) -> Result<()> {
        let newest: Vec<OpenedEpoch> = self.histories.newest().into_iter().cloned().collect();
        if self.on.is_none() && newest.len() > 1 {
            return Err(Error::Parted(self.in_words(&newest)));
        }
        let mut all: Vec<OpenedEpoch> = self.histories.entries.values().cloned().collect();
        all.sort_by_key(|it| std::cmp::Reverse(it.entry.date));
        let own = self.on.clone();
        // One that goes on from where this computer stands, before all others.
        let ahead = |it: &OpenedEpoch| own.as_ref().is_none_or(|on| it.entry.has(on.entry.id));
        let (mut ahead, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(ahead);
        let is_newest = |it: &OpenedEpoch, all: &[OpenedEpoch]| {
            !all.iter().any(|other| other != it && other.entry.has(it.entry.id))
        };
        while !ahead.is_empty() {
            let at = ahead.iter().position(|it| is_newest(it, &ahead)).unwrap_or(0);
            let target = ahead.remove(at);
            if self.go_to(&target)?.is_empty() {
                return Ok(());
            }
        }
        drop(rest);
        Err(Error::StillToCome("files of every epoch that is known".into()))
    }

    /// Several histories, for people.
    fn in_words(&self, several: &[OpenedEpoch]) -> String {
        let mut text = format!("{} histories, written apart from each other:", several.len());
        for it in several {
            let own =
                if it.entry.computer == self.base.computer { " (this computer's)" } else { "" };
            let (there, all) =
                self.histories.there(&it.entry, |extent| self.shape.bytes_of(extent));
            let _ = write!(text, " {}{own}", short_name(it.entry.id));
            if there < all {
                let _ = write!(text, " ({there} of {all} files are here)");
            }
        }
        text
    }

    /// The epoch whose name begins so, of the newest and the kept ones.
    ///
    /// # Errors
    /// `NotFound` if none does, or more than one.
    pub fn find(&self, begins: &str) -> Result<OpenedEpoch> {
        let mut ids = self.newest_ids();
        ids.extend(self.histories.newest().iter().flat_map(|it| it.entry.kept.iter().copied()));
        ids.sort_unstable();
        ids.dedup();
        ids.retain(|id| long_name(*id).starts_with(begins) || short_name(*id) == begins);
        match ids[..] {
            [id] => self.histories.get(id).cloned().ok_or_else(|| {
                Error::StillToCome(format!("the entry of the history {}", short_name(id)))
            }),
            _ => Err(Error::NotFound(format!("the history {begins}"))),
        }
    }

    /// Refuses an epoch of which files are not in the folder and cannot be made again; gives those
    /// that can.
    ///
    /// # Errors
    /// `StillToCome`.
    pub fn expect_all(&mut self, opened: &OpenedEpoch) -> Result<MadeAgain> {
        match self.copies.look_for_all(&opened.entry)? {
            (missing, again) if missing.is_empty() => Ok(again),
            (missing, _) => Err(still_to_come(&opened.entry, &missing, "that history")),
        }
    }

    /// The epoch to look at although files of it are missing or damaged, the extents of those, and
    /// the files that were made again.
    /// It is the newest, or one of the name that was asked for; never one that this computer is
    /// past.
    ///
    /// # Errors
    /// As for [`Self::choose`], and those of [`Self::find`].
    pub fn choose_incomplete(&mut self, which: &Which) -> Result<Found> {
        self.publish_what_parted()?;
        self.copies.heal_newest(&self.histories)?;
        let target = match which {
            Which::View(begins) => self.find(begins)?,
            Which::Newest | Which::Older => {
                let newest: Vec<OpenedEpoch> =
                    self.histories.newest().into_iter().cloned().collect();
                match &newest[..] {
                    [] => return Err(Error::StillToCome("the first epoch of the volume".into())),
                    [one] => one.clone(),
                    several => return Err(Error::Parted(self.in_words(several))),
                }
            }
        };
        if *which == Which::Newest
            && let Some(what) = self.coming(&target)
        {
            return Err(Error::StillToCome(what));
        }
        let (mut lost, again) = self.copies.look_for_all(&target.entry)?;
        // The engine proves each block of its disk: what is whole in a changed file is read.
        let (disk, files) = (self.shape.of(DISK_OBJECT), &self.histories.files);
        let name = |extent| held(&target.entry.table, extent).map(|(id, _)| id.extent(extent));
        let len = |extent| name(extent).and_then(|name| files.get(&name).copied());
        let changed = |extent| len(extent) == Some(self.shape.bytes_of(extent));
        lost.retain(|extent| !disk.contains(extent) || !changed(*extent));
        Ok((target, lost.into_iter().collect(), again))
    }
}

/// Files that are not there, or not whole, of all that an epoch has.
fn still_to_come(entry: &Epoch, missing: &[u64], of: &str) -> Error {
    // They are ascending.
    let gone = entry.files().filter(|(extent, _)| missing.binary_search(extent).is_ok());
    let names: Vec<String> = gone.map(|(extent, (id, _))| id.extent(extent)).collect();
    let (count, all) = (names.len(), entry.files().count());
    Error::StillToCome(format!("{count} of {all} files of {of}: {}", first_few(&names)))
}

/// The error of an opening, where files of what it needs are damaged: what is missing there looks
/// older than it is.
pub fn damage_in(error: Error, files: &[String]) -> Error {
    match error {
        Error::Tampered(_) | Error::RolledBack(_) if !files.is_empty() => {
            Error::Tampered(format!("{}, without which nothing opens: {error}", first_few(files)))
        }
        error => error,
    }
}

/// Names, for people: the first ones, and how many more there are.
pub fn first_few(names: &[String]) -> String {
    const FEW: usize = 3;
    let few = names.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(FEW) {
        0 => few,
        more => format!("{few} and {more} more"),
    }
}

/// The name of a history, for people: the first digits of its session, and its number.
pub fn short_name(id: EpochId) -> String {
    format!("{:08x}-{}", id.session >> 32, id.number)
}

fn long_name(id: EpochId) -> String {
    format!("{:016x}-{}", id.session, id.number)
}
