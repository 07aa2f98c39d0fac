//! A store behind a pointer is a store: layers and callers take `Arc<dyn Store>`, `Box<dyn
//! Store>` and references as they come.

use crate::{PutMode, ReadAt, Result, Store, WriteAt};
use std::sync::Arc;

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<S: Store + ?Sized> Store for $pointer {
            fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
                (**self).read(reads)
            }
            fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
                (**self).write(writes)
            }
            fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
                (**self).write_durable(object, offset, data)
            }
            fn sync(&self, objects: &[&str]) -> Result<()> {
                (**self).sync(objects)
            }
            fn len(&self, object: &str) -> Result<Option<u64>> {
                (**self).len(object)
            }
            fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
                (**self).put(object, data, mode)
            }
            fn truncate(&self, object: &str, len: u64) -> Result<()> {
                (**self).truncate(object, len)
            }
            fn allocate(&self, object: &str, len: u64) -> Result<()> {
                (**self).allocate(object, len)
            }
            fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
                (**self).discard(ranges)
            }
            fn free_bytes(&self) -> Result<Option<u64>> {
                (**self).free_bytes()
            }
            fn delete(&self, objects: &[&str]) -> Result<()> {
                (**self).delete(objects)
            }
            fn list(&self) -> Result<Vec<(String, u64)>> {
                (**self).list()
            }
            fn lock(&self) -> Result<()> {
                (**self).lock()
            }
            fn save_memory(&self) {
                (**self).save_memory();
            }
        }
    )*};
}

forward!(Arc<S>, Box<S>, &S);
