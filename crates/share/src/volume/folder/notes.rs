//! What the server's folder says of tables that are in a store somewhere else: a small file for
//! each of them, and one that says whose the store is.

use super::files::{PARTIAL, name, object};
use super::healed::Healed;
use super::paired::{SECOND, private_folder, second_of};
use super::runs::Run;
use oblivio_store::share::{Object, Result, ShareError};
use oblivio_store::{Objects, PutMode, ReadAt, StoreError, UNFINISHED, replace_file};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 8] = *b"oblvnote";
/// The object that says whose a store is.
const OWNER: &str = "owner";

/// Where an object is that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub run: Run,
    pub len: u64,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StoredNote {
    magic: [u8; 8],
    start: U64,
    begun: U64,
    part_bytes: U64,
    len: U64,
}

fn failed(what: &str, source: io::Error) -> ShareError {
    StoreError::io(what, source).into()
}

fn damaged(what: &str, why: &str) -> ShareError {
    failed(what, io::Error::new(ErrorKind::InvalidData, why))
}

/// The notes in a folder, and the second copy of each in another one.
pub(super) struct Notes {
    dirs: [PathBuf; 2],
    /// What a crash left of notes.
    torn: Vec<PathBuf>,
    healed: Vec<Healed>,
}

impl Notes {
    /// Opens a folder with its second one, and reads all of them. One that is damaged or missing in
    /// one of them is made again from the other one. Those of objects in use should be there twice.
    pub fn open(
        dir: &Path,
        in_use: impl Fn(Object) -> bool,
    ) -> Result<(Self, BTreeMap<Object, Note>)> {
        let second = second_of(dir);
        private_folder(&second).map_err(|error| failed("tables", error))?;
        let dirs = [dir.into(), second];
        let mut notes = Self { dirs, torn: Vec::new(), healed: Vec::new() };
        let (one, two) = (notes.read_all(0)?, notes.read_all(1)?);
        let mut found = BTreeMap::new();
        let objects: BTreeSet<Object> = one.keys().chain(two.keys()).copied().collect();
        for object in objects {
            let both = [&one, &two].map(|notes| notes.get(&object).copied().flatten());
            let (note, bad) = match (both, object) {
                ([Some(note), other], _) => (note, (other != Some(note)).then_some(1)),
                ([None, Some(note)], _) => (note, Some(0)),
                // The second copy of a state has no note.
                ([None, None], Object::Checkpoint(_)) => continue,
                ([None, None], Object::Table(_)) => {
                    let why = "it is no note on a table somewhere else, or a damaged one";
                    return Err(damaged(&name(object), why));
                }
            };
            if let Some(bad) = bad {
                let made = notes.write(bad, object, note);
                // Earlier versions made no second one, and a crash leaves none.
                let was_there = bad == 0 || two.contains_key(&object);
                if in_use(object) && (was_there || made.is_err()) {
                    let dir = ["", SECOND][bad];
                    let file = Path::new(dir).join("tables").join(name(object));
                    notes.healed.push(Healed::new(file.display().to_string(), made));
                }
            }
            found.insert(object, note);
        }
        Ok((notes, found))
    }

    /// The notes that were damaged or lost.
    pub fn healed(&self) -> &[Healed] {
        &self.healed
    }

    /// Deletes what a crash left of notes.
    pub fn clean(&self) -> Result<()> {
        let removed = self.torn.iter().try_for_each(fs::remove_file);
        removed.map_err(|error| failed("tables", error))
    }

