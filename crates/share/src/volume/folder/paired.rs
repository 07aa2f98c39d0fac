//! A small database of redb in two files with the same content. One that is damaged or lost is made
//! again from the other one at the next start.

use super::durable::sync_parent;
use redb::backends::InMemoryBackend;
use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend,
    StorageError, TableDefinition, TableError, WriteTransaction,
};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder beside a file that has its second copy.
pub const SECOND: &str = "second";
/// How many changes there were: a crash may leave one file behind the other by the last one.
const CHANGES: TableDefinition<(), u64> = TableDefinition::new("changes");

/// Both files. One process has them at a time.
pub struct PairedDatabase {
    files: [Database; 2],
    /// The file that was damaged or lost, if it was made again.
    healed: Option<PathBuf>,
}

/// Where the second copy of a file is.
pub fn second_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default();
    path.parent().unwrap_or(Path::new(".")).join(SECOND).join(name)
}

/// Makes a folder that only this user may read.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    sync_parent(path)
}

fn io_error(error: io::Error) -> DatabaseError {
    DatabaseError::Storage(StorageError::Io(error))
}

/// A file that only this user may read, and its bytes. The lock keeps another process out.
fn locked(path: &Path) -> Result<(File, io::Result<Vec<u8>>), DatabaseError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(io_error)?;
    if file.metadata().map_err(io_error)?.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(io_error)?;
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(DatabaseError::DatabaseAlreadyOpen),
        locked => {
            locked.map_err(|error| io_error(error.into()))?;
            let bytes = std::fs::read(path);
            Ok((file, bytes))
        }
    }
}

/// Checks a database on a copy in memory, since redb panics at some damage and changes what it
/// opens. Returns how many changes it has seen.
fn look(stored: &[u8]) -> Result<u64, DatabaseError> {
    let damaged = |what: &str| DatabaseError::Storage(StorageError::Corrupted(what.to_owned()));
    let looked = std::panic::catch_unwind(|| {
        let copy = InMemoryBackend::new();
        copy.set_len(stored.len() as u64).and_then(|()| copy.write(0, stored))?;
        let mut copy = Database::builder().create_with_backend(copy)?;
        Ok::<_, DatabaseError>((copy.check_integrity()?, changes_of(&copy)))
    });
    match looked {
        Ok(Ok((true, changes))) => changes.map_err(|_| damaged("a table cannot be read")),
        Ok(Ok((false, _))) => Err(damaged("a page is not what was written")),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(damaged("it cannot be read")),
    }
}

/// None is 0: those of versions that kept one file.
fn changes_of(database: &Database) -> Result<u64, redb::Error> {
    match database.begin_read()?.open_table(CHANGES) {
        Err(TableError::TableDoesNotExist(_)) => Ok(0),
        table => Ok(table?.get(())?.map_or(0, |changes| changes.value())),
    }
}

/// What a file is: its changes; nothing if it is empty, so new or lost.
fn state(bytes: &io::Result<Vec<u8>>) -> Result<Option<u64>, DatabaseError> {
    match bytes {
        Ok(bytes) if bytes.is_empty() => Ok(None),
        Ok(bytes) => look(bytes).map(Some),
        Err(error) => Err(io_error(io::Error::new(error.kind(), error.to_string()))),
    }
}

fn write_over(file: &File, bytes: &[u8]) -> Result<(), DatabaseError> {
    let written = file.write_all_at(bytes, 0).and_then(|()| file.set_len(bytes.len() as u64));
    written.and_then(|()| file.sync_all()).map_err(io_error)
}

impl PairedDatabase {
    /// Opens the file at a path and its second copy, or makes them. The one that has seen more
    /// changes counts. If both are damaged, both are left as they are.
    ///
    /// # Errors
    /// Those of redb; `DatabaseAlreadyOpen` if another process has one of them.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let second = second_of(path);
        private_folder(second.parent().unwrap_or(path)).map_err(io_error)?;
        let [one, two] = [locked(path)?, locked(&second)?];
        let is_same = matches!((&one.1, &two.1), (Ok(one), Ok(two)) if one == two);
        let first = state(&one.1);
        let other = if is_same { Ok(None) } else { state(&two.1) };
        let healed = match (first, other) {
            // A crash leaves the second one behind, and never the first one.
            (Ok(Some(first)), Ok(Some(other))) if other > first => {
                write_over(&one.0, two.1.as_deref().unwrap_or_default())?;
                Some(path.to_owned())
            }
            (Ok(Some(_)), other) => {
                let bytes = one.1.as_deref().unwrap_or_default();
                if !is_same {
                    write_over(&two.0, bytes)?;
                }
                other.is_err().then(|| second.clone())
            }
            (_, Ok(Some(_))) => {
                write_over(&one.0, two.1.as_deref().unwrap_or_default())?;
                Some(path.to_owned())
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
            (Ok(None), Ok(None)) => None,
        };
        for path in [path, &second] {
            sync_parent(path).map_err(io_error)?;
        }
        // redb locks the files itself, by its own handles of them.
        for (file, _) in [&one, &two] {
            flock(file, FlockOperation::Unlock).map_err(|error| io_error(error.into()))?;
        }
        let open = |path: &Path| Database::builder().create(path);
        Ok(Self { files: [open(path)?, open(&second)?], healed })
    }

    /// The file that was damaged or lost, and that this start made again.
    pub fn healed(&self) -> Option<&Path> {
        self.healed.as_deref()
    }

    /// Makes a change durable, in one file after the other.
    ///
    /// # Errors
    /// Those of redb, of the change too.
    pub fn change(
        &self,
        change: impl Fn(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        for file in &self.files {
            let write = file.begin_write()?;
            change(&write)?;
            {
                let mut changes = write.open_table(CHANGES)?;
                let before = changes.get(())?.map_or(0, |changes| changes.value());
                changes.insert((), before + 1)?;
            }
            write.commit()?;
        }
        Ok(())
    }

    /// What is stored.
    ///
    /// # Errors
    /// Those of redb.
    pub fn read(&self) -> Result<ReadTransaction, redb::Error> {
        Ok(self.files[0].begin_read()?)
    }
}
