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

use super::keeper::{Catalog, Change, Keeper, Kept, MissingParts};
use catalog::CatalogFile;
use oblivio_store::StoreError;
use oblivio_store::share::{Checkpoint, Number, Object, Result, ServerTable, ShareError};
use segments::Segments;
use std::collections::BTreeMap;
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
    lacking: MissingParts,
    /// What it was opened without.
    lacks: Vec<String>,
}

fn failed(source: io::Error) -> ShareError {
    StoreError::io("volume", source).into()
}

fn damaged(what: &str) -> ShareError {
    failed(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Whether bytes could not be read because they are not there, or because the disk lost them.
fn is_gone(error: &ShareError) -> bool {
    /// The disk cannot read a sector.
    const EIO: i32 = 5;
    match error {
        ShareError::NoObject(_) => true,
        ShareError::Store(StoreError::Missing { .. } | StoreError::Short { .. }) => true,
        ShareError::Store(StoreError::Io { source, .. }) => {
            let gone = [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof];
            gone.contains(&source.kind()) || source.raw_os_error() == Some(EIO)
        }
        _ => false,
    }
}

impl Folder {
    /// Opens a folder, or makes it. Its tables may be somewhere else.
    pub fn open(
        dir: &Path,
        segment_bytes: u64,
        given: Option<Tables>,
        lacking: MissingParts,
    ) -> Result<(Self, Kept)> {
        let (log, tables) = (dir.join("log"), dir.join("tables"));
        for dir in [&log, &tables] {
            DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        }
        // First: it keeps another process out.
        let (catalog, mut known) = CatalogFile::open(&dir.join("catalog"))?;
        let (tables, mut objects) = Stored::open(dir, &tables, &known, given, lacking)?;
        let mut lacks = lacking_tables(&known, &objects);
        if !lacks.is_empty() && lacking == MissingParts::Refused {
            return Err(damaged(&lacks.join(", ")));
        }
        objects.extend(known.tables.iter().map(|(table, len)| (Object::Table(*table), *len)));
        let is_whole = |it: Checkpoint| objects.get(&Object::Checkpoint(it.at)) == Some(&it.len);
        if let Some(lost) = known.checkpoint.filter(|it| !is_whole(*it)) {
            let name = files::name(Object::Checkpoint(lost.at));
            let why = format!("the clients' newest state, tables/{name}, is missing or cut");
            return Err(damaged(&why));
        }
        if known.parameters.is_none() && (!objects.is_empty() || Segments::any_in(&log)?) {
            return Err(damaged("its catalog is missing, or was made anew"));
        }
        // Last: it may set the end of the history aside.
        let needed = known.checkpoint.map_or(known.applied, |it| it.at.max(known.applied));
        // Nobody needs the records before a state, but for answers that were not fetched.
        let spare = known.checkpoint.filter(|_| lacking == MissingParts::Accepted);
        let spare = spare.map_or(known.first, |it| it.at.max(known.first));
        let (segments, has) = Segments::open(&log, known.first..needed, spare, segment_bytes)?;
        if let Some(checkpoint) = known.checkpoint.filter(|_| has.start > known.first) {
            let (from, to) = (known.first.0, has.start.0 - 1);
            lacks.push(format!("the records {from} to {to} of its history"));
            let change = Change::Checkpoint { checkpoint, first: has.start };
            catalog.commit(&change)?;
            known.apply(&change);
        }
        let folder = Self { dir: dir.into(), segments, tables, catalog, lacking, lacks };
        Ok((folder, Kept { catalog: known, objects, next: has.end }))
    }
}

/// The tables in use that are not there, or have another length.
fn lacking_tables(known: &Catalog, objects: &BTreeMap<Object, u64>) -> Vec<String> {
    let lacks = |(table, len): (&ServerTable, &u64)| {
        let object = Object::Table(*table);
        let name = files::name(object);
        match objects.get(&object) {
            None => Some(format!("the table tables/{name} is missing")),
            Some(found) if found != len => {
                Some(format!("the table tables/{name} has {found} bytes of {len}"))
            }
            Some(_) => None,
        }
    };
    known.tables.iter().filter_map(lacks).collect()
}

impl Folder {
    /// The file with the end of the history, if a crash tore it.
    pub fn set_aside(&self) -> Option<&Path> {
        self.segments.set_aside()
    }

    /// What it was opened without.
    pub fn lacks(&self) -> &[String] {
        &self.lacks
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

    fn goes_without(&self, error: &ShareError) -> bool {
        self.lacking == MissingParts::Accepted && is_gone(error)
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
