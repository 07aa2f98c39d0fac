//! The kernel's references to inodes: every lookup counts, until the kernel forgets it.
//!
//! As on any file system, an inode without names stays while something refers to it: a process
//! whose working directory it is, or a descriptor opened with `O_PATH`. We do not see those, but
//! the kernel forgets the inode only after they are gone.

use oblivio_volume::fs::Ino;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Reference {
    lookups: u64,
    /// It lost its last name, and was kept.
    nameless: bool,
}

/// The kernel's references.
#[derive(Clone, Default)]
pub struct References(Arc<Mutex<HashMap<Ino, Reference>>>);

impl References {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ino, Reference>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a reference: the kernel is about to learn of an inode.
    pub fn told(&self, ino: Ino) {
        self.lock().entry(ino).or_default().lookups += 1;
    }

    /// Whether an inode that just lost its last name must stay.
    pub fn keep(&self, ino: Ino) -> bool {
        let mut known = self.lock();
        let reference = known.get_mut(&ino);
        reference.map(|reference| reference.nameless = true).is_some()
    }

    /// Takes back `lookups` references; returns whether they were the last ones to a kept inode.
    pub fn forgotten(&self, ino: Ino, lookups: u64) -> bool {
        let mut known = self.lock();
        let Some(reference) = known.get_mut(&ino) else { return false };
        reference.lookups = reference.lookups.saturating_sub(lookups);
        let gone = reference.lookups == 0;
        gone && known.remove(&ino).is_some_and(|reference| reference.nameless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reference_to_what_was_kept_is_told() {
        let references = References::default();
        references.told(5);
        references.told(5);
        references.told(6);
        assert!(references.keep(5) && !references.keep(7));
        assert!(!references.forgotten(5, 1), "one is left");
        assert!(references.forgotten(5, 1) && !references.keep(5));
        assert!(!references.forgotten(6, 1), "it has a name");
        assert!(!references.forgotten(8, 1), "never told of");
    }
}
