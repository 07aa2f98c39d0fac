//! What a session stores beside buckets, and what it deletes: entries, parts, pointers.

use super::names::Name;
use crate::observer::size_class;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Batches whose intents go into one entry.
const GROUP: usize = 4;
/// Bytes of an entry of intents beside them: the seal, the entry before, four numbers, the act.
const ENTRY: u64 = 40 + 16 + 32 + 24;
/// Bytes of a pointer.
const POINTER: u64 = 40 + 40;
/// Checkpoints that may be on their way.
const MOST_PENDING: usize = 2;

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
    /// Batches whose intents are on their way, by their entry.
    sent: VecDeque<(u64, usize)>,
    /// Entries that nothing explained so far.
    unexplained: Vec<(u64, u64)>,
    /// The part whose checkpoint's entry is due.
    part: Option<(u64, String)>,
    /// Objects of windows since the last checkpoint, and what they replaced.
    made: BTreeSet<String>,
    replaced: BTreeSet<String>,
    first_entry: u64,
    pending: VecDeque<Checkpoint>,
    pointers: u64,
    /// What the newest commit replaced. It goes once its pointer is stored.
    gone: Option<BTreeSet<String>>,
    pointed: bool,
    /// Whether the first checkpoint may also delete what sessions before left.
    inherits: bool,
    /// Checkpoints so far, of all sessions, and the parts that stay.
    pub commits: u64,
    kept: u64,
    parts: VecDeque<String>,
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
        let open = self.open_batches();
        if self.unsent.len() > GROUP || open > 2 * GROUP {
            let unsent = self.unsent.len();
            return Some(format!("{open} batches are not acknowledged, and {unsent} not sent"));
        }
        None
    }

    /// Batches whose intents may be lost.
    pub(super) fn open_batches(&self) -> usize {
        self.unsent.len() + self.sent.iter().map(|sent| sent.1).sum::<usize>()
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
        if size_class(len) != len {
            return Some(format!("entry {index} has {len} bytes, which is no size class"));
        }
        if index == 1 {
            return None;
        }
        if let Some((number, name)) = self.part.take() {
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
        self.parts.push_back(part);
        while self.parts.len() as u64 > self.kept {
            replaced.extend(self.parts.pop_front());
        }
        replaced.extend((self.first_entry.max(2)..self.index).map(|at| self.entry_name(at)));
        self.first_entry = self.index;
        self.pending.push_back(Checkpoint { entry: self.index, needed, replaced });
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

    /// The fault of a pointer.
    pub(super) fn pointer(&mut self, session: &str, nth: u64, len: u64) -> Option<String> {
        let due = self.pointers + 1;
        let Some(oldest) = self.pending.pop_front() else {
            return Some(format!("pointer {nth} points to no checkpoint"));
        };
        self.pointers = nth;
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
