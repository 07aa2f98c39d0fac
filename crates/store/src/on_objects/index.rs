//! What is stored, by the names of the parts.
//!
//! The parts of an object in the order of their versions tell its state, and which of them are
//! void. So each change is one new part, and a crash leaves it whole or not at all.

use super::part::{Kind, Part};
use std::collections::BTreeMap;

/// A stored part that counts.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// An object.
#[derive(Debug, Default)]
pub(super) struct Object {
    /// Its length, writes in memory included.
    pub(super) len: u64,
    /// The newest version of its parts; 0 before the first one.
    pub(super) version: u64,
    /// Its bytes where no chunk covers them. No longer than `len`.
    pub(super) whole: Option<Stored>,
    pub(super) chunks: BTreeMap<u64, Stored>,
    /// Chunks that differ in memory. A chunk ends with its vector; zeros follow.
    pub(super) dirty: BTreeMap<u64, Vec<u8>>,
}

impl Object {
    /// Takes a stored part into account, newer than all others. Returns the names of those that it
    /// makes void.
    pub(super) fn take(&mut self, chunk_bytes: u64, part: &Part, stored: Stored) -> Vec<String> {
        self.version = part.version;
        match part.kind {
            Kind::Whole | Kind::Gone => {
                let void = self.parts();
                let whole = part.kind == Kind::Whole;
                let len = if whole { stored.bytes } else { 0 };
                let whole = whole.then_some(stored);
                *self = Self { len, version: self.version, whole, ..Self::default() };
                void
            }
            Kind::Chunk { index, len } => {
                let void = self.chunks.split_off(&len.div_ceil(chunk_bytes).max(1));
                let mut void: Vec<_> = void.into_values().map(|part| part.name).collect();
                void.extend(self.chunks.insert(index, stored).map(|part| part.name));
                self.dirty.remove(&index);
                self.len = len;
                void
            }
        }
    }

    /// The names of all parts that count.
    pub(super) fn parts(&self) -> Vec<String> {
        self.whole.iter().chain(self.chunks.values()).map(|part| part.name.clone()).collect()
    }
}

/// All objects, and the parts that are void.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) objects: BTreeMap<String, Object>,
    /// To be deleted in this order, before anything else is stored: a deletion comes after the
    /// parts that it makes void.
    pub(super) void: Vec<String>,
    /// The newest version of all parts.
    pub(super) newest: u64,
}

impl Index {
    /// The index of these stored objects.
    pub(super) fn of(stored: &[(String, u64)], chunk_bytes: u64) -> Self {
        let parts = stored.iter().filter_map(|(name, bytes)| {
            Part::parse(name)
                .map(|(object, part)| (part, object, Stored { name: name.clone(), bytes: *bytes }))
        });
        let mut parts: Vec<_> = parts.collect();
        parts.sort_by_key(|(part, ..)| part.version);
        let mut index = Self::default();
        for (part, object, stored) in parts {
            index.newest = part.version;
            let entry = index.objects.entry(object.to_owned()).or_default();
            let name = stored.name.clone();
            let void = entry.take(chunk_bytes, &part, stored);
            index.void.extend(void);
            if part.kind == Kind::Gone {
                index.objects.remove(object);
                index.void.push(name);
            }
        }
        index
    }
}
