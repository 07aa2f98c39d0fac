//! The history that a session starts from: the newest commit, and all after it.
//!
//! A checkpoint is a commit once all of its objects are stored. One with a pointer is, and so is
//! one that a later session started from. Any other is asked for, in order, up to the first that
//! is not: its objects were perhaps still on their way when its session ended. Then what was before
//! it counts, and it is passed over.
//!
//! It is read only after the session has its number. From then on no older session gets an entry
//! acknowledged, so nothing acknowledged comes after what is read.
//!
//! One damaged object of those that a volume at rest begins from costs nothing: the entry of its
//! commit has a second copy, and without the newest pointer the one before it leads there too, as
//! what stands between two commits is deleted one commit later.
//!
//! Only what opens decides anything. A claim that does not open says nothing about its session: in
//! an honest store there is none, so it ends the reading unless the caller accepts the loss.

use super::ask::{found, lens, there};
use super::claim::{ClaimMode, Claims};
use super::entry::{BEGIN, COMMIT, Mark, RELEASE, SessionEntry, Start};
use super::names::{MOST_INDEX, SessionId};
use super::planted::{Planted, PlantedFault};
use super::pointer::{self, POINTER_BYTES};
use super::search::{SIDE, largest};
use super::vault::Vault;
use crate::damage::DamagedPlace;
use crate::{Error, Result};
use oblivio_store::{Objects, ReadAt};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Entries that are read side by side.
const BATCH: u64 = 16;
/// How often a session is read anew whose objects are deleted meanwhile.
const TRIES: usize = 4;

/// Whether a store has all objects of a checkpoint: by its session and payload.
pub type Stands = fn(&dyn Objects, SessionId, &[u8]) -> Result<bool>;

/// What a session starts from.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The last entry that counts; `None` if there is none yet.
    pub parent: Option<Mark>,
    /// The newest commit and its payload.
    pub commit: Option<(Mark, Vec<u8>)>,
    /// The entries after it: kind and payload. Those that begin a session have the caller's part.
    /// A checkpoint among them is none that stands.
    pub records: Vec<(Mark, u64, Vec<u8>)>,
    /// Whether the last session ended by itself.
    pub released: bool,
    /// Objects of sessions that are gone or are not what was stored, where others made up for it.
    pub damaged: Vec<DamagedPlace>,
}

/// Reads the sessions of a store.
pub struct HistoryReader<'a> {
    pub store: &'a dyn Objects,
    pub way: ClaimMode,
    pub vault: &'a mut Vault,
    /// Claims that do not open count as those of sessions without entries, and a lost entry as the
    /// end of a history: an older state is accepted.
    pub accept_gaps: bool,
    pub stands: Stands,
    pub planted: Planted,
    damaged: Vec<DamagedPlace>,
    /// The newest pointer, if it does not open.
    torn: Option<String>,
}

/// Entries of a session, in order.
pub(super) struct Run {
    pub entries: Vec<SessionEntry>,
    /// Whether the first is a commit.
    from_commit: bool,
}

