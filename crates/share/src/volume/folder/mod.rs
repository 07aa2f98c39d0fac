//! A folder as keeper: `log` has the history, `tables` tables and checkpoints, `catalog` the rest.
//! Or the tables are in a store somewhere else, and `tables` has notes on them. `second` has second
//! copies of all that is small: what is lost of one copy is made again from the other one.

mod catalog;
mod durable;
mod elsewhere;
mod files;
mod framing;
mod log_copy;
mod notes;
mod paired;
mod runs;
mod segments;
mod states;
mod tables;
mod torn;

use super::keeper::{Catalog, Change, Keeper, Kept, MissingParts};
use catalog::CatalogFile;
use oblivio_store::StoreError;
use oblivio_store::share::{Checkpoint, Number, Object, Result, ServerTable, ShareError};
use paired::{SECOND, private_folder};
use segments::Segments;
use states::{States, Whole};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tables::Stored;

/// A file of the history ends after this many bytes.
pub(super) const SEGMENT_BYTES: u64 = 64 << 20;

pub use paired::PairedDatabase;
pub use tables::Tables;

/// A folder.
pub(super) struct Folder {
    dir: PathBuf,
    segments: Segments,
    tables: Stored,
    states: States,
    catalog: CatalogFile,
    lacking: MissingParts,
    /// What it was opened without.
    lacks: Vec<String>,
    /// What was damaged or lost of it, and made again from a second copy.
    mended: Vec<String>,
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
        let second = dir.join(SECOND);
        let (copies, states) = (second.join("log"), second.join("states"));
        for dir in [&log, &tables, &copies, &states] {
            private_folder(dir).map_err(failed)?;
        }
        // First: it keeps another process out.
        let (catalog, mut known) = CatalogFile::open(&dir.join("catalog"))?;
        let (tables, mut objects) = Stored::open(dir, &tables, &known, given, lacking)?;
        let mut lacks = lacking_tables(&known, &objects);
        if !lacks.is_empty() && lacking == MissingParts::Refused {
            return Err(damaged(&lacks.join(", ")));
        }
        objects.extend(known.tables.iter().map(|(table, len)| (Object::Table(*table), *len)));
        let healed = catalog.healed().and_then(|path| path.strip_prefix(dir).ok());
        let mut mended: Vec<String> =
            healed.iter().map(|path| path.display().to_string()).collect();
        let states = open_states(&states, (&tables, &mut objects), &known, &mut mended)?;
        if known.parameters.is_none() && (!objects.is_empty() || Segments::any_in(&log)?) {
            return Err(damaged("its catalog is missing, or was made anew"));
        }
        // Last: it may set the end of the history aside.
        let needed = known.checkpoint.map_or(known.applied, |it| it.at.max(known.applied));
        // Nobody needs the records before a state, but for answers that were not fetched. So there
        // is one copy of those, and damage to them keeps nobody out.
        let spare = known.checkpoint.map_or(known.first, |it| it.at.max(known.first));
        let (dirs, known_records) = ((&*log, &*copies), known.first..needed);
        let (segments, has) = Segments::open(dirs, known_records, spare, segment_bytes)?;
        mended.extend_from_slice(segments.mended());
        if let Some(checkpoint) = known.checkpoint.filter(|_| has.start > known.first) {
            let (from, to) = (known.first.0, has.start.0 - 1);
            lacks.push(format!(
                "the records {from} to {to} of its history: answers that nobody fetched"
            ));
            let change = Change::Checkpoint { checkpoint, first: has.start, sum: known.sum };
            catalog.commit(std::slice::from_ref(&change))?;
            known.apply(&change);
        }
        let dir = dir.into();
        let folder = Self { dir, segments, tables, states, catalog, lacking, lacks, mended };
        Ok((folder, Kept { catalog: known, objects, next: has.end }))
    }
}

/// Opens the second copies of states, and makes the newest one whole if a copy of it is.
fn open_states(
    dir: &Path,
    (tables, objects): (&Stored, &mut BTreeMap<Object, u64>),
    known: &Catalog,
    mended: &mut Vec<String>,
) -> Result<States> {
    let newest = known.checkpoint.map(|it| Object::Checkpoint(it.at));
    let kept = |object| newest == Some(object) || objects.contains_key(&object);
    let states = States::open(dir, kept)?;
    let Some(state) = known.checkpoint else { return Ok(states) };
    let object = Object::Checkpoint(state.at);
    let found = match known.sum.filter(|_| !tables.is_lacking()) {
        Some(sum) => states.mend(tables, state, sum)?,
        None if objects.get(&object) == Some(&state.len) => Whole::Both,
        None => Whole::Neither,
    };
    let name = files::name(object);
    match found {
        Whole::Both => {}
        Whole::Mended(SECOND) => mended.push(format!("{SECOND}/states/{name}")),
        Whole::Mended(folder) => mended.push(format!("{folder}/{name}")),
        Whole::Neither => {
            let why = "is missing, cut or changed";
            let why = format!("the clients' newest state, tables/{name}, {why}");
            return Err(damaged(&why));
        }
    }
    objects.insert(object, state.len);
    Ok(states)
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

    /// What was damaged or lost of it, and made again from a second copy.
    pub fn mended(&self) -> &[String] {
        &self.mended
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

    fn forget(&self, before: Number, spare: Number) -> Result<()> {
        self.segments.forget(before, spare)
    }

    fn settle(&self) -> Result<()> {
        self.segments.settle()
    }

    fn record_bytes(&self) -> u64 {
        self.segments.bytes()
    }

    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        self.tables.write(object, offset, piece)?;
        match object {
            Object::Checkpoint(_) => self.states.write(object, offset, piece),
            Object::Table(_) => Ok(()),
        }
    }

    fn finish(&self, object: Object) -> Result<()> {
        // The first copy last: the object is whole once it is.
        if let Object::Checkpoint(_) = object {
            self.states.finish(object)?;
        }
        self.tables.finish(object)
    }

    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        // A state is looked at before it is read, and the copy here is then whole.
        match (object, &self.tables) {
            (Object::Checkpoint(_), Stored::Elsewhere(..)) => self
                .states
                .read(object, offset, into)
                .or_else(|_| self.tables.read(object, offset, into)),
            _ => self.tables.read(object, offset, into),
        }
    }

    fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        self.tables.read_all(reads)
    }

    fn sum(&self, state: Checkpoint) -> Result<Option<[u8; 32]>> {
        Ok(self.states.sum(state))
    }

    fn mend(&self, state: Checkpoint, sum: [u8; 32]) -> Result<()> {
        self.states.mend(&self.tables, state, sum).map(drop)
    }

    fn goes_without(&self, error: &ShareError) -> bool {
        self.lacking == MissingParts::Accepted && is_gone(error)
    }

    fn delete(&self, object: Object) -> Result<()> {
        if let Object::Checkpoint(_) = object {
            self.states.delete(object)?;
        }
        self.tables.delete(object)
    }

    fn commit(&self, changes: &[Change]) -> Result<()> {
        self.catalog.commit(changes)
    }

    fn free_bytes(&self) -> Result<u64> {
        let free = rustix::fs::statvfs(&self.dir).map_err(|error| failed(error.into()))?;
        Ok(free.f_bavail.saturating_mul(free.f_frsize))
    }
}
