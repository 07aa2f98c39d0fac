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
//! A search begins where this computer knows a session, or a hint in the store says that one is.
//! Neither is believed: what is there must open, and no later claim, pointer or entry be seen.
//!
//! Only what opens decides anything. A claim that does not open says nothing about its session: in
//! an honest store there is none, so it ends the reading unless the caller accepts the loss.

use super::ask::{found, lens, there};
use super::claim::{ClaimMode, Claims};
use super::entry::{BEGIN, COMMIT, Mark, RELEASE, SessionEntry, Start};
use super::names::{self, MOST_INDEX, SessionId};
use super::planted::{Planted, PlantedFault};
use super::pointer::{self, POINTER_BYTES};
use super::search::{SIDE, largest};
use super::vault::Vault;
use crate::damage::DamagedPlace;
use crate::trust::SessionHint;
use crate::{Error, Result};
use oblivio_store::{Objects, ReadAt, Store};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Entries that are read side by side.
pub(super) const BATCH: u64 = 16;
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

/// Where a search begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchStart {
    /// The session, if there is a hint.
    pub hint: Option<SessionHint>,
    /// Whether it is of this computer, which saw it end at its last entry. A store's word may be
    /// made up.
    pub ended: bool,
    /// Whether only the number counts: its entries lead to nothing, or it has not ended.
    pub void: bool,
}

impl SearchStart {
    /// At a session of this computer.
    pub fn own(hint: SessionHint, ended: bool) -> Self {
        Self { hint: Some(hint), ended, void: !ended }
    }

    /// The number to begin at.
    pub fn number(&self) -> u64 {
        self.hint.map_or(0, |hint| hint.number)
    }
}

/// Reads the sessions of a store.
pub struct HistoryReader<'a> {
    pub store: &'a dyn Objects,
    pub way: ClaimMode,
    pub vault: &'a mut Vault,
    pub start: SearchStart,
    /// The disk cache of this computer, which may have the last entries of its session.
    pub cache: Option<Arc<dyn Store>>,
    /// Claims that do not open count as those of sessions without entries, and a lost entry as the
    /// end of a history: an older state is accepted.
    pub accept_gaps: bool,
    pub stands: Stands,
    pub planted: Planted,
    pub(super) damaged: Vec<DamagedPlace>,
    /// The newest pointer, if it does not open.
    torn: Option<String>,
}

/// Entries of a session, in order.
pub(super) struct Run {
    pub entries: Vec<SessionEntry>,
    /// Whether the first is a commit.
    pub from_commit: bool,
    /// The newest pointer that was seen; 0 for none.
    pointer: u64,
}

impl Run {
    /// Whether the session ended by itself.
    pub fn ended(&self) -> bool {
        self.entries.last().is_some_and(|last| last.kind == RELEASE)
    }
}

impl<'a> HistoryReader<'a> {
    /// A reader of what was begun in this way and sealed with these keys.
    pub fn new(
        store: &'a dyn Objects,
        (way, vault): (ClaimMode, &'a mut Vault),
        (start, accept_gaps): (SearchStart, bool),
        (stands, planted): (Stands, Planted),
    ) -> Self {
        let (cache, damaged, torn) = (None, Vec::new(), None);
        Self { cache, store, way, vault, start, accept_gaps, stands, planted, damaged, torn }
    }

    /// The history before the session with this number.
    ///
    /// # Errors
    /// Those of the store. `Tampered` if something is gone or damaged that an honest store has.
    pub fn history(&mut self, number: u64) -> Result<History> {
        match self.newest(number)? {
            Some(newest) => self.history_of(newest),
            None => Ok(History::default()),
        }
    }

    /// The history whose newest session is this one.
    ///
    /// # Errors
    /// As [`Self::history`].
    pub fn history_of(&mut self, newest: Run) -> Result<History> {
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
            let (mut found, hinted) = (None, self.is_hinted(&ids));
            for id in self.with_objects(&ids)? {
                let Some(run) = self.since(id)? else { continue };
                if found.replace(run).is_some() {
                    return Err(tampered(&format!("two sessions have the number {number}")));
                }
            }
            if found.is_some() {
                self.judge(damaged)?;
                return Ok(found);
            }
            if hinted {
                groups = self.without_hint(number)?;
            }
        }
        self.judge(damaged)?;
        Ok(None)
    }

    /// Whether these are the session of the hint, and no claim said so.
    pub(super) fn is_hinted(&self, ids: &[SessionId]) -> bool {
        let is_it = |hint: SessionHint| matches!(ids, [id] if hint.is_of(id.number, id.random));
        self.way == ClaimMode::Create && !self.start.void && self.start.hint.is_some_and(is_it)
    }

    /// The hint said nothing: the claims up to this number, one by one.
    pub(super) fn without_hint(&mut self, number: u64) -> Result<Groups> {
        self.start.void = true;
        self.groups(number + 1)
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
        if self.is_hinted(ids) {
            return Ok(ids.to_vec());
        }
        let names = ids.iter().flat_map(|id| [id.entry(1), id.pointer(1)]);
        let lens = lens(self.store, &names.collect::<Vec<_>>())?;
        let some = lens.chunks(2).map(|pair| pair.iter().any(Option::is_some));
        Ok(ids.iter().zip(some).filter(|(_, some)| *some).map(|(id, _)| *id).collect())
    }

