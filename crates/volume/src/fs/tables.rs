//! The metadata tables and their records.
//!
//! One write transaction stays open between commits, and reads use it too: opening one for each
//! operation would cost more than the operations.

use super::types::{FileKind, Ino};
use crate::{Error, Result};
use redb::{Database, ReadableTable, Table, TableDefinition, WriteTransaction};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub(super) const INODES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("inodes");
/// `(directory, name)` to the named inode.
pub(super) const DIRENTS: TableDefinition<'_, (u64, &[u8]), &[u8]> =
    TableDefinition::new("dirents");
/// `(file, first segment)` to `(first block, count)`.
pub(super) const SEGMENTS: TableDefinition<'_, (u64, u64), (u64, u64)> =
    TableDefinition::new("segments");
/// Shared blocks and the pieces in them.
pub(super) const PACKS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("packs");
/// `(free bytes, pack)` of the packs worth refilling.
pub(super) const ROOMY: TableDefinition<'_, (u64, u64), ()> = TableDefinition::new("roomy");
/// The allocator's bitmap in pieces.
pub(super) const ALLOCATION: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("allocation");
/// Files and directories without names that were open at the last commit.
pub(super) const ORPHANS: TableDefinition<'_, u64, ()> = TableDefinition::new("orphans");
/// `(inode, name)` to the value of an extended attribute.
pub(super) const XATTRS: TableDefinition<'_, (u64, &[u8]), &[u8]> = TableDefinition::new("xattrs");
pub(super) const COUNTERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("counters");

const RECORD_VERSION: u8 = 1;

/// The record of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dirent {
    pub ino: Ino,
    pub kind: FileKind,
}

/// A block shared by tails.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Pack {
    pub block: u64,
    /// Sorted by offset, not overlapping.
    pub pieces: Vec<Piece>,
}

/// One file's tail in a shared block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Piece {
    pub ino: Ino,
    pub offset: u32,
    pub len: u32,
}

/// Numbers kept for the whole file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counters {
    pub next_ino: u64,
    pub next_pack: u64,
    pub files: u64,
    pub directories: u64,
    pub logical_bytes: u64,
    /// Blocks set aside and not yet written. They have a record of their own, which the first
    /// volumes lack.
    #[serde(skip)]
    pub unwritten: u64,
}

pub(super) fn encode<T: Serialize>(record: &T) -> Result<Vec<u8>> {
    encode_as(RECORD_VERSION, record)
}

/// Encodes a record with its own version.
pub(super) fn encode_as<T: Serialize>(version: u8, record: &T) -> Result<Vec<u8>> {
    postcard::to_extend(record, vec![version])
        .map_err(|error| Error::Invalid(format!("metadata record: {error}")))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    match split_version(bytes)? {
        (RECORD_VERSION, record) => decode_body(record),
        (version, _) => Err(unknown_version(version, RECORD_VERSION)),
    }
}

/// A record's version and the rest.
pub(super) fn split_version(bytes: &[u8]) -> Result<(u8, &[u8])> {
    let split = bytes.split_first().map(|(&version, record)| (version, record));
    split.ok_or_else(|| Error::Tampered("an empty metadata record".into()))
}

/// A record that takes all of these bytes; `None` for anything else.
pub(super) fn decode_whole<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let record = bytes.strip_prefix(&[RECORD_VERSION])?;
    postcard::take_from_bytes(record).ok().filter(|(_, rest)| rest.is_empty()).map(|(it, _)| it)
}

/// A record without its version.
pub(super) fn decode_body<T: DeserializeOwned>(record: &[u8]) -> Result<T> {
    postcard::from_bytes(record)
        .map_err(|error| Error::Tampered(format!("metadata record: {error}")))
}

pub(super) fn unknown_version(version: u8, known: u8) -> Error {
    Error::Unsupported(format!(
        "a metadata record has format {version}, this program knows {known}; use a newer one"
    ))
}

/// The database with its open transaction.
pub(super) struct Meta {
    db: Option<Database>,
    txn: Option<WriteTransaction>,
}

impl Meta {
    pub(super) fn new(db: Database) -> Self {
        Meta { db: Some(db), txn: None }
    }

    /// Opens a transaction if there is none.
    pub(super) fn begin(&mut self) -> Result<()> {
        if self.txn.is_none() {
            let db = self.db.as_ref().ok_or_else(closed)?;
            let mut txn = db.begin_write()?;
            // After a crash, reopening then loads the page allocator instead of walking all trees.
            txn.set_quick_repair(true);
            self.txn = Some(txn);
        }
        Ok(())
    }