    /// The notes in one folder; none for those that are damaged.
    fn read_all(&mut self, at: usize) -> Result<BTreeMap<Object, Option<Note>>> {
        let fail = |error| failed("tables", error);
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&self.dirs[at]).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            // Earlier versions called it a part.
            if name.ends_with(UNFINISHED) || name.ends_with(PARTIAL) {
                self.torn.push(entry.path());
            } else if let Some(object) = object(&name) {
                let note = fs::read(entry.path()).ok().and_then(|bytes| parse(&bytes));
                found.insert(object, note);
            }
        }
        Ok(found)
    }

    /// Notes that an object is whole, durably.
    pub fn add(&self, object: Object, note: Note) -> Result<()> {
        (0..2).try_for_each(|at| self.write(at, object, note))
    }

    fn write(&self, at: usize, object: Object, note: Note) -> Result<()> {
        let Note { run: Run { start, begun, part_bytes }, len } = note;
        let [start, begun, part_bytes, len] = [start, begun, part_bytes, len].map(U64::new);
        let stored = StoredNote { magic: MAGIC, start, begun, part_bytes, len };
        let name = name(object);
        let sum = blake3::hash(stored.as_bytes());
        let bytes = [stored.as_bytes(), sum.as_bytes()].concat();
        let made = replace_file(&self.dirs[at].join(&name), &bytes);
        made.map(drop).map_err(|error| failed(&name, error))
    }

    /// An object is no more. A crash may leave the first note, which is as if there were both.
    pub fn remove(&self, object: Object) -> Result<()> {
        let name = name(object);
        for dir in self.dirs.iter().rev() {
            match fs::remove_file(dir.join(&name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(failed(&name, error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> Option<Note> {
    let (stored, sum) = StoredNote::ref_from_prefix(bytes).ok()?;
    let part_bytes = stored.part_bytes.get();
    let good = stored.magic == MAGIC && sum == blake3::hash(stored.as_bytes()).as_bytes();
    let run = Run { start: stored.start.get(), begun: stored.begun.get(), part_bytes };
    (good && part_bytes != 0).then(|| Note { run, len: stored.len.get() })
}

/// Whose tables are in a store: random bytes, in a file of the server's folder and an object of the
/// store. Without it, two servers with one store would delete each other's tables.
pub(super) struct Owner {
    random: [u8; 16],
    pub healed: Vec<Healed>,
}

impl Owner {
    /// That of a volume's folder, if its tables are somewhere else. One of its two files that is
    /// damaged or missing is made again from the other one.
    pub fn find(dir: &Path) -> Result<Option<Self>> {
        let paths = paths(dir);
        // Nothing for a file that is missing, and None for one that is damaged.
        let found = [0, 1].map(|at| match fs::read(&paths[at]) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            bytes => Some(bytes.ok().and_then(|bytes| parse_owner(&bytes))),
        });
        let random = match (found, found[0].flatten().or(found[1].flatten())) {
            ([None, None], _) => return Ok(None),
            (_, None) => return Err(damaged(OWNER, "it is damaged")),
            (_, Some(random)) => random,
        };
        let mut healed = Vec::new();
        for at in (0..2).filter(|at| found[*at].flatten() != Some(random)) {
            let made = write_owner(&paths[at], random);
            // Earlier versions made no second one, and a crash leaves none.
            if at == 0 || found[at].is_some() || made.is_err() {
                let file = paths[at].strip_prefix(dir).unwrap_or(&paths[at]);
                healed.push(Healed::new(file.display().to_string(), made));
            }
        }
        Ok(Some(Self { random, healed }))
    }

    /// Notes a new one, for a volume that has no tables yet.
    pub fn note(dir: &Path, random: [u8; 16]) -> Result<Self> {
        let written = paths(dir).iter().try_for_each(|path| write_owner(path, random));
        written.map_err(|error| failed(OWNER, error))?;
        Ok(Self { random, healed: Vec::new() })
    }

    /// Makes sure that a store is not another one's.
    pub fn check(&self, store: &dyn Objects) -> Result<()> {
        let mut found = [0; 16];
        match store.read(&mut [ReadAt { object: OWNER, offset: 0, buf: &mut found }]) {
            Ok(()) if found == self.random => Ok(()),
            Ok(()) => Err(damaged(OWNER, "the store has the tables of another server or volume")),
            Err(StoreError::Missing { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes sure that a store is this one's: a new one becomes so.
    pub fn claim(&self, store: &dyn Objects) -> Result<()> {
        match store.put(OWNER, &self.random, PutMode::IfAbsent) {
            Ok(()) | Err(StoreError::Exists { .. }) => self.check(store),
            Err(error) => Err(error.into()),
        }
    }
}

fn paths(dir: &Path) -> [PathBuf; 2] {
    let path = dir.join(OWNER);
    let second = second_of(&path);
    [path, second]
}

fn write_owner(path: &Path, random: [u8; 16]) -> io::Result<()> {
    let bytes = [&random[..], blake3::hash(&random).as_bytes()].concat();
    replace_file(path, &bytes).map(drop)
}

/// Random bytes and their sum, which earlier versions left out.
fn parse_owner(bytes: &[u8]) -> Option<[u8; 16]> {
    let owner: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let sum = &bytes[16..];
    (sum.is_empty() || sum == blake3::hash(&owner).as_bytes()).then_some(owner)
}
