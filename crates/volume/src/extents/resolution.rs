//! Which of two histories goes on: somebody picks.
//!
//! A pick is an epoch like others, without changes: it stands on the chosen one, and all others led
//! to it too. These are kept until somebody drops them.

use super::header::shape;
use super::names::EpochId;
use super::publisher::EpochLine;
use super::selection::short_name;
use super::volume::ENGINE;
use crate::engine::open_as;
use crate::options::OpenOptions;
use crate::{Error, Result};
use oblivio_crypto::Passphrase;
use oblivio_store::Objects;
use std::sync::Arc;

/// A history of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryInfo {
    /// Its name.
    pub name: String,
    /// When its last epoch was made, in seconds since 1970, by its maker's clock.
    pub date: u64,
    /// Whether this computer made that.
    pub own: bool,
    /// Files of it that are in the folder, and how many there must be.
    pub files: (usize, usize),
    /// Whether it was not chosen, and is kept.
    pub kept: bool,
}

/// The histories of a volume: one, unless computers wrote apart; and those that are kept.
///
/// # Errors
/// Those of an opening.
pub fn histories(
    store: Arc<dyn Objects>,
    passphrase: &Passphrase,
    open: OpenOptions,
) -> Result<Vec<HistoryInfo>> {
    with_line(store, passphrase, open, |line| Ok(line.list()))
}

/// Lets a history go on. The others are kept until they are dropped.
///
/// # Errors
/// `NotFound` for a name that is none of them, `Invalid` if there is nothing to pick; those of the
/// stores.
pub fn pick(
    store: Arc<dyn Objects>,
    passphrase: &Passphrase,
    open: OpenOptions,
    name: &str,
) -> Result<()> {
    with_line(store, passphrase, open, |line| line.pick(name))
}

/// Drops a history that was kept: what only it needs is deleted.
///
/// # Errors
/// As for [`pick`].
pub fn drop_history(
    store: Arc<dyn Objects>,
    passphrase: &Passphrase,
    open: OpenOptions,
    name: &str,
) -> Result<()> {
    with_line(store, passphrase, open, |line| line.drop_kept(name))
}

fn with_line<T>(
    store: Arc<dyn Objects>,
    passphrase: &Passphrase,
    open: OpenOptions,
    work: impl FnOnce(&mut EpochLine) -> Result<T>,
) -> Result<T> {
    open_as(&ENGINE, store, passphrase, open, |opening| {
        let opening = opening.objects();
        let mut line = EpochLine::take(&opening, shape(&opening.header.parameters())?)?;
        line.publish_what_parted()?;
        work(&mut line)
    })
}

impl EpochLine {
    fn list(&self) -> Vec<HistoryInfo> {
        let newest = self.histories.newest();
        let kept: Vec<EpochId> =
            newest.iter().flat_map(|it| it.entry.kept.iter().copied()).collect();
        let kept = kept.into_iter().filter_map(|id| Some((self.histories.get(id)?, true)));
        let all = newest.iter().map(|it| (*it, false)).chain(kept);
        let described = all.map(|(it, kept)| HistoryInfo {
            name: short_name(it.entry.id),
            date: it.entry.date,
            own: it.entry.computer == self.base.computer,
            files: self.histories.there(&it.entry, |extent| self.shape.bytes_of(extent)),
            kept,
        });
        described.collect()
    }

    /// Lets one of the newest histories, or a kept one, go on.
    fn pick(&mut self, name: &str) -> Result<()> {
        let chosen = self.find(name)?;
        let newest: Vec<_> = self.histories.newest().into_iter().cloned().collect();
        if newest.len() == 1 && newest[0].entry.id == chosen.entry.id {
            return Err(Error::Invalid("that is the only history, and goes on already".into()));
        }
        let mut entry = chosen.entry.after(chosen.digest);
        newest.iter().for_each(|it| entry.join(&it.entry));
        entry.kept.extend(newest.iter().map(|it| it.entry.id));
        entry.kept.retain(|id| *id != chosen.entry.id);
        entry.kept.sort_unstable();
        entry.kept.dedup();
        entry.picks += 1;
        self.announce(entry)
    }

    /// Drops a kept history.
    fn drop_kept(&mut self, name: &str) -> Result<()> {
        let newest: Vec<_> = self.histories.newest().into_iter().cloned().collect();
        let [newest] = &newest[..] else {
            let why = "computers wrote apart from each other: pick a history first";
            return Err(Error::Invalid(why.into()));
        };
        let mut entry = newest.entry.after(newest.digest);
        let before = entry.kept.len();
        entry.kept.retain(|id| short_name(*id) != name);
        if entry.kept.len() == before {
            return Err(Error::NotFound(format!("the kept history {name}")));
        }
        self.announce(entry)?;
        self.clean()
    }
}
