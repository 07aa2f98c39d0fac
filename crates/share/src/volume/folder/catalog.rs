//! The catalog: small numbers and names, changed in transactions of redb.

use super::super::keeper::{Catalog, Change};
use oblivio_store::StoreError;
use oblivio_store::share::{Checkpoint, Number, Result, ScribeTerm, ServerTable, ShareParameters};
use redb::backends::InMemoryBackend;
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageBackend, StorageError,
    TableDefinition,
};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const TABLES: TableDefinition<u64, u64> = TableDefinition::new("tables");
const HEADERS: TableDefinition<&str, &[u8]> = TableDefinition::new("headers");

const TERM: &str = "term";
const QUOTA: &str = "quota";
const APPLIED: &str = "applied";
const FIRST: &str = "first";
const STARTS: &str = "starts";
const CHECKPOINT: &str = "checkpoint";
const CHECKPOINT_BYTES: &str = "checkpoint bytes";
const VERSION: &str = "version";
const SLOT_BYTES: &str = "slot bytes";
const HEADER: &str = "header";

/// The file, which one process has at a time.
pub(super) struct CatalogFile(Database);

fn failed(error: impl Into<redb::Error>) -> StoreError {
    let source = match error.into() {
        redb::Error::Io(source) => source,
        other => io::Error::other(other.to_string()),
    };
    StoreError::io("catalog", source)
}

/// Opens a database of redb, or makes it. Only this user may read the file afterwards. One that is
/// damaged is left as it is: what redb makes of it is tried on a copy first.
///
/// # Errors
/// Those of redb.
pub fn private_database(path: &Path) -> std::result::Result<Database, DatabaseError> {
    let io = |error| DatabaseError::Storage(StorageError::Io(error));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path).map_err(io)?;
    if file.metadata().map_err(io)?.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600)).map_err(io)?;
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Err(DatabaseError::DatabaseAlreadyOpen),
        locked => locked.map_err(|error| io(error.into()))?,
    }
    let stored = std::fs::read(path).map_err(io)?;
    if !stored.is_empty() {
        look(&stored)?;
    }
    // redb locks the file itself, by its own handle of it.
    flock(&file, FlockOperation::Unlock).map_err(|error| io(error.into()))?;
    Database::builder().create_file(file)
}

/// Checks a database on a copy in memory. redb panics at some damage.
fn look(stored: &[u8]) -> std::result::Result<(), DatabaseError> {
    let damaged = |what: &str| DatabaseError::Storage(StorageError::Corrupted(what.to_owned()));
    let looked = std::panic::catch_unwind(|| {
        let copy = InMemoryBackend::new();
        copy.set_len(stored.len() as u64).and_then(|()| copy.write(0, stored))?;
        Database::builder().create_with_backend(copy)?.check_integrity()
    });
    match looked {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(damaged("a page is not what was written")),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(damaged("it cannot be read")),
    }
}

impl CatalogFile {
    /// Opens it, or makes it, and counts a start.
    pub fn open(path: &Path) -> Result<(Self, Catalog)> {
        let opened = private_database(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Busy,
            other => failed(other),
        })?;
        let file = Self(opened);
        file.count_start()?;
        let catalog = file.read()?;
        Ok((file, catalog))
    }

    fn count_start(&self) -> Result<()> {
        let write = self.0.begin_write().map_err(failed)?;
        {
            let mut numbers = write.open_table(NUMBERS).map_err(failed)?;
            let starts = numbers.get(STARTS).map_err(failed)?.map_or(0, |it| it.value());
            numbers.insert(STARTS, starts + 1).map_err(failed)?;
            write.open_table(TABLES).map_err(failed)?;
            write.open_table(HEADERS).map_err(failed)?;
        }
        Ok(write.commit().map_err(failed)?)
    }

    fn read(&self) -> Result<Catalog> {
        let read = self.0.begin_read().map_err(failed)?;
        let numbers = read.open_table(NUMBERS).map_err(failed)?;
        let find =
            |name| Ok::<_, StoreError>(numbers.get(name).map_err(failed)?.map(|it| it.value()));
        let number = |name| Ok::<_, StoreError>(find(name)?.unwrap_or(0));
        let headers = read.open_table(HEADERS).map_err(failed)?;
        let header = headers.get(HEADER).map_err(failed)?;
        let parameters = match header {
            Some(header) => Some(ShareParameters {
                version: number(VERSION)?,
                slot_bytes: u32::try_from(number(SLOT_BYTES)?).unwrap_or(u32::MAX),
                header: header.value().to_vec(),
            }),
            None => None,
        };
        let checkpoint = match find(CHECKPOINT)? {
            Some(at) => Some(Checkpoint { at: Number(at), len: number(CHECKPOINT_BYTES)? }),
            None => None,
        };
        let mut catalog = Catalog {
            term: ScribeTerm(number(TERM)?),
            parameters,
            quota: find(QUOTA)?,
            applied: Number(number(APPLIED)?),
            checkpoint,
            first: Number(number(FIRST)?),
            starts: number(STARTS)?,
            ..Catalog::default()
        };
        let tables = read.open_table(TABLES).map_err(failed)?;
        for entry in tables.iter().map_err(failed)? {
            let (table, len) = entry.map_err(failed)?;
            catalog.tables.insert(ServerTable(table.value()), len.value());
        }
        Ok(catalog)
    }

    /// Makes a change, durably.
    pub fn commit(&self, change: &Change) -> Result<()> {
        let write = self.0.begin_write().map_err(failed)?;
        {
            let mut numbers = write.open_table(NUMBERS).map_err(failed)?;
            let mut set = |name, value| numbers.insert(name, value).map(drop).map_err(failed);
            match change {
                Change::Term(term) => set(TERM, term.0)?,
                Change::Quota(Some(bytes)) => set(QUOTA, *bytes)?,
                Change::Quota(None) => drop(numbers.remove(QUOTA).map_err(failed)?),
                Change::Parameters(parameters) => {
                    set(VERSION, parameters.version)?;
                    set(SLOT_BYTES, u64::from(parameters.slot_bytes))?;
                    let mut headers = write.open_table(HEADERS).map_err(failed)?;
                    headers.insert(HEADER, &*parameters.header).map_err(failed)?;
                }
                Change::Switch { number, table, len, replaced } => {
                    set(APPLIED, number.0 + 1)?;
                    let mut tables = write.open_table(TABLES).map_err(failed)?;
                    for gone in replaced {
                        tables.remove(gone.0).map_err(failed)?;
                    }
                    tables.insert(table.0, *len).map_err(failed)?;
                }
                Change::Checkpoint { checkpoint, first } => {
                    set(CHECKPOINT, checkpoint.at.0)?;
                    set(CHECKPOINT_BYTES, checkpoint.len)?;
                    set(FIRST, first.0)?;
                }
            }
        }
        Ok(write.commit().map_err(failed)?)
    }
}
