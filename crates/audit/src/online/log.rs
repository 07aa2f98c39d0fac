//! What a session stores beside buckets, and what it deletes: entries, parts, pointers.

use super::names::Name;
use crate::observer::size_class;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

/// Batches whose intents go into one entry.
const GROUP: usize = 4;
/// Bytes of an entry of intents beside them: the seal, the entry before, four numbers, the act.
const ENTRY: u64 = 40 + 16 + 32 + 24;
/// Bytes of a pointer.
const POINTER: u64 = 40 + 40;
/// Bytes of a hint.
const HINT: u64 = 40;
/// Checkpoints that may be on their way.
const MOST_PENDING: usize = 2;

/// The most parts of a group, which has one parity.
const PARTS: u64 = 8;

/// A checkpoint on its way.
#[derive(Clone, Debug, Default)]
struct Checkpoint {
    entry: u64,
    /// What must be stored before its pointer.
    needed: BTreeSet<String>,
    replaced: BTreeSet<String>,
}

/// The public numbers that the length of a part follows from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PartKey {
    /// Remembered shapes, the depth, the slots of leaves.
    pub shape: (usize, u32, u32),
    /// Accesses since the part before, those of them that nobody asked for, and windows.
    pub accesses: u64,
    pub extras: u64,
    pub windows: u64,
}

/// A session's objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// Its random name; empty before its first entry.
    pub session: String,
    /// Its last entry.
    index: u64,
    /// Accesses of each batch whose intent no entry has.
    unsent: Vec<usize>,
    /// Of those, the ones that only the checkpoint before a rest has.
    resting: usize,
    /// Batches whose intents are on their way, by their entry.
    sent: VecDeque<(u64, usize)>,
    /// Entries that nothing explained so far.
    unexplained: Vec<(u64, u64)>,
    /// The part whose checkpoint's entry is due.
    part: Option<(u64, String)>,
    /// Objects of windows since the last checkpoint, and what they replaced.
    made: BTreeSet<String>,
    replaced: BTreeSet<String>,
    /// The entries of the last two checkpoints: what leads from one to the other stays.
    first_entry: u64,
    last_entry: u64,
    /// The second copy of the last checkpoint's entry.
    copy: Option<String>,
    /// The length of the last entry, and whether it is a checkpoint's.
    last_len: u64,
    last_commits: bool,
    /// Parities that stay, by group, and those that came since the last checkpoint's entry.
    parities: BTreeMap<u64, String>,
    new_parities: BTreeMap<u64, String>,
    /// The length of the longest part of each group.
    longest: BTreeMap<u64, u64>,
    /// Whether the last checkpoint is protected though it completes no group: then the session
    /// rests until it is a commit.
    rests: bool,
    pending: VecDeque<Checkpoint>,
    /// Whether the session said that it ends.
    ends: bool,
    pointers: u64,
    /// What the newest commit replaced. It goes once its pointer is stored.
    gone: Option<BTreeSet<String>>,
    pointed: bool,
    /// Whether the first checkpoint may also delete what sessions before left.
    inherits: bool,
    /// Checkpoints so far, of all sessions, and the parts that stay.
    pub commits: u64,
    kept: u64,
    parts: VecDeque<(u64, String)>,
    lengths: HashMap<(u64, PartKey), u64>,
    /// The size changed since the last part, so its length is its own.
    free: bool,
    /// Batches of the session before whose intents may be lost.
    lost: usize,
    /// Whether the volume is older than the record: names of what was before are not all known.
    partial: bool,
}

impl Log {
    /// A session begins, on this number of checkpoints.
    pub(super) fn begin(&mut self, session: &str, commits: u64, kept: u64) {
        let lengths = std::mem::take(&mut self.lengths);
        let mut parts = std::mem::take(&mut self.parts);
        // Parts of checkpoints that do not stand are nobody's.
        parts.truncate(
            parts.len().saturating_sub((self.commits - commits.min(self.commits)) as usize),
        );
        *self = Self {
            session: session.to_owned(),
            index: self.index,
            first_entry: 1,
            last_entry: 1,
            parities: std::mem::take(&mut self.parities),
            commits,
            kept,
            parts,
            lengths,
            inherits: true,
            free: true,
            lost: self.lost,
            partial: self.partial || self.commits < commits,
            ..Self::default()
        };
    }

    /// The session's first entry comes.
    pub(super) fn restart(&mut self, session: &str) {
        // One that did not get as far as a rule showed nothing again.
        self.lost = self.lost.max(self.open_batches());
        (self.session, self.index, self.part) = (session.to_owned(), 0, None);
        (self.resting, self.ends) = (0, false);
        self.unsent.clear();
        self.sent.clear();
        self.unexplained.clear();
    }

    /// Batches of the session before whose intents may be lost.
    pub(super) fn lost(&self) -> usize {
        self.lost
    }

    /// All that was shown before came again.
    pub(super) fn caught_up(&mut self) {
        self.lost = 0;
    }

