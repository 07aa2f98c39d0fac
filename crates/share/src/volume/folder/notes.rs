//! What the server's folder says of tables that are in a store somewhere else: a small file for
//! each of them, and one that says whose the store is.

use super::files::{PARTIAL, name, object};
use super::paired::{private_folder, second_of};
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
pub(super) struct Notes([PathBuf; 2]);

impl Notes {
    /// Opens a folder with its second one, and reads all of them. One that is damaged or missing in
    /// one of them is made again from the other one.
    pub fn open(dir: &Path) -> Result<(Self, BTreeMap<Object, Note>)> {
        let second = second_of(dir);
        private_folder(&second).map_err(|error| failed("tables", error))?;
        let notes = Self([dir.into(), second]);
        let (one, two) = (read_all(&notes.0[0])?, read_all(&notes.0[1])?);
        let mut found = BTreeMap::new();
        let objects: BTreeSet<Object> = one.keys().chain(two.keys()).copied().collect();
        for object in objects {
            let note = match (one.get(&object), two.get(&object)) {
                (Some(Some(note)), other) => {
                    if !matches!(other, Some(Some(other)) if other == note) {
                        notes.write(1, object, *note)?;
                    }
                    *note
                }
                (_, Some(Some(note))) => {
                    notes.write(0, object, *note)?;
                    *note
                }
                _ => {
                    let why = "it is no note on a table somewhere else, or a damaged one";
                    return Err(damaged(&name(object), why));
                }
            };
            found.insert(object, note);
        }
        Ok((notes, found))
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
        let made = replace_file(&self.0[at].join(&name), &bytes);
        made.map(drop).map_err(|error| failed(&name, error))
    }

    /// An object is no more. A crash may leave the first note, which is as if there were both.
    pub fn remove(&self, object: Object) -> Result<()> {
        let name = name(object);
        for dir in self.0.iter().rev() {
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

/// The notes in one folder; none for those that are damaged.
fn read_all(dir: &Path) -> Result<BTreeMap<Object, Option<Note>>> {
    let fail = |error| failed("tables", error);
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // What a crash left of a note; earlier versions called it a part.
        if name.ends_with(UNFINISHED) || name.ends_with(PARTIAL) {
            fs::remove_file(entry.path()).map_err(fail)?;
        } else if let Some(object) = object(&name) {
            let note = fs::read(entry.path()).ok().and_then(|bytes| parse(&bytes));
            found.insert(object, note);
        }
    }
    Ok(found)
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
pub(super) struct Owner([u8; 16]);

impl Owner {
    /// That of a volume's folder, if its tables are somewhere else. One of its two files that is
    /// damaged or missing is made again from the other one.
    pub fn find(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(OWNER);
        let paths = [&path, &second_of(&path)];
        let mut found = [None; 2];
        let mut any = false;
        for (path, found) in paths.into_iter().zip(&mut found) {
            match fs::read(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                bytes => {
                    any = true;
                    *found = bytes.ok().and_then(|bytes| parse_owner(&bytes));
                }
            }
        }
        match (any, found[0].or(found[1])) {
            (false, _) => Ok(None),
            (true, None) => Err(damaged(OWNER, "it is damaged")),
            (true, Some(owner)) => {
                if found != [Some(owner); 2] {
                    Self::note(dir, owner)?;
                }
                Ok(Some(Self(owner)))
            }
        }
    }

    /// Notes a new one, for a volume that has no tables yet.
    pub fn note(dir: &Path, random: [u8; 16]) -> Result<Self> {
        let path = dir.join(OWNER);
        let bytes = [&random[..], blake3::hash(&random).as_bytes()].concat();
        for path in [&path, &second_of(&path)] {
            replace_file(path, &bytes).map_err(|error| failed(OWNER, error))?;
        }
        Ok(Self(random))
    }

    /// Makes sure that a store is this one's: a new one becomes so.
    pub fn claim(&self, store: &dyn Objects) -> Result<()> {
        match store.put(OWNER, &self.0, PutMode::IfAbsent) {
            Ok(()) | Err(StoreError::Exists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let mut found = [0; 16];
        store.read(&mut [ReadAt { object: OWNER, offset: 0, buf: &mut found }])?;
        match found == self.0 {
            true => Ok(()),
            false => Err(damaged(OWNER, "the store has the tables of another server or volume")),
        }
    }
}

/// Random bytes and their sum, which earlier versions left out.
fn parse_owner(bytes: &[u8]) -> Option<[u8; 16]> {
    let owner: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let sum = &bytes[16..];
    (sum.is_empty() || sum == blake3::hash(&owner).as_bytes()).then_some(owner)
}
