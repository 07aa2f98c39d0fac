//! A folder as keeper: `log` has the history, `tables` tables and checkpoints, `catalog` the rest.
//! Or the tables are in a store somewhere else, and `tables` has notes on them. `second` has second
//! copies of all that is small: what is lost of one copy is made again from the other one.

mod catalog;
mod durable;
mod elsewhere;
mod errors;
mod files;
mod framing;
mod healed;
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
use errors::{damaged, failed, is_gone};
use oblivio_store::share::{Checkpoint, Number, Object, Result, ServerTable, ShareError};
use paired::{SECOND, private_folder};
use segments::Segments;
use states::{State, States, Whole};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use tables::Stored;

/// A file of the history ends after this many bytes.
pub(super) const SEGMENT_BYTES: u64 = 64 << 20;

pub use healed::Healed;
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
    /// What was damaged or lost of it. Its other copy is whole.
    mended: Vec<Healed>,
    /// The newest state, and which copies of it are whole.
    newest: Option<(State, Whole)>,
    /// Changes of the catalog that this start brings.
    changes: Vec<Change>,
}

impl Folder {
    /// Opens a folder, or makes it. Its tables may be somewhere else. Nothing is deleted before
    /// [`Keeper::clean`], and what is made again of one copy comes from another one that is whole.
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
        if known.parameters.is_none() && has_content(dir)? {
            return Err(damaged("its catalog is missing, or was made anew"));
        }
        let (tables, mut objects) = Stored::open(dir, &tables, &known, given, lacking)?;
        let mut lacks = lacking_tables(&known, &objects);
        if !lacks.is_empty() && lacking == MissingParts::Refused {
            return Err(damaged(&lacks.join(", ")));
        }
        objects.extend(known.tables.iter().map(|(table, len)| (Object::Table(*table), *len)));
        let mut mended = catalog.healed();
        mended.extend(tables.healed());
        let (states, newest) = open_states(&states, &tables, &mut objects, &known)?;
        // Last: it may set the end of the history aside.
        let needed = known.checkpoint.map_or(known.applied, |it| it.at.max(known.applied));
        // Nobody needs the records before a state, but for answers that were not fetched. So there
        // is one copy of those, and damage to them keeps nobody out.
        let spare = known.checkpoint.map_or(known.first, |it| it.at.max(known.first));
        let (dirs, known_records) = ((&*log, &*copies), known.first..needed);
        let (segments, has) = Segments::open(dirs, known_records, spare, segment_bytes)?;
        let mut changes = Vec::new();
        if let Some(checkpoint) = known.checkpoint.filter(|_| has.start > known.first) {
            let (from, to) = (known.first.0, has.start.0 - 1);
            lacks.push(format!(
                "the records {from} to {to} of its history: answers that nobody fetched"
            ));
            let change = Change::Checkpoint { checkpoint, first: has.start, sum: known.sum };
            known.apply(&change);
            changes.push(change);
        }
        let dir = dir.into();
        let folder = Self {
            dir,
            segments,
            tables,
            states,
            catalog,
            lacking,
            lacks,
            mended,
            newest,
            changes,
        };
        Ok((folder, Kept { catalog: known, objects, next: has.end }))
    }
}

/// Whether a folder has a record, a table or a state, in any copy.
fn has_content(dir: &Path) -> Result<bool> {
    let second = dir.join(SECOND);
    for dir in [dir.join("tables"), second.join("tables"), second.join("states")] {
        match std::fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            entries => {
                for entry in entries.map_err(failed)? {
                    let name = entry.map_err(failed)?.file_name();
                    if files::object(&name.to_string_lossy()).is_some() {
                        return Ok(true);
                    }
                }
            }
        }
    }
    Ok(Segments::any_in(&dir.join("log"))? || Segments::any_in(&second.join("log"))?)
}

/// Opens the second copies of states, and looks which copies of the newest one are whole.
fn open_states(
    dir: &Path,
    tables: &Stored,
    objects: &mut BTreeMap<Object, u64>,
    known: &Catalog,
) -> Result<(States, Option<(State, Whole)>)> {
    let newest = known.checkpoint.map(|it| Object::Checkpoint(it.at));
    let kept = |object| newest == Some(object) || objects.contains_key(&object);
    let states = States::open(dir, kept)?;
    let Some(named) = known.checkpoint else { return Ok((states, None)) };
    let object = Object::Checkpoint(named.at);
    let is_there = objects.get(&object) == Some(&named.len);
    let state = State { named, sum: known.sum };
    let whole = states.look(tables, is_there, state)?;
    if !whole.first && !whole.second {
        let why = "is missing, cut or changed";
        let why = format!("the clients' newest state, tables/{}, {why}", files::name(object));
        return Err(damaged(&why));
    }
    objects.insert(object, named.len);
    Ok((states, Some((state, whole))))
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

    /// What was damaged or lost of it. Its other copy is whole.
    pub fn mended(&self) -> &[Healed] {
        &self.mended
    }

    /// Whether the tables are somewhere else, and nobody said where.
    pub fn lacks_tables(&self) -> bool {
        self.tables.is_lacking()
    }
}

impl Keeper for Folder {
    fn clean(&mut self) -> Result<()> {
        self.catalog.begin(&std::mem::take(&mut self.changes))?;
        // Without the store of its tables, not all was looked at.
        if !self.tables.is_lacking() {
            self.tables.clean()?;
            let newest = self.newest.take();
            let repaired =
                newest.and_then(|(state, whole)| self.states.repair(&self.tables, state, whole));
            self.mended.extend(repaired);
            self.states.clean()?;
        }
        self.segments.clean()?;
        self.mended.extend_from_slice(self.segments.mended());
        // What failed just now is left out from now on.
        for healed in self.catalog.healed() {
            if !self.mended.contains(&healed) {
                self.mended.push(healed);
            }
        }
        Ok(())
    }

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
        match object {
            // It is looked at before it is read. The first copy may be damaged, or far away.
            Object::Checkpoint(_) => self
                .states
                .read(object, offset, into)
                .or_else(|_| self.tables.read(object, offset, into)),
            Object::Table(_) => self.tables.read(object, offset, into),
        }
    }

    fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        self.tables.read_all(reads)
    }

    fn sum(&self, state: Checkpoint) -> Result<Option<[u8; 32]>> {
        self.states.sum(&self.tables, state).map(Some)
    }

    fn mend(&self, state: Checkpoint, sum: [u8; 32]) -> Result<()> {
        let state = State { named: state, sum: Some(sum) };
        let whole = self.states.look(&self.tables, true, state)?;
        let _ = self.states.repair(&self.tables, state, whole);
        Ok(())
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
