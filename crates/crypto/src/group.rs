//! Groups: many small objects sealed under consecutive nonces of one session, so that each stored
//! object is as long as its plaintext.
//!
//! A user of a group keeps its [`GroupMark`] once and a [`Tag`] for each object. Both must be
//! sealed too (in a node of a buffer map, say). There is no table of nonces.

use crate::mark::GroupMark;
use crate::session::SessionKey;
use crate::{CryptoError, Place, Sealer, TAG_BYTES, Tag};
use std::sync::Arc;

/// A group being sealed, or a part of one.
pub struct Group {
    session: Arc<SessionKey>,
    mark: GroupMark,
    next: u64,
    end: u64,
    most_bytes: u64,
}

impl Group {
    /// The mark that opens these objects, together with their tags.
    pub fn mark(&self) -> GroupMark {
        self.mark
    }

    /// Seals the next object in place.
    ///
    /// # Errors
    /// `Malformed` for more objects, or a longer one, than announced.
    pub fn seal(&mut self, place: &Place, data: &mut [u8]) -> Result<Tag, CryptoError> {
        if self.next == self.end || data.len() as u64 > self.most_bytes {
            return Err(CryptoError::Malformed("more in a group than was said"));
        }
        let counter = self.next;
        self.next += 1;
        let mut tag = [0; TAG_BYTES];
        self.session.seal(counter, &place.encode(), data, &mut tag)?;
        Ok(Tag(tag))
    }

    /// Splits off the next `count` objects and keeps the rest of the group. Two threads may then
    /// seal the two parts in parallel.
    pub fn split_off_front(&mut self, count: u64) -> Self {
        let end = self.next.saturating_add(count).min(self.end);
        let session = Arc::clone(&self.session);
        let front = Self { session, end, ..*self };
        self.next = end;
        front
    }
}

impl Sealer {
    /// Begins a group of `objects` objects of at most `most_bytes` bytes each. It takes their
    /// nonces at once. Nonces of objects that are never sealed are lost, which costs nothing.
    ///
    /// # Errors
    /// `KeyExhausted` when no key may seal that many bytes or objects.
    pub fn begin_group(&mut self, objects: u64, most_bytes: u64) -> Result<Group, CryptoError> {
        let next = self.take_counters(objects, objects.saturating_mul(most_bytes))?;
        let session = Arc::clone(self.session());
        let mark = GroupMark::new(&session.salt, next);
        Ok(Group { session, mark, next, end: next + objects, most_bytes })
    }

    /// Opens in place object number `index` of a group.
    ///
    /// # Errors
    /// `Forged` for any other object; the content of `data` is then lost.
    pub fn open_in_group(
        &mut self,
        mark: &GroupMark,
        index: u64,
        place: &Place,
        tag: &Tag,
        data: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (salt, counter) = mark.object(index)?;
        self.open_parts(&salt, counter, &place.encode(), data, &tag.0)
    }
}
