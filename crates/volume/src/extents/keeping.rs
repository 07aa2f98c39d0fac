//! What is kept where: beside the folder everything that this computer stands on, and in the folder
//! what somebody may need.

use super::entry::OpenedEpoch;
use super::names::{Named, parse, working};
use super::publisher::EpochLine;
use crate::Result;
use std::collections::BTreeSet;

impl EpochLine {
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
        self.copies.write_notes()?;
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