    /// The checkpoints of which pointers say that they stand.
    pub(super) fn confirmed(&self) -> u64 {
        self.commits - self.pending.len() as u64
    }

    /// The size changed: an entry says so, and the next part has a length of its own.
    pub(super) fn resized(&mut self) {
        self.unexplained.pop();
        self.lengths.clear();
        self.free = true;
    }

    /// A window came ahead of its turn: an entry may say so.
    pub(super) fn ahead(&mut self) {
        self.unexplained.pop();
    }

    /// Something was synced: these entries have it.
    pub(super) fn synced_writes(&mut self) -> Option<String> {
        let entries = std::mem::take(&mut self.unexplained);
        let short = entries.iter().find(|(_, len)| *len < size_class(20 << 10));
        short.map(|(index, len)| format!("entry {index} of a sync has only {len} bytes"))
    }

    /// Entries that nothing explains.
    pub(super) fn take_unexplained(&mut self) -> Option<String> {
        let first = std::mem::take(&mut self.unexplained).first().copied()?;
        Some(format!("entry {} of {} bytes follows from nothing", first.0, first.1))
    }

    /// A batch of this number of accesses was carried out.
    pub(super) fn batch(&mut self, accesses: usize) -> Option<String> {
        self.unsent.push(accesses);
        if self.rests && !self.pending.is_empty() {
            return Some("a batch came where the session was to rest".into());
        }
        self.rests = false;
        let open = self.open_batches();
        if self.unsent.len() > GROUP || open > 2 * GROUP {
            let unsent = self.unsent.len();
            return Some(format!("{open} batches are not acknowledged, and {unsent} not sent"));
        }
        None
    }

    /// Batches whose intents may be lost.
    pub(super) fn open_batches(&self) -> usize {
        self.unsent.len() + self.resting + self.sent.iter().map(|sent| sent.1).sum::<usize>()
    }

    /// Objects of a window, and what they replaced.
    pub(super) fn window(&mut self, made: Vec<String>, replaced: Vec<String>) {
        self.made.extend(made);
        self.replaced.extend(replaced);
    }

    /// The fault of an entry.
    pub(super) fn entry(&mut self, session: &str, index: u64, len: u64) -> Option<String> {
        if session != self.session || index != self.index + 1 {
            return Some(format!("entry {index} of {session} came after {}", self.index));
        }
        self.index = index;
        (self.last_len, self.last_commits) = (len, false);
        if size_class(len) != len {
            return Some(format!("entry {index} has {len} bytes, which is no size class"));
        }
        if index == 1 {
            return None;
        }
        if let Some((number, name)) = self.part.take() {
            self.last_commits = true;
            self.checkpoint(number, name);
            return None;
        }
        let ids: u64 = self.unsent.iter().map(|count| 8 * (*count as u64 + 2)).sum();
        // With them may come that of a window ahead.
        let fits = len == size_class(ENTRY + ids) || len == size_class(ENTRY + ids + 16);
        if fits && !self.unsent.is_empty() {
            self.sent.push_back((index, self.unsent.len()));
            self.unsent.clear();
        } else {
            self.unexplained.push((index, len));
        }
        None
    }

    fn checkpoint(&mut self, number: u64, part: String) {
        self.commits = number;
        let mut needed = std::mem::take(&mut self.made);
        needed.insert(part.clone());
        needed.insert(self.entry_name(self.index));
        let mut replaced = std::mem::take(&mut self.replaced);
        self.parts.push_back((number, part));
        let first = (number + 1).saturating_sub(self.kept) / self.group() * self.group();
        while self.parts.front().is_some_and(|part| part.0 < first) {
            replaced.extend(self.parts.pop_front().map(|part| part.1));
        }
        let stay = self.parities.split_off(&(first / self.group()));
        replaced.extend(std::mem::replace(&mut self.parities, stay).into_values());
        for (group, name) in std::mem::take(&mut self.new_parities) {
            needed.insert(name.clone());
            replaced.extend(self.parities.insert(group, name));
        }
        let entries = self.first_entry.max(2)..self.last_entry;
        replaced.extend(entries.map(|at| self.entry_name(at)));
        (self.first_entry, self.last_entry) = (self.last_entry, self.index);
        replaced.extend(self.copy.take());
        self.pending.push_back(Checkpoint { entry: self.index, needed, replaced });
    }

    fn group(&self) -> u64 {
        self.kept.clamp(1, PARTS)
    }

    /// The fault of a parity: it comes with the part that it ends with, or completes what an older
    /// version left without.
    pub(super) fn parity(&mut self, name: &str, number: u64, len: u64) -> Option<String> {
        let group = number / self.group();
        let due = self.part.as_ref().map(|part| part.0);
        let longest = self.longest.get(&group).copied();
        self.new_parities.insert(group, name.to_owned());
        let long = longest.is_some_and(|longest| len < longest);
        if long || due.is_none_or(|due| number > due) || due != Some(number) && !self.inherits {
            return Some(format!("parity {number} of {len} bytes came where part {due:?} was due"));
        }
        None
    }

