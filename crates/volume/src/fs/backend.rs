//! The metadata file as the database sees it.

use super::pool::{Pool, SharedPool};
use crate::{Error, Result};
use redb::{Database, StorageBackend};
use std::io;

/// Opens the database in the metadata file.
pub(super) fn open_database(pool: &SharedPool, budget: usize) -> Result<Database> {
    let opened = redb::Builder::new()
        .set_cache_size((budget / 2).max(256 << 10))
        .create_with_backend(Backend(pool.clone()));
    opened.map_err(|error| {
        let reason = pool.lock().failure.take();
        reason.unwrap_or_else(|| error.into())
    })
}

/// The database's view of the file. `sync_data` acts only while the database is compacted: the
/// commit of the whole file system keeps the order that matters.
struct Backend(SharedPool);

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Backend")
    }
}

impl Backend {
    /// The database passes only an I/O error on, so the pool keeps the true one.
    fn run<T>(&self, action: impl FnOnce(&mut Pool) -> Result<T>) -> io::Result<T> {
        let mut pool = self.0.lock();
        action(&mut pool).map_err(|error| {
            let message = error.to_string();
            pool.failure = Some(error);
            io::Error::other(message)
        })
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().metadata.len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.run(|pool| {
            if offset + out.len() as u64 > pool.metadata.len {
                return Err(Error::Tampered("metadata beyond its end".into()));
            }
            pool.metadata_read(offset, out)
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        // Shrunk and grown again, the file shows old bytes instead of zeros. The database reads no
        // page that it has not written since allocating it.
        self.0.lock().metadata.len = len;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.run(|pool| match pool.metadata.in_steps {
            true => pool.metadata_commit(),
            false => Ok(()),
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.run(|pool| pool.metadata_write(offset, data))
    }
}