    /// A session's entries from its newest commit, or from the first. `None` if none opens there:
    /// it was interrupted at its first.
    pub(super) fn since(&mut self, id: SessionId) -> Result<Option<Run>> {
        let hint = self.start.hint.filter(|hint| hint.is_of(id.number, id.random));
        if let Some(hint) = hint.filter(|_| !self.start.void) {
            let (hinted, found) = (self.is_hinted(&[id]), self.since_hint(id, &hint)?);
            self.start.void = found.is_none();
            // No claim says yet that this is a session.
            if found.is_some() || hinted {
                return Ok(found);
            }
        }
        self.since_pointer(id, hint.map_or(0, |hint| hint.pointer))
    }

    /// The same from the entry that the hint names to the one that ended the session: nothing is
    /// behind that. `None` unless all of them are there and say so.
    fn since_hint(&mut self, id: SessionId, hint: &SessionHint) -> Result<Option<Run>> {
        let SessionHint { pointer, entry, last, .. } = *hint;
        let (mut pointed, mut first) = (None, Vec::new());
        if self.start.ended {
            first = self.cached(id, entry..=last);
        } else {
            if last - entry >= BATCH {
                return Ok(None);
            }
            let names = (entry..=last).map(|index| id.entry(index));
            let names: Vec<String> = [id.pointer(pointer)].into_iter().chain(names).collect();
            let mut lens = lens(self.store, &names)?;
            let fits = |len: &u64| SessionEntry::has_length(*len);
            lens[1..].iter_mut().for_each(|len| *len = len.filter(fits));
            lens[0] = lens[0].filter(|&len| len == POINTER_BYTES as u64);
            let mut objects = self.read_objects(&names, &lens)?.into_iter();
            if let Some(mut bytes) = objects.next().flatten() {
                pointed = pointer::open(self.vault, id, pointer, &mut bytes);
            }
            first.extend(self.opened(id, entry, objects.collect()));
            // What is missing is judged by the claims.
            if first.iter().any(Option::is_none) {
                return Ok(None);
            }
        }
        let entries = self.chain(id, (entry..=last, last), first)?;
        let (Some(first), Some(end)) = (entries.first(), entries.last()) else { return Ok(None) };
        let from_commit = first.kind == COMMIT && (self.start.ended || pointed == Some(first.mark));
        let begins = from_commit || first.kind == BEGIN && entry == 1;
        let ends = end.kind == RELEASE && end.mark.index == last;
        Ok((begins && ends).then_some(Run { entries, from_commit, pointer }))
    }

    /// Whether a session went on since it was read, before the one with this number began; or is
    /// not the one right before that; or a later one began.
    pub fn went_on(&mut self, run: &Run, number: u64) -> Result<bool> {
        let Some(last) = run.entries.last() else { return Ok(true) };
        let Mark { session: id, index, .. } = last.mark;
        if self.way == ClaimMode::Alone || id.number + 1 != number {
            return Ok(true);
        }
        let later = [id.pointer(run.pointer + 1), id.entry(index + 1), id.entry(index + 2)];
        let names: Vec<String> = later.into_iter().chain([names::claim(number + 1)]).collect();
        Ok(there(self.store, &names)?.contains(&true))
    }

    fn since_pointer(&mut self, id: SessionId, hint: u64) -> Result<Option<Run>> {
        for _ in 0..TRIES {
            let (pointer, pointed) = self.newest_pointer(id, hint)?;
            let from = pointed.map_or(1, |mark| mark.index);
            // A first entry that is gone is no crash only if a later one says so.
            let known = pointed.map_or(0, |mark| mark.index);
            let entries = self.entries(id, from..=MOST_INDEX, known)?;
            match (pointed, entries.first()) {
                (None, None) => return Ok(None),
                (None, Some(_)) => {
                    return Ok(Some(Run { entries, from_commit: false, pointer }));
                }
                (Some(pointed), Some(first)) if first.mark == pointed && first.kind == COMMIT => {
                    return Ok(Some(Run { entries, from_commit: true, pointer }));
                }
                // The session commits and deletes meanwhile: then there is a newer pointer.
                _ => {}
            }
        }
        Err(tampered("the entry of the newest commit is gone"))
    }

    /// The number of the newest pointer of a session, and what the newest says that opens.
    fn newest_pointer(&mut self, id: SessionId, hint: u64) -> Result<(u64, Option<Mark>)> {
        let newest = largest(hint, MOST_INDEX, |commits| {
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
                return Ok((newest, Some(mark)));
            }
            self.torn = Some(name);
        }
        match newest {
            0 | 1 => Ok((newest, None)),
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
        Ok(Some(Run { entries, from_commit: commit.is_some(), pointer: 0 }))
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
                let hint =
                    reader.start.hint.filter(|hint| !reader.start.void && hint.number < *next);
                if side.is_empty() {
                    if let Some(SessionHint { number, random, .. }) = hint
                        && number + 1 == *next
                    {
                        *next = number;
                        return Ok(Some((number, Some(vec![SessionId { number, random }]))));
                    }
                    let least = hint.map_or(1, |hint| hint.number + 1);
                    let from = next.saturating_sub(SIDE).max(least);
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

pub(super) fn tampered(why: &str) -> Error {
    Error::Tampered(format!("sessions: {why}"))
}
