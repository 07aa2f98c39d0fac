//! A small database of redb in two files with the same content. One that is damaged or lost is made
//! again from the other one at the next start. One that cannot be written is left out until then.

use super::durable::sync_parent;
use super::healed::Healed;
use oblivio_store::replace_file;
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
use std::sync::{Mutex, PoisonError};

/// The folder beside a file that has its second copy.
pub const SECOND: &str = "second";
/// How many changes there were: a crash may leave one file behind the other by the last one.
const CHANGES: TableDefinition<(), u64> = TableDefinition::new("changes");

/// Both files. One process has them at a time.
pub struct PairedDatabase([DatabaseFile; 2]);

/// One of the files.
struct DatabaseFile {
    /// Its name in the folder of both.
    name: String,
    /// None if it cannot be used.
    database: Option<Database>,
    was_damaged: bool,
    /// Why the other file alone is in use.
    failed: Mutex<Option<String>>,
}

/// What is at the path of a file.
struct Found {
    file: io::Result<File>,
    bytes: io::Result<Vec<u8>>,
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
fn locked(path: &Path) -> Result<Found, DatabaseError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) => {
            let bytes = Err(io::Error::new(error.kind(), error.to_string()));
            return Ok(Found { file: Err(error), bytes });
        }
    };
    if file.metadata().map_err(io_error)?.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(io_error)?;
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(DatabaseError::DatabaseAlreadyOpen),
        locked => {
            locked.map_err(|error| io_error(error.into()))?;
            Ok(Found { file: Ok(file), bytes: std::fs::read(path) })
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

/// Makes a file again: in its place, or as a new file if its place cannot be written.
fn remake(path: &Path, found: &Found, bytes: &[u8]) -> io::Result<()> {
    let in_place = found.file.as_ref().is_ok_and(|file| {
        let written = file.write_all_at(bytes, 0).and_then(|()| file.set_len(bytes.len() as u64));
        written.and_then(|()| file.sync_all()).is_ok()
    });
    if in_place { Ok(()) } else { replace_file(path, bytes).map(drop) }
}

/// Which of two files counts, and whether the other one is damaged or lost. None if both are new.
fn judge(
    one: Result<Option<u64>, DatabaseError>,
    two: Result<Option<u64>, DatabaseError>,
) -> Result<Option<(usize, bool)>, DatabaseError> {
    Ok(match (one, two) {
        // A crash leaves the second one behind by one change, and never the first one.
        (Ok(Some(one)), Ok(Some(two))) if two > one => Some((1, true)),
        (Ok(Some(one)), Ok(Some(two))) => Some((0, two + 1 < one)),
        // Versions that kept one file counted no changes.
        (Ok(Some(one)), Ok(None)) => Some((0, one > 0)),
        (Ok(Some(_)), Err(_)) => Some((0, true)),
        (_, Ok(Some(_))) => Some((1, true)),
        (Err(error), _) | (_, Err(error)) => return Err(error),
        (Ok(None), Ok(None)) => None,
    })
}

impl DatabaseFile {
    fn open(path: &Path, name: String, was_damaged: bool, made: io::Result<()>) -> Self {
        let opened = match made {
            Ok(()) => Database::builder().create(path).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let (database, failed) = match opened {
            Ok(database) => (Some(database), None),
            Err(error) => (None, Some(error)),
        };
        Self { name, database, was_damaged, failed: Mutex::new(failed) }
    }

    fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, why: &redb::Error) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        *failed = Some(why.to_string());
    }

    fn usable(&self) -> Option<&Database> {
        self.database.as_ref().filter(|_| self.failed().is_none())
    }

    fn healed(&self) -> Option<Healed> {
        let (file, failed) = (self.name.clone(), self.failed());
        (self.was_damaged || failed.is_some()).then_some(Healed { file, failed })
    }
}

