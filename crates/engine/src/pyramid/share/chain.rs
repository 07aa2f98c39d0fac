//! The chain of the scribe's records. Each names the one before it, so nobody can leave one out,
//! move one, or put a part of another history in its place.

use super::head::Head;
use crate::{EngineError, Result};
use oblivio_crypto::{Kind, Place, Sealer, TAG_BYTES, Tag, VolumeId, tag_of};

/// The chain so far.
pub(super) struct Chain {
    volume: VolumeId,
    /// The tag of each record.
    tags: Vec<Tag>,
}

impl Chain {
    /// Without a record.
    pub fn new(volume: VolumeId) -> Self {
        Self { volume, tags: Vec::new() }
    }

    /// The newest record.
    pub fn head(&self) -> Head {
        let tag = self.tags.last().copied().unwrap_or_default();
        Head { number: self.tags.len() as u64, tag }
    }

    /// Whether a client's head is of this chain.
    pub fn contains(&self, head: Head) -> bool {
        match head.number.checked_sub(1) {
            None => head == Head::default(),
            Some(index) => self.tags.get(index as usize) == Some(&head.tag),
        }
    }

    /// Seals the next record.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&mut self, sealer: &mut Sealer, plain: &[u8]) -> Result<Vec<u8>> {
        let plain = [&self.head().tag.0[..], plain].concat();
        let sealed = sealer.seal_vec(&self.next_place(), &plain)?;
        self.tags.extend(tag_of(&sealed));
        Ok(sealed)
    }

    /// Opens the next record.
    ///
    /// # Errors
    /// `State` if it does not follow the ones before it.
    pub fn open(&mut self, sealer: &mut Sealer, sealed: &[u8]) -> Result<Vec<u8>> {
        let wrong = EngineError::State("a record of the history does not follow the one before it");
        let Ok(mut plain) = sealer.open_vec(&self.next_place(), sealed) else { return Err(wrong) };
        if !plain.starts_with(&self.head().tag.0) {
            return Err(wrong);
        }
        self.tags.extend(tag_of(sealed));
        plain.drain(..TAG_BYTES);
        Ok(plain)
    }

    fn next_place(&self) -> Place {
        let (volume, index) = (self.volume, self.tags.len() as u64);
        Place { volume, kind: Kind::History, index, version: 0 }
    }
}
