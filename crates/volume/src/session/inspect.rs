//! Looks at the entry of a checkpoint, and at its second copy.

use super::ask::found;
use super::entry::{Mark, SessionEntry};
use super::writer::OwnSession;
use crate::Result;
use crate::damage::DamagedPlace;
use oblivio_store::ReadAt;

impl OwnSession {
    /// Which of the entry and the second copy of a checkpoint is gone or is not what was stored.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(&mut self, checkpoint: Mark) -> Result<Vec<DamagedPlace>> {
        let (of, index) = (checkpoint.session, checkpoint.index);
        let mut damaged = Vec::new();
        for object in [of.entry(index), of.copy(index)] {
            let len = self.store.len(&object)?;
            let fits = len.filter(|&len| SessionEntry::has_length(len)).unwrap_or(0);
            let mut bytes = vec![0; fits as usize];
            let read = ReadAt { object: &object, offset: 0, buf: &mut bytes };
            let why = if len.is_none() || !found(self.store.read(&mut [read]))? {
                "it is gone"
            } else {
                let entry = SessionEntry::open(&mut self.vault, of, index, bytes);
                if entry.is_some_and(|entry| entry.mark == checkpoint) {
                    continue;
                }
                "it is not what was stored"
            };
            damaged.push(DamagedPlace { object, bytes: 0..0, why: why.into() });
        }
        Ok(damaged)
    }
}
