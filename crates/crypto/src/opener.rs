//! Opening objects of groups by several threads at once: it needs no nonce that nobody else takes.

use crate::session::{KeyCache, SessionKey};
use crate::{CryptoError, GroupMark, Place, SealRoot, Tag};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Opens objects of groups. Clones share the keys that they met.
#[derive(Clone)]
pub struct Opener(Arc<Shared>);

struct Shared {
    root: Arc<SealRoot>,
    keys: Mutex<KeyCache>,
}

impl Opener {
    pub(crate) fn new(root: Arc<SealRoot>) -> Self {
        Self(Arc::new(Shared { root, keys: Mutex::new(KeyCache::new()) }))
    }

    /// Begins a row of objects, which most often are of one session.
    pub fn begin(&self) -> Opening<'_> {
        Opening { shared: &self.0, last: None }
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

/// A row of objects that one thread opens.
pub struct Opening<'a> {
    shared: &'a Shared,
    last: Option<Arc<SessionKey>>,
}

impl Opening<'_> {
    /// Opens in place the object that was sealed as number `index` of a group.
    ///
    /// # Errors
    /// `Forged` when it is not that object; what was in `data` is then lost.
    pub fn open(
        &mut self,
        mark: &GroupMark,
        index: u64,
        place: &Place,
        tag: &Tag,
        data: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (salt, counter) = mark.object(index)?;
        let aad = place.encode();
        if let Some(last) = &self.last
            && last.salt == salt
        {
            return last.open(counter, &aad, data, &tag.0);
        }
        let known = self.keys().find(&salt).cloned();
        let new = known.is_none();
        let key = known.unwrap_or_else(|| Arc::new(SessionKey::derive(&self.shared.root, salt)));
        key.open(counter, &aad, data, &tag.0)?;
        // Kept only now: invented salts must not push out keys that are in use.
        if new {
            self.keys().insert(Arc::clone(&key));
        }
        self.last = Some(key);
        Ok(())
    }

    fn keys(&self) -> std::sync::MutexGuard<'_, KeyCache> {
        self.shared.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
