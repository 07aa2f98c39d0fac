//! What the folder says: epochs, which of them are the newest, and who stands where.
//!
//! Two computers that wrote apart leave two newest epochs. Nobody merges them: somebody picks.

use super::base::readable;
use super::checkout::{self, DAYS, Stand, short};
use super::entry::{Epoch, OpenedEpoch};
use super::names::{self, EpochId, Named, parse};
use crate::Result;
use crate::session::Vault;
use oblivio_store::Objects;
use std::collections::{BTreeMap, BTreeSet};

/// What is in the folder.
#[derive(Clone, Debug, Default)]
pub struct Histories {
    /// Whole entries, by their epochs.
    pub entries: BTreeMap<EpochId, OpenedEpoch>,
    /// Entries that are there and not whole yet.
    pub torn: Vec<EpochId>,
    /// All names of ours, with the lengths of their files.
    pub files: BTreeMap<String, u64>,
    stands: Vec<Stand>,
    /// Where computers stand, in files that are not whole.
    torn_stands: Vec<(u64, u64)>,
}

impl Histories {
    /// Reads the folder. `known` are entries that this computer has itself; those with more bytes
    /// than `most` are none of ours.
    ///
    /// # Errors
    /// `Unsupported` for an entry of a later version; those of the store.
    pub fn read(
        folder: &dyn Objects,
        vault: &mut Vault,
        (known, most): (Vec<OpenedEpoch>, u64),
    ) -> Result<Self> {
        let mut found = Self::default();
        found.entries.extend(known.into_iter().map(|opened| (opened.entry.id, opened)));
        for (name, len) in folder.list()? {
            let Some(named) = parse(&name) else { continue };
            match named {
                // Whichever copy is whole.
                Named::Entry(id) | Named::Twin(id)
                    if !found.entries.contains_key(&id) && len <= most =>
                {
                    let bytes = readable(folder, &name, most)?.unwrap_or_default();
                    match Epoch::open(vault, id, bytes)? {
                        Some(opened) => drop(found.entries.insert(id, opened)),
                        None => found.torn.push(id),
                    }
                }
                Named::Stand(computer, act) => {
                    let bytes = readable(folder, &name, checkout::BYTES as u64)?;
                    let bytes = bytes.unwrap_or_default();
                    match Stand::open(vault, computer, act, bytes) {
                        Some(stand) => found.stands.push(stand),
                        None => found.torn_stands.push((computer, act)),
                    }
                }
                _ => {}
            }
            found.files.insert(name, len);
        }
        found.torn.retain(|id| !found.entries.contains_key(id));
        found.torn.sort_unstable();
        found.torn.dedup();
        Ok(found)
    }

    /// An entry.
    pub fn get(&self, id: EpochId) -> Option<&OpenedEpoch> {
        self.entries.get(&id)
    }

    /// The newest epochs: those that led to no other.
    pub fn newest(&self) -> Vec<&OpenedEpoch> {
        let led = |id| self.entries.values().any(|it| it.entry.id != id && it.entry.has(id));
        self.entries.values().filter(|it| !led(it.entry.id)).collect()
    }

    /// Where each computer stands, by what it did last: the number of its file and the epoch.
    pub fn stands(&self) -> Vec<Stand> {
        let by_entry = self.entries.values().map(|OpenedEpoch { entry, .. }| Stand {
            computer: entry.computer,
            act: entry.act,
            date: entry.date,
            on: entry.id,
        });
        let mut newest: BTreeMap<u64, Stand> = BTreeMap::new();
        for stand in by_entry.chain(self.stands.iter().copied()) {
            let known = newest.entry(short(stand.computer)).or_insert(stand);
            if known.act < stand.act {
                *known = stand;
            }
        }
        newest.into_values().collect()
    }

    /// Whether an epoch is complete: all files that it names are there, with their lengths. Gives
    /// how many are there, and how many there must be.
    pub fn there(&self, entry: &Epoch, bytes_of: impl Fn(u64) -> u64) -> (usize, usize) {
        let whole = |&(extent, (id, _)): &(u64, (EpochId, _))| {
            self.files.get(&id.extent(extent)) == Some(&bytes_of(extent))
        };
        (entry.files().filter(whole).count(), entry.files().count())
    }

