//! Opens objects of groups on several threads in parallel: opening takes no nonce.

use crate::session::{KeyCache, Salt, SessionKey};
use crate::{CryptoError, GroupMark, Place, SealRoot, Tag};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Opens objects of groups. Clones share their session keys.
#[derive(Clone)]
pub struct Opener(Arc<Shared>);

struct Shared {
    root: SealRoot,
    keys: Mutex<KeyCache>,
}

impl Opener {
    pub(crate) fn new(root: SealRoot) -> Self {
        Self(Arc::new(Shared { root, keys: Mutex::new(KeyCache::new()) }))
    }

    pub(crate) fn root(&self) -> &SealRoot {
        &self.0.root
    }

    /// Begins a sequence of objects, mostly of one session.
    pub fn begin(&self) -> OpeningRun<'_> {
        OpeningRun { opener: self, last: None }
    }

    /// Opens data sealed under the session key of `salt` in place, and returns that key.
    pub(crate) fn open(
        &self,
        salt: &Salt,
        counter: u64,
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8],
    ) -> Result<Arc<SessionKey>, CryptoError> {
        let known = self.keys().find(salt).cloned();
        if let Some(key) = known {
            key.open(counter, aad, data, tag)?;
            return Ok(key);
        }
        let key = Arc::new(SessionKey::derive(self.root(), *salt));
        key.open(counter, aad, data, tag)?;
        // Kept only now: forged salts must not evict keys in use.
        self.keep(&key);
        Ok(key)
    }

    pub(crate) fn knows(&self, salt: &Salt) -> bool {
        self.keys().find(salt).is_some()
    }

    pub(crate) fn keep(&self, key: &Arc<SessionKey>) {
        self.keys().insert(Arc::clone(key));
    }

    fn keys(&self) -> MutexGuard<'_, KeyCache> {
        self.0.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

/// A sequence of objects that one thread opens.
pub struct OpeningRun<'a> {
    opener: &'a Opener,
    last: Option<Arc<SessionKey>>,
}

impl OpeningRun<'_> {
    /// Opens in place object number `index` of a group.
    ///
    /// # Errors
    /// `Forged` for any other object; the content of `data` is then lost.
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
        self.last = Some(self.opener.open(&salt, counter, &aad, data, &tag.0)?);
        Ok(())
    }
}
