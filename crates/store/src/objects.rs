//! [`Objects`] of a folder or of memory.

use crate::ports::{Blobs, Objects, PutMode};
use crate::{Capabilities, LocalStore, MemoryStore, ReadAt, Result, StoreError};
use std::ops::Range;
use std::sync::Arc;

/// The objects of a store, each written once. It asks the store for whole objects only.
#[derive(Debug, Default)]
pub struct ObjectsOf<S>(S);

/// Objects as files in a folder.
pub type FolderObjects = ObjectsOf<LocalStore>;
/// Objects in memory.
pub type MemoryObjects = ObjectsOf<MemoryStore>;

impl<S> ObjectsOf<S> {
    /// The objects of this store.
    pub fn over(store: S) -> Self {
        Self(store)
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.0
    }
}

impl<S: Blobs> Objects for ObjectsOf<S> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn put_new(&self, name: &str, data: &[u8]) -> Result<()> {
        self.0.put(name, data, PutMode::IfAbsent)
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        let bytes = usize::try_from(range.end.saturating_sub(range.start));
        let mut buf = vec![0; bytes.map_err(|_| StoreError::out_of_range(name))?];
        self.0.read(&mut [ReadAt { object: name, offset: range.start, buf: &mut buf }])?;
        Ok(buf)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.0.delete(&[name])
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        let mut all = self.0.list()?;
        all.retain(|(name, _)| name.starts_with(prefix));
        Ok(all)
    }
}

/// A shared pointer to objects has them.
impl<O: Objects + ?Sized> Objects for Arc<O> {
    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn put_new(&self, name: &str, data: &[u8]) -> Result<()> {
        (**self).put_new(name, data)
    }

    fn read(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>> {
        (**self).read(name, range)
    }

    fn delete(&self, name: &str) -> Result<()> {
        (**self).delete(name)
    }

    fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>> {
        (**self).list(prefix)
    }
}
