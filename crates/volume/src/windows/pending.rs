//! Checkpoints on their way, and what goes once they stand.

use super::near::Near;
use super::parity::Parities;
use super::places::{Places, Span};
use super::state::{Commit, Kept};
use crate::Result;
use crate::damage::DamagedPlace;
use crate::session::{Mark, SessionId};
use oblivio_store::Objects;
use std::collections::VecDeque;

/// The checkpoints so far.
pub(super) struct Checkpoints {
    /// The number of the last one.
    pub epoch: u64,
    /// Those that are not confirmed.
    pub pending: VecDeque<Pending>,
    /// Lengths and digests of the stored parts, up to the last one's.
    pub parts: VecDeque<(u64, [u8; 32])>,
    /// Their parities.
    pub parities: Parities,
    /// Where this computer keeps them too.
    pub near: Option<Near>,
    /// Whether the next checkpoint heals something, or gives the memory what protects it.
    pub heals: bool,
    /// Parts and parities that were lost and made again: the next checkpoint stores them again.
    healed: Vec<(String, Vec<u8>)>,
}

impl Checkpoints {
    /// None so far, where this many parts are the memory.
    pub fn new(kept: u64) -> Self {
        let (pending, parts) = (VecDeque::new(), VecDeque::new());
        let (healed, parities) = (Vec::new(), Parities::new(kept));
        Self { epoch: 0, pending, parts, parities, near: None, heals: false, healed }
    }

    /// Makes one of all checkpoints on their way: the last. All entries of the session stay, and
    /// lead to it without its pointer.
    pub fn join_pending(&mut self) {
        let mut all = std::mem::take(&mut self.pending);
        let Some(mut last) = all.pop_back() else { return };
        for earlier in all {
            last.objects.extend(earlier.objects);
            last.replaced.extend(earlier.replaced);
        }
        let entries = format!("e-{:016x}-", last.mark.session.random);
        last.replaced.retain(|name| !name.starts_with(&entries));
        self.pending.push_back(last);
    }

    /// The number of the commit of the first stored part.
    pub fn first_part(&self) -> u64 {
        self.epoch + 1 - self.parts.len() as u64
    }

    /// Lets the next checkpoint store an object again that was lost and made again.
    pub fn heal(&mut self, object: String, bytes: Vec<u8>) {
        self.healed.push((object, bytes));
        self.heals = true;
    }

    /// Forgets the parts that are no longer of the memory, in whole groups, when that of a
    /// checkpoint is there; the first one that stays.
    pub fn retire(
        &mut self,
        number: u64,
        kept: u64,
        places: &Places,
        replaced: &mut Vec<String>,
    ) -> Result<u64> {
        let first = self.parities.first_kept(number, kept);
        let stored = number + 1 - self.parts.len() as u64;
        for gone in stored..first {
            self.parts.pop_front();
            replaced.push(places.part(gone)?.0);
        }
        let gone = self.parities.retire(first);
        replaced.extend(gone.iter().map(|of| Places::parity_of(of.session, of.last)));
        Ok(stored.max(first))
    }

    /// Begins to store the parities that are due; their names.
    pub fn send_parities(
        &mut self,
        store: &dyn Objects,
        session: u64,
        replaced: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let (new, old) = self.parities.store(session);
        replaced.extend(old.iter().map(|of| Places::parity_of(of.session, of.last)));
        let mut names = Vec::new();
        for (of, bytes) in new {
            let name = Places::parity_of(of.session, of.last);
            store.begin(&[(&name, &bytes)])?;
            names.push(name);
        }
        Ok(names)
    }

    /// Begins to store again what was lost and made again, unless it goes now; the names.
    pub fn send_healed(&mut self, store: &dyn Objects, replaced: &[String]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, bytes) in std::mem::take(&mut self.healed) {
            if !replaced.contains(&name) {
                store.begin(&[(&name, &bytes)])?;
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Whether any one lost part of the last checkpoint can be made again.
    pub fn are_protected(&self) -> bool {
        self.parities.with(self.epoch).is_some()
    }
}

/// What of the past may still be stored, and goes.
pub(super) struct Past {
    /// The first entry of this session that no checkpoint replaced, and the last checkpoint's.
    /// Without the newest pointer, the one before leads there over what is between them.
    pub first_entry: u64,
    pub last_entry: u64,
    /// The second copies of entries, of this session, that no checkpoint replaced.
    pub copies: Vec<String>,
    /// The entry of the newest commit, and whether it has a second copy.
    pub newest: Option<(Mark, bool)>,
    /// What was damaged and has a second copy.
    pub damaged: Vec<DamagedPlace>,
    /// What the next checkpoint replaces beside objects of its windows.
    pub leftovers: Vec<String>,
    /// What a confirmed commit replaced, whose pointer is on its way.
    pub replaced: Vec<String>,
    /// From where on things may still be stored: now, and once that is deleted.
    pub kept: Kept,
    pub kept_then: Kept,
    /// Sessions that left objects, until these are deleted.
    pub left: Vec<Span>,
}

impl Past {
    /// Before the first checkpoint of a session.
    pub fn new() -> Self {
        Self {
            first_entry: 1,
            last_entry: 1,
            copies: Vec::new(),
            newest: None,
            damaged: Vec::new(),
            leftovers: Vec::new(),
            replaced: Vec::new(),
            kept: Kept::ALL,
            kept_then: Kept::ALL,
            left: Vec::new(),
        }
    }
}

impl Past {
    /// What a checkpoint with this entry replaces of entries: all up to the checkpoint before, but
    /// the first, which names what was before the session; and all second copies before its own.
    pub fn replace_entries(&mut self, replaced: &mut Vec<String>, mark: Mark, copied: bool) {
        let entries = self.first_entry.max(2)..self.last_entry;
        replaced.extend(entries.map(|at| mark.session.entry(at)));
        (self.first_entry, self.last_entry) = (self.last_entry, mark.index);
        replaced.append(&mut self.copies);
        self.copies.extend(copied.then(|| mark.session.copy(mark.index)));
    }
}

/// A checkpoint that is not confirmed.
pub(super) struct Pending {
    pub number: u64,
    pub mark: Mark,
    /// Whether there are two of what is small.
    pub protected: bool,
    /// Whether its windows stored no objects.
    pub bare: bool,
    pub digest: [u8; 32],
    pub objects: Vec<String>,
    pub replaced: Vec<String>,
    /// What may still be stored once that is deleted.
    pub kept: Kept,
    /// Records up to its entry, and their bytes.
    pub records: u64,
    pub record_bytes: u64,
}

/// Whether all objects of a checkpoint are stored, as a whole.
///
/// # Errors
/// Those of the store. `Tampered`, `Unsupported` for a payload that is none of a checkpoint.
pub(super) fn stands(store: &dyn Objects, session: SessionId, payload: &[u8]) -> Result<bool> {
    let commit = Commit::parse(payload)?;
    let mut names: Vec<String> = Vec::new();
    let mut expected = Vec::new();
    for made in &commit.made {
        names.push(Places::object_of(session.random, made.level, made.window));
        expected.push(Some(made.bytes));
    }
    if let Some(part) = commit.parts.last() {
        names.push(Places::part_of(session.random, commit.number));
        expected.push(Some(part.0));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(store.lens(&names)? == expected)
}
