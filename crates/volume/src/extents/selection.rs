//! Which epoch a session stands on.

use super::entry::OpenedEpoch;
use super::names::EpochId;
use super::publisher::EpochLine;
use super::store::EpochSource;
use crate::options::Which;
use crate::{Error, Result};
use std::fmt::Write;

impl EpochLine {
    /// Stands on the newest epoch, or says why not. What this computer changed on another one is
    /// published first: it is a history of its own then.
    ///
    /// # Errors
    /// `StillToCome` if files of it have not arrived, `Parted` if there are several newest ones.
    pub fn choose(&mut self, which: &Which) -> Result<()> {
        self.publish_what_parted()?;
        match which {
            Which::Older => self.stand_on_older()?,
            _ => self.stand_on_newest()?,
        }
        if let Some(on) = self.on.clone() {
            self.heal(&on.entry)?;
        }
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
        if let Some(count) = self.coming(&target) {
            let what = format!("{count} of a newer epoch that is not whole yet");
            return Err(Error::StillToCome(what));
        }
        match self.go_to(&target)? {
            0 => Ok(()),
            missing => {
                let all = target.entry.files().count();
                let what = format!("{missing} of {all} files of the newest epoch");
                Err(Error::StillToCome(what))
            }
        }
    }

    /// How many entries are not whole that may be newer than this epoch.
    fn coming(&self, target: &OpenedEpoch) -> Option<String> {
        let torn = self.histories.torn.iter().filter(|id| !target.entry.has(**id)).count();
        match torn {
            0 => None,
            1 => Some("1 entry".into()),
            more => Some(format!("{more} entries")),
        }
    }

    /// Goes to an epoch if all its files are there; gives how many are not.
    fn go_to(&mut self, target: &OpenedEpoch) -> Result<usize> {
        if self.base.on == Some(target.entry.id) {
            return self.keep_all(&target.entry, self.source());
        }
        let missing = self.keep_all(&target.entry, self.source())?;
        if missing == 0 {
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
            if self.go_to(&target)? == 0 {
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

    /// Refuses an epoch whose files are not all in the folder.
    ///
    /// # Errors
    /// `StillToCome`.
    pub fn expect_all(&self, opened: &OpenedEpoch) -> Result<()> {
        let missing = self.keep_all(&opened.entry, EpochSource::Folder)?;
        if missing == 0 {
            return Ok(());
        }
        let all = opened.entry.files().count();
        Err(Error::StillToCome(format!("{missing} of {all} files of that history")))
    }
}

/// The name of a history, for people: the first digits of its session, and its number.
pub fn short_name(id: EpochId) -> String {
    format!("{:08x}-{}", id.session >> 32, id.number)
}

fn long_name(id: EpochId) -> String {
    format!("{:016x}-{}", id.session, id.number)
}
