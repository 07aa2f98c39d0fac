//! The state of the exercise, and its random choices.

use super::model::{DIRECTORIES, Node};
use oblivio_testkit::SplitMix64;
use std::cell::RefMut;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::path::PathBuf;

/// Files that are open at a time.
pub(super) const OPEN: usize = 8;
/// Possible names in each of the directories.
const NAMES: u64 = 10;
/// Recent operations to print when something differs.
const TOLD: usize = 60;
/// Common boundaries: pages, and the blocks of volumes.
const ALIGNED: [u64; 3] = [512, 4096, 16 << 10];

/// An open file.
pub(super) struct Open {
    pub(super) file: File,
    pub(super) node: Node,
}

/// The files, their model, and what was done.
pub(super) struct Exercise {
    pub(super) dir: PathBuf,
    pub(super) size: u64,
    pub(super) rng: SplitMix64,
    pub(super) names: BTreeMap<String, Node>,
    pub(super) open: Vec<Open>,
    pub(super) told: VecDeque<String>,
    pub(super) done: u64,
    pub(super) counts: BTreeMap<&'static str, u64>,
}

impl Exercise {
    pub(super) fn tell(&mut self, what: String) {
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.push_back(format!("{}: {what}", self.done));
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(super) fn any_name(&mut self) -> String {
        let directory = DIRECTORIES[self.rng.below(2) as usize];
        format!("{directory}/{}", self.rng.below(NAMES))
    }

    /// An existing name.
    pub(super) fn some_name(&mut self) -> Option<String> {
        let at = self.rng.below(self.names.len().max(1) as u64) as usize;
        self.names.keys().nth(at).cloned()
    }

    pub(super) fn slot(&mut self) -> usize {
        self.rng.below(self.open.len() as u64) as usize
    }

    pub(super) fn node(&self, slot: usize) -> RefMut<'_, Vec<u8>> {
        self.open[slot].node.borrow_mut()
    }

    pub(super) fn len(&self, slot: usize) -> u64 {
        self.open[slot].node.borrow().len() as u64
    }

    /// A place in a file of at most `size` bytes, often at a boundary.
    pub(super) fn offset(&mut self, size: u64) -> u64 {
        let at = self.rng.below(size + 1);
        match self.rng.below(4) {
            0 => {
                let unit = ALIGNED[self.rng.below(3) as usize];
                at / unit * unit
            }
            _ => at,
        }
    }

    /// A range that ends at `size` at the latest; short ones are as likely as long ones. It is
    /// empty only if `size` is 0.
    pub(super) fn range(&mut self, size: u64) -> (u64, u64) {
        let offset = self.offset(size).min(size.saturating_sub(1));
        let most = 1u64 << self.rng.below(18);
        let mut len = self.rng.below(most) + 1;
        if self.rng.below(4) == 0 {
            let unit = ALIGNED[self.rng.below(3) as usize];
            len = (offset + len).next_multiple_of(unit) - offset;
        }
        (offset, len.min(size - offset))
    }

    pub(super) fn noise(&mut self, len: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len as usize + 8);
        while (bytes.len() as u64) < len {
            bytes.extend_from_slice(&self.rng.next_u64().to_le_bytes());
        }
        bytes.truncate(len as usize);
        bytes
    }
}
