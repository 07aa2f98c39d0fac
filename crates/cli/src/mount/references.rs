//! What the kernel refers to by number: each name that it is told of counts, until it forgets.
//!
//! As on any file system, an inode that lost its last name stays while somebody refers to it: a
//! process whose working directory it is, or a descriptor that was opened with `O_PATH`. We do not
//! hear of those, but the kernel does not forget the inode before they are gone.

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

    /// The kernel is about to be told of an inode.
    pub fn told(&self, ino: Ino) {
        self.lock().entry(ino).or_default().lookups += 1;
    }

    /// Whether an inode that just lost its last name must stay.
    pub fn keep(&self, ino: Ino) -> bool {
        let mut known = self.lock();
        let reference = known.get_mut(&ino);
        reference.map(|reference| reference.nameless = true).is_some()
    }

    /// The kernel takes so many references back; whether that were all to an inode that was kept.
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
