//! The write-back buffer of file tails: the last, partial segment of files being written.
//!
//! A tail is placed (in a shared block, or one of its own) only when the buffer is full or at a
//! commit, so a file written in many small steps is placed once.

use super::types::Ino;
use std::collections::{BTreeMap, HashMap};

const MAX_TAILS: usize = 64;

/// Buffered tails by file. The content is the file's last segment, up to the file's size.
pub(super) struct Tails {
    tails: HashMap<Ino, (u64, Vec<u8>)>,
    recent: BTreeMap<u64, Ino>,
    clock: u64,
    bytes: usize,
    budget: usize,
}

impl Tails {
    pub(super) fn new(budget: usize) -> Self {
        Tails { tails: HashMap::new(), recent: BTreeMap::new(), clock: 0, bytes: 0, budget }
    }

    pub(super) fn len(&self) -> usize {
        self.tails.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn get(&self, ino: Ino) -> Option<&[u8]> {
        self.tails.get(&ino).map(|(_, data)| data.as_slice())
    }

    pub(super) fn contains(&self, ino: Ino) -> bool {
        self.tails.contains_key(&ino)
    }

    pub(super) fn insert(&mut self, ino: Ino, data: Vec<u8>) {
        self.remove(ino);
        self.clock += 1;
        self.bytes += data.len();
        self.recent.insert(self.clock, ino);
        self.tails.insert(ino, (self.clock, data));
    }

    pub(super) fn remove(&mut self, ino: Ino) -> Option<Vec<u8>> {
        let (stamp, data) = self.tails.remove(&ino)?;
        self.recent.remove(&stamp);
        self.bytes -= data.len();
        Some(data)
    }

    /// How many tails of whole blocks fit.
    pub(super) fn most(&self, block_bytes: usize) -> u64 {
        (self.budget / block_bytes).clamp(1, MAX_TAILS) as u64
    }

    pub(super) fn all(&self) -> Vec<Ino> {
        self.recent.values().copied().collect()
    }

    /// The older half of too many tails, else none.
    pub(super) fn surplus(&self) -> Vec<Ino> {
        if self.tails.len() <= MAX_TAILS && self.bytes <= self.budget {
            return Vec::new();
        }
        let half = self.tails.len().div_ceil(2);
        self.recent.values().copied().take(half).collect()
    }
}
