//! What the server's folder says of tables that are in a store somewhere else: a small file for
//! each of them, and one that says whose the store is.

use super::files::{PARTIAL, name, object};
use super::runs::Run;
use oblivio_store::share::{Object, Result, ShareError};
use oblivio_store::{Objects, PutMode, ReadAt, StoreError, UNFINISHED, replace_file};
use std::collections::BTreeMap;
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

/// The notes in a folder.
pub(super) struct Notes(PathBuf);

impl Notes {
    /// Opens a folder, and reads all of them.
    pub fn open(dir: &Path) -> Result<(Self, BTreeMap<Object, Note>)> {
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
                let bytes = fs::read(entry.path()).map_err(fail)?;
                found.insert(object, parse(&name, &bytes)?);
            }
        }
        Ok((Self(dir.into()), found))
    }

    /// Notes that an object is whole, durably.
    pub fn add(&self, object: Object, note: Note) -> Result<()> {
        let Note { run: Run { start, begun, part_bytes }, len } = note;
        let [start, begun, part_bytes, len] = [start, begun, part_bytes, len].map(U64::new);
        let stored = StoredNote { magic: MAGIC, start, begun, part_bytes, len };
        let name = name(object);
        let sum = blake3::hash(stored.as_bytes());
        let bytes = [stored.as_bytes(), sum.as_bytes()].concat();
        let made = replace_file(&self.0.join(&name), &bytes);
        made.map(drop).map_err(|error| failed(&name, error))
    }

    /// An object is no more.
    pub fn remove(&self, object: Object) -> Result<()> {
        let name = name(object);
        match fs::remove_file(self.0.join(&name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(&name, error)),
            _ => Ok(()),
        }
    }
}

fn parse(name: &str, bytes: &[u8]) -> Result<Note> {
    let torn = || damaged(name, "it is no note on a table somewhere else, or a damaged one");
    let (stored, sum) = StoredNote::ref_from_prefix(bytes).map_err(|_| torn())?;
    let part_bytes = stored.part_bytes.get();
    let good = stored.magic == MAGIC && sum == blake3::hash(stored.as_bytes()).as_bytes();
    if !good || part_bytes == 0 {
        return Err(torn());
    }
    let run = Run { start: stored.start.get(), begun: stored.begun.get(), part_bytes };
    Ok(Note { run, len: stored.len.get() })
}

/// Whose tables are in a store: random bytes, in a file of the server's folder and an object of the
/// store. Without it, two servers with one store would delete each other's tables.
pub(super) struct Owner([u8; 16]);

impl Owner {
    /// That of a volume's folder, if its tables are somewhere else.
    pub fn find(dir: &Path) -> Result<Option<Self>> {
        match fs::read(dir.join(OWNER)) {
            Ok(bytes) => match bytes.try_into() {
                Ok(owner) => Ok(Some(Self(owner))),
                Err(_) => Err(damaged(OWNER, "it is damaged")),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(OWNER, error)),
        }
    }

    /// Notes a new one, for a volume that has no tables yet.
    pub fn note(dir: &Path, random: [u8; 16]) -> Result<Self> {
        replace_file(&dir.join(OWNER), &random).map_err(|error| failed(OWNER, error))?;
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
