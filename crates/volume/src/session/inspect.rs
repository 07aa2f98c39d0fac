//! Looks at what leads a later session to a checkpoint, and at the second copies of it.

use super::ask::found;
use super::claim::{self, Claims};
use super::entry::{Mark, SessionEntry};
use super::names::SessionId;
use super::pointer;
use super::writer::OwnSession;
use crate::Result;
use crate::damage::DamagedPlace;
use oblivio_crypto::Kind;
use oblivio_store::ReadAt;

impl OwnSession {
    /// What is gone or is not what was stored, of what leads to the newest checkpoint. With
    /// `copied` its entry has a second copy. Of a checkpoint of an earlier session, only the entry
    /// is looked at.
    ///
    /// # Errors
    /// Those of the store.
    pub fn inspect(&mut self, checkpoint: Mark, copied: bool) -> Result<Vec<DamagedPlace>> {
        let (mut damaged, of) = (Vec::new(), checkpoint.session);
        let mut entries = vec![(of.entry(checkpoint.index), checkpoint.index)];
        entries.extend(copied.then(|| (of.copy(checkpoint.index), checkpoint.index)));
        if of == self.id {
            entries.push((of.entry(1), 1));
        }
        for (name, index) in entries {
            let tag = (index == checkpoint.index).then_some(checkpoint.tag);
            self.look_at(name, &mut damaged, |session, bytes| {
                let entry = SessionEntry::open(&mut session.vault, of, index, bytes);
                entry.is_some_and(|entry| tag.is_none_or(|tag| tag == entry.mark.tag))
            })?;
        }
        if of == self.id {
            self.inspect_beginning(of, checkpoint, &mut damaged)?;
        }
        Ok(damaged)
    }

    /// The claim of this session, its second copy, and the newest pointer.
    fn inspect_beginning(
        &mut self,
        id: SessionId,
        checkpoint: Mark,
        damaged: &mut Vec<DamagedPlace>,
    ) -> Result<()> {
        let claims = Claims { store: &*self.store, way: self.way }.names(id);
        for name in claims {
            self.look_at(name, damaged, |session, mut bytes| {
                let found = claim::open(&mut session.vault, Kind::Claim, id.number, &mut bytes);
                found.is_some_and(|(of, _)| of == id)
            })?;
        }
        let nth = self.confirmed;
        self.look_at(id.pointer(nth), damaged, |session, mut bytes| {
            pointer::open(&mut session.vault, id, nth, &mut bytes) == Some(checkpoint)
        })
    }

    fn look_at(
        &mut self,
        object: String,
        damaged: &mut Vec<DamagedPlace>,
        is_right: impl FnOnce(&mut Self, Vec<u8>) -> bool,
    ) -> Result<()> {
        let len = self.store.len(&object)?;
        let mut bytes = vec![0; len.filter(|&len| len <= SessionEntry::MOST).unwrap_or(0) as usize];
        let read = ReadAt { object: &object, offset: 0, buf: &mut bytes };
        let there = len.is_some() && found(self.store.read(&mut [read]))?;
        let why = match there {
            true if is_right(self, bytes) => return Ok(()),
            true => "it is not what was stored",
            false => "it is gone",
        };
        damaged.push(DamagedPlace { object, bytes: 0..0, why: why.into() });
        Ok(())
    }
}