impl<'a> HistoryReader<'a> {
    /// A reader of what was begun in this way and sealed with these keys.
    pub fn new(
        store: &'a dyn Objects,
        (way, vault): (ClaimMode, &'a mut Vault),
        accept_gaps: bool,
        (stands, planted): (Stands, Planted),
    ) -> Self {
        Self { store, way, vault, accept_gaps, stands, planted, damaged: Vec::new(), torn: None }
    }

    /// The history before the session with this number.
    ///
    /// # Errors
    /// Those of the store. `Tampered` if something is gone or damaged that an honest store has.
    pub fn history(&mut self, number: u64) -> Result<History> {
        let Some(newest) = self.newest(number)? else { return Ok(History::default()) };
        let mut commit = self.newest_commit(&newest)?;
        let mut entries = newest.entries;
        while commit.is_none() {
            let Some(mut earlier) = self.before(&entries[0])? else { break };
            commit = earlier.from_commit.then_some(0);
            earlier.entries.append(&mut entries);
            entries = earlier.entries;
        }
        let history = collect(entries, commit);
        // A session that did not end well may have been interrupted at its pointer.
        if let Some(pointer) = self.torn.take().filter(|_| history.released) {
            self.note(pointer, "it is no pointer; the one before it leads to the same commit");
        }
        Ok(History { damaged: std::mem::take(&mut self.damaged), ..history })
    }

    /// The newest checkpoint that stands, of the newest session.
    fn newest_commit(&self, run: &Run) -> Result<Option<usize>> {
        let mut newest = run.from_commit.then_some(0);
        let first = usize::from(run.from_commit);
        for (at, entry) in run.entries.iter().enumerate().skip(first) {
            if entry.kind != COMMIT {
                continue;
            }
            let any = self.planted.is(PlantedFault::AnyCheckpoint);
            if !any && !(self.stands)(self.store, entry.mark.session, &entry.payload)? {
                break;
            }
            newest = Some(at);
        }
        Ok(newest)
    }

    /// The entries of the newest session that has any, from its newest pointer or from its first.
    fn newest(&mut self, number: u64) -> Result<Option<Run>> {
        let mut groups = self.groups(number)?;
        let mut damaged = None;
        while let Some((number, group)) = groups.next(self)? {
            let Some(ids) = group else {
                damaged = damaged.or(Some(number));
                continue;
            };
            let mut found = None;
            for id in self.with_objects(&ids)? {
                let Some(run) = self.since_pointer(id)? else { continue };
                if found.replace(run).is_some() {
                    return Err(tampered(&format!("two sessions have the number {number}")));
                }
            }
            if found.is_some() {
                self.judge(damaged)?;
                return Ok(found);
            }
        }
        self.judge(damaged)?;
        Ok(None)
    }

    fn judge(&self, damaged: Option<u64>) -> Result<()> {
        match damaged {
            Some(number) if !self.accept_gaps => {
                Err(tampered(&format!("the claim of session {number} does not open")))
            }
            _ => Ok(()),
        }
    }

    /// The claims before a number, from the newest on.
    pub(super) fn groups(&self, number: u64) -> Result<Groups> {
        if self.way == ClaimMode::Create {
            return Ok(Groups::Named { next: number, side: Vec::new() });
        }
        let claims = Claims { store: self.store, way: self.way };
        let mut listed = BTreeMap::<u64, Vec<SessionId>>::new();
        for id in claims.listed()?.into_iter().filter(|id| id.number < number) {
            listed.entry(id.number).or_default().push(id);
        }
        Ok(Groups::Listed(listed))
    }

    /// Those of the sessions that have a first entry or a first pointer.
    pub(super) fn with_objects(&self, ids: &[SessionId]) -> Result<Vec<SessionId>> {
        let names = ids.iter().flat_map(|id| [id.entry(1), id.pointer(1)]);
        let lens = lens(self.store, &names.collect::<Vec<_>>())?;
        let some = lens.chunks(2).map(|pair| pair.iter().any(Option::is_some));
        Ok(ids.iter().zip(some).filter(|(_, some)| *some).map(|(id, _)| *id).collect())
    }

    /// A session's entries from its newest pointer, or from the first. `None` if none opens there:
    /// it was interrupted at its first.
    pub(super) fn since_pointer(&mut self, id: SessionId) -> Result<Option<Run>> {
        for _ in 0..TRIES {
            let pointed = self.newest_pointer(id)?;
            let from = pointed.map_or(1, |mark| mark.index);
            // A first entry that is gone is no crash only if a later one says so.
            let known = pointed.map_or(0, |mark| mark.index);
            let entries = self.entries(id, from..=MOST_INDEX, known)?;
            match (pointed, entries.first()) {
                (None, None) => return Ok(None),
                (None, Some(_)) => return Ok(Some(Run { entries, from_commit: false })),
                (Some(pointed), Some(first)) if first.mark == pointed && first.kind == COMMIT => {
                    return Ok(Some(Run { entries, from_commit: true }));
                }
                // The session commits and deletes meanwhile: then there is a newer pointer.
                _ => {}
            }
        }
        Err(tampered("the entry of the newest commit is gone"))
    }

    /// What the newest pointer of a session says that opens.
    fn newest_pointer(&mut self, id: SessionId) -> Result<Option<Mark>> {
        let newest = largest(0, MOST_INDEX, |commits| {
            let names: Vec<String> = commits.iter().map(|&nth| id.pointer(nth)).collect();
            there(self.store, &names)
        })?;
        // One that was never answered may be torn. The one before it was answered.
        for commit in (newest.saturating_sub(1).max(1)..=newest).rev() {
            let mut bytes = [0; POINTER_BYTES];
            let name = id.pointer(commit);
            let read = self.store.read(&mut [ReadAt { object: &name, offset: 0, buf: &mut bytes }]);
            if found(read)?
                && let Some(mark) = pointer::open(self.vault, id, commit, &mut bytes)
            {
                return Ok(Some(mark));
            }
            self.torn = Some(name);
        }
        match newest {
            0 | 1 => Ok(None),
            _ => Err(tampered("the pointers to the newest commits do not open")),
        }
    }

    /// The entries of the session before that of a first entry, from the commit that it names or
    /// from the first, up to the last that counts. `None` if there is none before it.
    fn before(&mut self, first: &SessionEntry) -> Result<Option<Run>> {
        let start = first.start().ok_or_else(|| tampered("a session's first entry is gone"))?;
        let Some(parent) = start.parent else { return Ok(None) };
        if parent.session.number >= first.mark.session.number || parent.tag != first.before {
            return Err(tampered("a session names a wrong one before it"));
        }
        let commit = start.commit.filter(|commit| commit.session == parent.session);
        let from = commit.map_or(1, |commit| commit.index);
        let known = parent.index;
        let entries = self.entries(parent.session, from..=parent.index, known)?;
        let begins = entries.first().map(|entry| entry.mark);
        if entries.last().map(|entry| entry.mark) != Some(parent)
            || commit.is_some_and(|commit| begins != Some(commit))
        {
            return Err(tampered("entries that a session stands on are gone"));
        }
        Ok(Some(Run { entries, from_commit: commit.is_some() }))
    }

    /// A session's entries of these numbers, to the first that does not open. Those up to `known`
    /// were acknowledged, and so were those of which a later one says it.
    fn entries(
        &mut self,
        id: SessionId,
        numbers: RangeInclusive<u64>,
        known: u64,
    ) -> Result<Vec<SessionEntry>> {
        let (mut next, end) = numbers.into_inner();
        let mut entries: Vec<SessionEntry> = Vec::new();
        while next <= end {
            let mut batch = self.batch(id, next, BATCH.min(end - next + 1))?;
            for at in 0..batch.len() {
                let entry = match batch[at].take() {
                    Some(entry) => entry,
                    None => {
                        // Later ones may be there: they were sent side by side.
                        let settled = batch[at..].iter().flatten().map(|later| later.settled);
                        let said = settled.max().is_some_and(|settled| settled >= next);
                        let copy = if said || next <= known { self.copy(id, next)? } else { None };
                        match copy {
                            Some(copy) => copy,
                            None if said && !self.accept_gaps => {
                                let why = "an entry does not open that was acknowledged";
                                return Err(tampered(why));
                            }
                            None => return Ok(entries),
                        }
                    }
                };
                if entries.last().is_some_and(|last| last.mark.tag != entry.before) {
                    return Err(tampered("an entry follows another one than that before it"));
                }
                entries.push(entry);
                next += 1;
            }
        }
        Ok(entries)
    }

    /// The second copy of an entry that does not open, if it has one.
    fn copy(&mut self, id: SessionId, index: u64) -> Result<Option<SessionEntry>> {
        let mut copies = self.objects(&[id.copy(index)])?;
        let copy = copies.pop().flatten();
        let entry = copy.and_then(|bytes| SessionEntry::open(self.vault, id, index, bytes));
        if entry.is_some() {
            self.note(id.entry(index), "it does not open; its second copy does");
        }
        Ok(entry)
    }

    fn note(&mut self, object: String, why: &str) {
        self.damaged.push(DamagedPlace { object, bytes: 0..0, why: why.into() });
    }

    /// Entries side by side, each if it opens.
    fn batch(&mut self, id: SessionId, from: u64, count: u64) -> Result<Vec<Option<SessionEntry>>> {
        let names: Vec<String> = (from..from + count).map(|index| id.entry(index)).collect();
        let objects = (from..).zip(self.objects(&names)?);
        let open = |(index, bytes)| SessionEntry::open(self.vault, id, index, bytes?);
        Ok(objects.map(open).collect())
    }

    /// Objects side by side that are there and have the length of entries.
    fn objects(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let lens = lens(self.store, names)?;
        let fits =
            |len: &Option<u64>| len.filter(|&len| SessionEntry::has_length(len)).unwrap_or(0);
        let mut buffers: Vec<Vec<u8>> =
            lens.iter().map(|len| vec![0; fits(len) as usize]).collect();
        let mut reads: Vec<ReadAt<'_>> = names
            .iter()
            .zip(&mut buffers)
            .filter(|(_, buf)| !buf.is_empty())
            .map(|(object, buf)| ReadAt { object, offset: 0, buf })
            .collect();
        // One that was deleted since fails them all: then each by itself.
        let whole = found(self.store.read(&mut reads))?;
        let mut objects = Vec::new();
        for (object, mut buf) in names.iter().zip(buffers) {
            let mut there = whole && !buf.is_empty();
            if !whole && !buf.is_empty() {
                let read = ReadAt { object, offset: 0, buf: &mut buf };
                there = found(self.store.read(&mut [read]))?;
            }
            objects.push(there.then_some(buf));
        }
        Ok(objects)
    }
}

/// The claims that a history is looked for in, from the newest on.
pub(super) enum Groups {
    /// Each number has one claim; read side by side.
    Named { next: u64, side: Vec<(u64, Option<SessionId>)> },
    /// A list has all.
    Listed(BTreeMap<u64, Vec<SessionId>>),
}

impl Groups {
    /// The next number, and the sessions that claimed it: `None` if that does not open.
    pub fn next(
        &mut self,
        reader: &mut HistoryReader<'_>,
    ) -> Result<Option<(u64, Option<Vec<SessionId>>)>> {
        match self {
            Self::Listed(listed) => Ok(listed.pop_last().map(|(number, ids)| (number, Some(ids)))),
            Self::Named { next, side } => {
                if side.is_empty() {
                    let from = next.saturating_sub(SIDE).max(1);
                    let claims = Claims { store: reader.store, way: reader.way };
                    *side = claims.read_many(reader.vault, from..*next)?;
                    *next = from;
                }
                Ok(side.pop().map(|(number, id)| (number, id.map(|id| vec![id]))))
            }
        }
    }
}

/// What follows the commit at this place.
fn collect(mut entries: Vec<SessionEntry>, commit: Option<usize>) -> History {
    let last = entries.last();
    let mut history = History {
        parent: last.map(|entry| entry.mark),
        released: last.is_some_and(|entry| entry.kind == RELEASE && entry.payload.is_empty()),
        ..History::default()
    };
    if let Some(at) = commit {
        let after = entries.split_off(at + 1);
        history.commit = entries.pop().map(|entry| (entry.mark, entry.payload));
        entries = after;
    }
    for entry in entries {
        let payload = match entry.kind {
            RELEASE => continue,
            BEGIN => Start::parse(&entry.payload).map(|(_, own)| own.to_vec()),
            _ => Some(entry.payload),
        };
        history.records.push((entry.mark, entry.kind, payload.unwrap_or_default()));
    }
    history
}

fn tampered(why: &str) -> Error {
    Error::Tampered(format!("sessions: {why}"))
}