    /// The fault of a second copy: it comes with its checkpoint, and so does the parity. Unless a
    /// group is complete, the session rests then.
    pub(super) fn copy(&mut self, session: &str, index: u64, len: u64) -> Option<String> {
        let right = self.last_commits && session == self.session && index == self.index;
        if !right || len != self.last_len {
            return Some(format!("a copy of entry {index} of {len} bytes follows from nothing"));
        }
        let name = format!("d-{}-{index:08x}", self.session);
        if let Some(last) = self.pending.back_mut() {
            last.needed.insert(name.clone());
        }
        self.copy = Some(name);
        // Before a rest no entry has the intents of the last batches.
        let unsent = std::mem::take(&mut self.unsent).len();
        self.resting += unsent;
        self.rests = unsent > 0 || !(self.commits + 1).is_multiple_of(self.group());
        None
    }

    fn entry_name(&self, index: u64) -> String {
        format!("e-{}-{index:08x}", self.session)
    }

    /// The fault of a part.
    pub(super) fn part(
        &mut self,
        name: &str,
        number: u64,
        len: u64,
        key: PartKey,
    ) -> Option<String> {
        let due = self.commits + 1;
        if number != due || self.part.is_some() || self.pending.len() >= MOST_PENDING {
            return Some(format!("part {number} came where {due} was due, or too early"));
        }
        self.part = Some((number, name.to_owned()));
        let longest = self.longest.entry(number / self.group()).or_default();
        *longest = len.max(*longest);
        if std::mem::take(&mut self.free) {
            return None;
        }
        // Each has its share of the map, and their number says whose turn it is.
        let of_share = if number <= self.kept { number } else { number % self.kept + self.kept };
        let before = *self.lengths.entry((of_share, key)).or_insert(len);
        (before != len).then(|| {
            format!("part {number} has {len} bytes, where another of these numbers had {before}")
        })
    }

    /// Objects are stored.
    pub(super) fn synced(&mut self, name: &str) {
        for pending in &mut self.pending {
            pending.needed.remove(name);
        }
        match Name::of(name) {
            Name::Entry { index, .. } => self.sent.retain(|(entry, _)| *entry > index),
            Name::Pointer { .. } => self.pointed = true,
            _ => {}
        }
    }

    /// The fault of a hint: it comes with the entry that ends the session.
    pub(super) fn hint(&mut self, len: u64) -> Option<String> {
        let ends = self.unexplained.last().is_some_and(|(index, _)| *index == self.index);
        let right = ends && len == HINT && !std::mem::replace(&mut self.ends, true);
        (!right).then(|| format!("a hint of {len} bytes came after entry {}", self.index))
    }

    /// A session that ends points to its last checkpoint only, if it did to none before. All of its
    /// entries stay.
    fn join_pending(&mut self) {
        let mut all = std::mem::take(&mut self.pending);
        let Some(mut last) = all.pop_back() else { return };
        for earlier in all {
            last.needed.extend(earlier.needed);
            last.replaced.extend(earlier.replaced);
        }
        let entries = format!("e-{}-", self.session);
        last.replaced.retain(|name| !name.starts_with(&entries));
        self.pending.push_back(last);
    }

    /// The fault of a pointer.
    pub(super) fn pointer(&mut self, session: &str, nth: u64, len: u64) -> Option<String> {
        let due = self.pointers + 1;
        if self.ends {
            self.join_pending();
        }
        let Some(oldest) = self.pending.pop_front() else {
            return Some(format!("pointer {nth} points to no checkpoint"));
        };
        (self.pointers, self.resting) = (nth, 0);
        self.pointed = false;
        let missing = oldest.needed.first().cloned();
        let waits = self.gone.replace(oldest.replaced).filter(|gone| !gone.is_empty());
        if session != self.session || nth != due || len != POINTER {
            return Some(format!(
                "pointer {nth} of {session}, of {len} bytes, where {due} was due"
            ));
        }
        if let Some(missing) = missing {
            return Some(format!("a pointer to entry {} came before {missing}", oldest.entry));
        }
        waits.map(|_| "what the commit before replaced was not deleted".into())
    }

    /// The fault of a deletion.
    pub(super) fn delete(&mut self, names: &BTreeSet<String>) -> Option<String> {
        let due = self.gone.take().unwrap_or_default();
        if !self.pointed {
            return Some("objects were deleted before the pointer was stored".into());
        }
        if let Some(missing) = due.difference(names).next() {
            return Some(format!("{missing} was replaced and not deleted"));
        }
        let inherits = std::mem::take(&mut self.inherits) || self.partial;
        let own = |name: &&String| Name::of(name).session() == Some(self.session.as_str());
        let mut more = names.difference(&due).filter(|name| !inherits || own(name));
        more.next().map(|name| format!("{name} was deleted, which nothing replaced"))
    }
}
