//! A folder as keeper: `log` has the history, `tables` tables and checkpoints, `catalog` the rest.
//! Or the tables are in a store somewhere else, and `tables` has notes on them.

mod catalog;
mod durable;
mod elsewhere;
mod files;
mod framing;
mod notes;
mod runs;
mod segments;
mod tables;
mod torn;

use super::keeper::{Change, Keeper, Kept};
use catalog::CatalogFile;
use oblivio_store::StoreError;
use oblivio_store::share::{Number, Object, Result, ShareError};
use segments::Segments;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use tables::Stored;

/// A file of the history ends after this many bytes.
pub(super) const SEGMENT_BYTES: u64 = 64 << 20;

pub use catalog::private_database;
pub use tables::Tables;

/// A folder.
pub(super) struct Folder {
    dir: PathBuf,
    segments: Segments,
    tables: Stored,
    catalog: CatalogFile,
}

fn failed(source: io::Error) -> ShareError {
    StoreError::io("volume", source).into()
}

fn damaged(what: &str) -> ShareError {
    failed(io::Error::new(io::ErrorKind::InvalidData, what))
}

impl Folder {
    /// Opens a folder, or makes it. Its tables may be somewhere else.
    pub fn open(dir: &Path, segment_bytes: u64, given: Option<Tables>) -> Result<(Self, Kept)> {
        let (log, tables) = (dir.join("log"), dir.join("tables"));
        for dir in [&log, &tables] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        }
        // First: it keeps another process out.
        let (catalog, known) = CatalogFile::open(&dir.join("catalog"))?;
        let (tables, objects) = Stored::open(dir, &tables, &known, given)?;
        let has = |object, len| objects.get(&object) == Some(&len);
        if known.tables.iter().any(|(table, len)| !has(Object::Table(*table), *len)) {
            return Err(damaged("a table is missing, or has another length"));
        }
        if known.checkpoint.is_some_and(|it| !has(Object::Checkpoint(it.at), it.len)) {
            return Err(damaged("the checkpoint is missing, or has another length"));
        }
        if known.parameters.is_none() && (!objects.is_empty() || Segments::any_in(&log)?) {
            return Err(damaged("its catalog is missing, or was made anew"));
        }
        // Last: it may set the end of the history aside.
        let needed = known.checkpoint.map_or(known.applied, |it| it.at.max(known.applied));
        let (segments, next) = Segments::open(&log, known.first..needed, segment_bytes)?;
        let folder = Self { dir: dir.into(), segments, tables, catalog };
        Ok((folder, Kept { catalog: known, objects, next }))
    }
}

impl Folder {
    /// The file with the end of the history, if a crash tore it.
    pub fn set_aside(&self) -> Option<&Path> {
        self.segments.set_aside()
    }

    /// Whether the tables are somewhere else, and nobody said where.
    pub fn lacks_tables(&self) -> bool {
        self.tables.is_lacking()
    }
}

impl Keeper for Folder {
    fn append(&self, number: Number, record: &[u8]) -> Result<()> {
        self.segments.append(number, record)
    }

    fn sync(&self) -> Result<()> {
        self.segments.sync()
    }

    fn record(&self, number: Number) -> Result<Vec<u8>> {
        self.segments.record(number)
    }

    fn part(&self, number: Number, offset: u32, len: u32) -> Result<Vec<u8>> {
        self.segments.part(number, offset, len)
    }

    fn forget(&self, before: Number) -> Result<()> {
        self.segments.forget(before)
    }

    fn record_bytes(&self) -> u64 {
        self.segments.bytes()
    }

    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.tables.write(object, offset, piece)
    }

    fn finish(&self, object: Object) -> Result<()> {
        self.tables.finish(object)
    }

    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        self.tables.read(object, offset, into)
    }

    fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        self.tables.read_all(reads)
    }

    fn delete(&self, object: Object) -> Result<()> {
        self.tables.delete(object)
    }

    fn commit(&self, change: &Change) -> Result<()> {
        self.catalog.commit(change)
    }

    fn free_bytes(&self) -> Result<u64> {
        let free = rustix::fs::statvfs(&self.dir).map_err(|error| failed(error.into()))?;
        Ok(free.f_bavail.saturating_mul(free.f_frsize))
    }
}
