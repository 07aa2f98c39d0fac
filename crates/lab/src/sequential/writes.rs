//! Writes that are deferred and carried out together.

use std::collections::HashMap;

/// A write in sequence; `None` makes a block absent.
pub type Write = (u64, Option<Vec<u8>>);

/// Deferred writes, the oldest first.
#[derive(Debug, Default)]
pub struct Writes {
    all: Vec<Write>,
    newest: HashMap<u64, usize>,
}

impl Writes {
    /// All of them, also those that a later one replaces.
    pub fn all(&self) -> &[Write] {
        &self.all
    }

    /// A block's deferred content, if there is any.
    pub fn newest(&self, id: u64) -> Option<&Option<Vec<u8>>> {
        self.newest.get(&id).map(|&at| &self.all[at].1)
    }

    /// Adds a write, after all others.
    pub fn push(&mut self, id: u64, block: Option<Vec<u8>>) {
        self.newest.insert(id, self.all.len());
        self.all.push((id, block));
    }
}
