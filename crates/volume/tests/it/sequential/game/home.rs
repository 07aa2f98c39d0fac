//! The inspector has the home too: each note that is made there.

use super::leaks::{Leak, Secret};
use super::watch::{Diary, What};
use oblivio_crypto::VolumeId;
use oblivio_volume::{Keep, Keeper, Known, MemoryKeeper, Result};
use std::sync::Arc;

/// A computer's notes, and a diary of them.
pub struct Home {
    notes: MemoryKeeper,
    diary: Arc<Diary>,
    leak: Leak,
    secret: Arc<Secret>,
}

impl Home {
    pub fn new(notes: &MemoryKeeper, diary: &Arc<Diary>, leak: Leak, secret: &Arc<Secret>) -> Self {
        let (diary, secret) = (Arc::clone(diary), Arc::clone(secret));
        Self { notes: notes.clone(), diary, leak, secret }
    }

    fn see(&self, known: &Known, keep: Keep) {
        // The digest is of a state that names bytes of lanes, so it is random in any case.
        self.diary.see(What::Note(Known { digest: [0; 32], ..*known }, keep));
    }
}

impl Keeper for Home {
    fn take(&mut self, volume: VolumeId) -> Result<Option<Known>> {
        let known = self.notes.take(volume)?;
        if let (Leak::NoteFirst, Some(known)) = (self.leak, &known) {
            self.see(known, Keep::Durable);
        }
        Ok(known)
    }

    fn note(&mut self, known: &Known, keep: Keep) -> Result<()> {
        for shown in self.leak.notes(known, &self.secret) {
            self.see(&shown, keep);
        }
        self.notes.note(known, keep)
    }

    fn holds(&mut self, known: &Known) -> Result<bool> {
        self.notes.holds(known)
    }
}