/// Makes a change in one file, durably.
fn change_in(
    file: &Database,
    change: impl Fn(&WriteTransaction) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let write = file.begin_write()?;
    change(&write)?;
    {
        let mut changes = write.open_table(CHANGES)?;
        let before = changes.get(())?.map_or(0, |changes| changes.value());
        changes.insert((), before + 1)?;
    }
    write.commit()?;
    Ok(())
}

impl PairedDatabase {
    /// Opens the file at a path and its second copy, or makes them. The one that has seen more
    /// changes counts. If both are damaged, both are left as they are.
    ///
    /// # Errors
    /// Those of redb; `DatabaseAlreadyOpen` if another process has one of them.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        let paths = [path.to_owned(), second_of(path)];
        private_folder(paths[1].parent().unwrap_or(path)).map_err(io_error)?;
        let found = [locked(&paths[0])?, locked(&paths[1])?];
        let is_same = matches!((&found[0].bytes, &found[1].bytes), (Ok(a), Ok(b)) if a == b);
        let judged = match is_same {
            true => state(&found[0].bytes)?.map(|_| (0, false)),
            false => judge(state(&found[0].bytes), state(&found[1].bytes))?,
        };
        let mut damaged = [false; 2];
        let mut made = [Ok(()), Ok(())];
        if let Some((good, is_damaged)) = judged
            && !is_same
        {
            let bytes = found[good].bytes.as_deref().unwrap_or_default();
            damaged[1 - good] = is_damaged;
            made[1 - good] = remake(&paths[1 - good], &found[1 - good], bytes);
        }
        for path in &paths {
            sync_parent(path).map_err(io_error)?;
        }
        // redb locks the files itself, by its own handles of them.
        for file in found.iter().filter_map(|found| found.file.as_ref().ok()) {
            flock(file, FlockOperation::Unlock).map_err(|error| io_error(error.into()))?;
        }
        drop(found);
        let [one, two] = made;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let files = [
            DatabaseFile::open(&paths[0], name.to_string(), damaged[0], one),
            DatabaseFile::open(&paths[1], format!("{SECOND}/{name}"), damaged[1], two),
        ];
        Self::usable(files)
    }

    /// One file is enough, if nobody else has the other one.
    fn usable(files: [DatabaseFile; 2]) -> Result<Self, DatabaseError> {
        let busy = DatabaseError::DatabaseAlreadyOpen.to_string();
        let failed: Vec<String> = files.iter().filter_map(DatabaseFile::failed).collect();
        if failed.contains(&busy) {
            return Err(DatabaseError::DatabaseAlreadyOpen);
        }
        match failed.len() {
            2 => Err(io_error(io::Error::other(failed.join("; ")))),
            _ => Ok(Self(files)),
        }
    }

    /// The files that were damaged or lost when it was opened, or that failed since then.
    pub fn healed(&self) -> Vec<Healed> {
        self.0.iter().filter_map(DatabaseFile::healed).collect()
    }

    /// Makes a change durable, in one file after the other. A file that fails is left out until
    /// the next start, which makes it again, if the other one has the change.
    ///
    /// # Errors
    /// Those of redb, of the change too, if no file has it.
    pub fn change(
        &self,
        change: impl Fn(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), redb::Error> {
        let mut failed = Vec::new();
        let mut is_made = false;
        for file in &self.0 {
            let Some(database) = file.usable() else { continue };
            match change_in(database, &change) {
                Ok(()) => is_made = true,
                Err(error) => failed.push((file, error)),
            }
        }
        if is_made {
            failed.iter().for_each(|(file, error)| file.fail(error));
            return Ok(());
        }
        let error = failed.into_iter().next().map(|(_, error)| error);
        Err(error.unwrap_or_else(|| io::Error::other("no file of the database can be used").into()))
    }

    /// What is stored.
    ///
    /// # Errors
    /// Those of redb.
    pub fn read(&self) -> Result<ReadTransaction, redb::Error> {
        let usable = self.0.iter().find_map(DatabaseFile::usable);
        let none = || io::Error::other("no file of the database can be used");
        Ok(usable.ok_or_else(none)?.begin_read()?)
    }
}
