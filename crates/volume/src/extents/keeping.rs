//! What is kept where: beside the folder everything that this computer stands on, and in the folder
//! what somebody may need.

use super::base::readable;
use super::entry::{Epoch, OpenedEpoch};
use super::names::{Named, parse, working};
use super::publisher::EpochLine;
use super::store::EpochSource;
use crate::Result;
use oblivio_crypto::digest;
use oblivio_store::PutMode;
use std::collections::BTreeSet;

impl EpochLine {
    /// Keeps all files of an epoch beside the folder. Gives the extents whose files have not
    /// arrived, or not as a whole.
    ///
    /// # Errors
    /// Those of the stores.
    pub(super) fn keep_all(&mut self, entry: &Epoch, source: EpochSource) -> Result<Vec<u64>> {
        let mut missing = Vec::new();
        for (extent, (id, expected)) in entry.files() {
            let (name, len) = (id.extent(extent), self.shape.bytes_of(extent));
            if source == EpochSource::Beside && self.beside.len(&name)? == Some(len) {
                continue;
            }
            let found = match self.histories.files.get(&name) {
                Some(there) if *there == len => readable(&*self.folder, &name)?,
                _ => None,
            };
            match found.filter(|bytes| digest(bytes) == expected) {
                Some(bytes) if source == EpochSource::Beside => self.keep(&name, &bytes)?,
                Some(_) => {}
                None => missing.push(extent),
            }
        }
        Ok(missing)
    }

    /// Keeps a file of the folder, which is whole, beside it too.
    pub(super) fn keep(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let linked = self.link.as_ref().is_some_and(|link| link.link(self.volume, name));
        if !linked || self.beside.len(name)? != Some(bytes.len() as u64) {
            self.beside.put(name, bytes, PutMode::Replace)?;
        }
        // A second name changes what the system has for it.
        self.seen.note(name, self.fingerprint(name));
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

    /// After an epoch: removes what it replaced beside the folder, and what nobody needs in it.
    pub(super) fn tidy(&mut self, before: Option<&OpenedEpoch>, changed: &[u64]) -> Result<()> {
        let overlay = self.base.overlay - 1;
        let mut gone: Vec<String> =
            changed.iter().map(|extent| working(overlay, *extent)).collect();
        if let Some(before) = before {
            let needed: BTreeSet<String> = self.on.iter().flat_map(names_of).collect();
            gone.extend(names_of(before).filter(|name| !needed.contains(name)));
        }
        self.delete_beside(&gone.iter().map(String::as_str).collect::<Vec<_>>())?;
        self.seen.write(&*self.beside)?;
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
}

/// The names of an entry and of its files.
fn names_of(opened: &OpenedEpoch) -> impl Iterator<Item = String> + '_ {
    let files = opened.entry.files().map(|(extent, (id, _))| id.extent(extent));
    files.chain([opened.entry.id.entry()])
}