    /// Entries that are there, not whole, and may be newer than all that can be read.
    pub fn torn_ahead(&self) -> impl Iterator<Item = EpochId> + '_ {
        self.torn.iter().copied().filter(|id| !self.is_past(*id))
    }

    /// Epochs that may be newer, of which there are files and no entry.
    pub fn without_entry(&self) -> BTreeSet<EpochId> {
        let of_extent = |name: &String| match parse(name) {
            Some(Named::Extent(id, _)) => Some(id),
            _ => None,
        };
        let mut ids: BTreeSet<EpochId> = self.files.keys().filter_map(of_extent).collect();
        ids.retain(|id| !self.torn.contains(id) && !self.is_past(*id));
        ids
    }

    /// Files that say where a computer stands, are not whole, and are not replaced yet.
    pub fn torn_stands(&self) -> Vec<String> {
        let stands = self.stands();
        let replaced = |computer: u64, act: u64| {
            stands.iter().any(|it| short(it.computer) == computer && it.act > act)
        };
        let torn = self.torn_stands.iter().filter(|(computer, act)| !replaced(*computer, *act));
        torn.map(|(computer, act)| names::stand(*computer, *act)).collect()
    }

    /// Whether an epoch led to one that is known, or is it.
    fn is_past(&self, id: EpochId) -> bool {
        self.entries.values().any(|it| it.entry.has(id))
    }

    /// What nobody needs any more: entries first, then extents and stands. Empty while a computer
    /// stands on an epoch that is not here. `now` is in seconds since 1970.
    ///
    /// An epoch is kept if it is one of the newest, a history that was not dropped, or one that a
    /// computer stands on which was heard of in the last [`DAYS`] days. A file that none of these
    /// names goes, if its epoch is in the past of one: what has not been heard of yet stays.
    pub fn unneeded(&self, now: u64) -> Vec<String> {
        let newest = self.newest();
        let mut live: BTreeSet<EpochId> = newest.iter().map(|it| it.entry.id).collect();
        live.extend(newest.iter().flat_map(|it| it.entry.kept.iter().copied()));
        let stands = self.stands();
        let fresh = |stand: &&Stand| stand.date + DAYS * 86_400 > now;
        live.extend(stands.iter().filter(fresh).map(|stand| stand.on));
        let held: Option<Vec<&OpenedEpoch>> = live.iter().map(|id| self.get(*id)).collect();
        let Some(held) = held else { return Vec::new() };
        let needed: BTreeSet<String> = held
            .iter()
            .flat_map(|it| it.entry.files().map(|(extent, (id, _))| id.extent(extent)))
            .chain(live.iter().flat_map(|id| [id.entry(), id.twin()]))
            .chain(stands.iter().filter(fresh).map(Stand::name))
            .collect();
        let past = |id: EpochId| held.iter().any(|it| it.entry.has(id));
        let mut gone: Vec<(u8, String)> = Vec::new();
        for name in self.files.keys().filter(|name| !needed.contains(*name)) {
            match parse(name) {
                Some(Named::Entry(id) | Named::Twin(id)) if past(id) => {
                    gone.push((0, name.clone()));
                }
                Some(Named::Extent(id, _)) if past(id) => gone.push((1, name.clone())),
                Some(Named::Stand(computer, act)) if self.is_stale(computer, act, &stands, now) => {
                    gone.push((2, name.clone()));
                }
                _ => {}
            }
        }
        gone.sort();
        gone.into_iter().map(|(_, name)| name).collect()
    }

    /// Whether a stand was replaced by a later act, or is too old.
    fn is_stale(&self, computer: u64, act: u64, stands: &[Stand], now: u64) -> bool {
        let newest = stands.iter().find(|stand| short(stand.computer) == computer);
        newest.is_some_and(|it| it.act > act || it.date + DAYS * 86_400 <= now)
    }
}