    /// Commits the transaction into the metadata file (not yet durable).
    pub(super) fn commit(&mut self) -> Result<()> {
        match self.txn.take() {
            Some(txn) => Ok(txn.commit()?),
            None => Ok(()),
        }
    }

    /// Drops the transaction, and moves pages to the front of the file in commits of its own.
    pub(super) fn compact(&mut self) -> Result<()> {
        self.txn = None;
        let db = self.db.as_mut().ok_or_else(closed)?;
        Ok(db.compact().map(drop)?)
    }

    /// Drops the transaction and closes the database.
    pub(super) fn close(&mut self) {
        self.txn = None;
        self.db = None;
    }

    pub(super) fn txn(&self) -> Result<&WriteTransaction> {
        self.txn.as_ref().ok_or_else(closed)
    }

    pub(super) fn open<K: redb::Key + 'static, V: redb::Value + 'static>(
        &self,
        table: TableDefinition<'_, K, V>,
    ) -> Result<Table<'_, K, V>> {
        Ok(self.txn()?.open_table(table)?)
    }

    /// Creates all tables.
    pub(super) fn create_tables(&self) -> Result<()> {
        self.open(INODES)?;
        self.open(DIRENTS)?;
        self.open(SEGMENTS)?;
        self.open(PACKS)?;
        self.open(ROOMY)?;
        self.open(ALLOCATION)?;
        self.open(ORPHANS)?;
        self.open(XATTRS)?;
        self.open(COUNTERS)?;
        Ok(())
    }

    pub(super) fn dirent(&self, parent: Ino, name: &[u8]) -> Result<Option<Dirent>> {
        let table = self.open(DIRENTS)?;
        let record = table.get((parent, name))?;
        record.map(|record| decode(record.value())).transpose()
    }

    pub(super) fn put_dirent(&self, parent: Ino, name: &[u8], dirent: Dirent) -> Result<()> {
        let record = encode(&dirent)?;
        self.open(DIRENTS)?.insert((parent, name), record.as_slice())?;
        Ok(())
    }

    pub(super) fn remove_dirent(&self, parent: Ino, name: &[u8]) -> Result<()> {
        self.open(DIRENTS)?.remove((parent, name))?;
        Ok(())
    }

    /// Up to `limit` names of a directory after `after`.
    pub(super) fn dirents(
        &self,
        parent: Ino,
        after: Option<&[u8]>,
        limit: usize,
    ) -> Result<Vec<(Vec<u8>, Dirent)>> {
        use std::ops::Bound;
        let table = self.open(DIRENTS)?;
        // No name is empty, so the empty one sorts before all of them.
        let from = Bound::Excluded((parent, after.unwrap_or(&[])));
        let to = Bound::Excluded((parent + 1, &[][..]));
        let mut names = Vec::new();
        for entry in table.range::<(u64, &[u8])>((from, to))?.take(limit) {
            let (key, record) = entry?;
            names.push((key.value().1.to_vec(), decode(record.value())?));
        }
        Ok(names)
    }

    pub(super) fn pack(&self, pack: u64) -> Result<Pack> {
        let table = self.open(PACKS)?;
        let record = table.get(pack)?;
        let record = record.ok_or_else(|| Error::Tampered(format!("pack {pack} is missing")))?;
        decode(record.value())
    }

    pub(super) fn counters(&self) -> Result<Counters> {
        let table = self.open(COUNTERS)?;
        let record = table.get("all")?;
        let record = record.ok_or_else(|| Error::Tampered("the counters are missing".into()))?;
        let mut counters: Counters = decode(record.value())?;
        if let Some(record) = table.get("unwritten")? {
            counters.unwritten = decode(record.value())?;
        }
        Ok(counters)
    }

    pub(super) fn put_counters(&self, counters: &Counters) -> Result<()> {
        let record = encode(counters)?;
        let unwritten = encode(&counters.unwritten)?;
        let mut table = self.open(COUNTERS)?;
        table.insert("all", record.as_slice())?;
        table.insert("unwritten", unwritten.as_slice())?;
        Ok(())
    }
}

fn closed() -> Error {
    Error::Closed("the metadata is closed".into())
}

/// An error of the database leaves its transaction in an unknown state, so each one closes the file
/// system. The reason kept by the backend is reported with it.
macro_rules! database_errors {
    ($($error:ty),*) => { $(
        impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Error::Closed(format!("metadata: {error}"))
            }
        }
    )* };
}
database_errors!(
    redb::StorageError,
    redb::TableError,
    redb::TransactionError,
    redb::CommitError,
    redb::CompactionError,
    redb::DatabaseError
);
