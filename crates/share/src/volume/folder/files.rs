//! Tables and checkpoints as files. One that is not whole has a name of its own.

use super::durable::sync_parent;
use oblivio_store::StoreError;
use oblivio_store::share::{Number, Object, Result, ServerTable, ShareError};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most files that stay open, far below the usual limit of a process.
const OPEN: usize = 256;
/// The end of the name of a file that is not whole.
pub(super) const PARTIAL: &str = ".part";

/// The files.
pub(super) struct Files {
    dir: PathBuf,
    inside: Mutex<Inside>,
    /// Files that are not whole since before the start.
    torn: Vec<PathBuf>,
}

#[derive(Default)]
struct Inside {
    whole: BTreeMap<Object, Arc<File>>,
    /// Kept open until they are whole, so that the system's report of an error is not lost.
    partial: BTreeMap<Object, Arc<File>>,
}

pub(super) fn name(object: Object) -> String {
    match object {
        Object::Table(table) => format!("t-{:016x}", table.0),
        Object::Checkpoint(at) => format!("c-{:016x}", at.0),
    }
}

pub(super) fn object(name: &str) -> Option<Object> {
    let (kind, number) = name.split_once('-')?;
    let number = u64::from_str_radix(number, 16).ok()?;
    match kind {
        "t" => Some(Object::Table(ServerTable(number))),
        "c" => Some(Object::Checkpoint(Number(number))),
        _ => None,
    }
}

fn failed(of: Object, source: io::Error) -> ShareError {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => ShareError::NoObject(of),
        _ => StoreError::io(&name(of), source).into(),
    }
}

impl Files {
    /// Opens a folder, and returns whole objects with their lengths. Others go with
    /// [`Self::clean`].
    pub fn open(dir: &Path) -> Result<(Self, BTreeMap<Object, u64>)> {
        let fail = |error| ShareError::from(StoreError::io("tables", error));
        let (mut found, mut torn) = (BTreeMap::new(), Vec::new());
        for entry in std::fs::read_dir(dir).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.ends_with(PARTIAL) {
                torn.push(entry.path());
            } else if let Some(object) = object(&name) {
                found.insert(object, entry.metadata().map_err(fail)?.len());
            }
        }
        Ok((Self { dir: dir.into(), inside: Mutex::default(), torn }, found))
    }

    /// Deletes what a crash left of objects that are not whole.
    pub fn clean(&self) -> Result<()> {
        self.torn.iter().try_for_each(|path| match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::io("tables", error).into())
            }
            _ => Ok(()),
        })
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn partial_path(&self, object: Object) -> PathBuf {
        self.dir.join(name(object) + PARTIAL)
    }

    fn file(&self, object: Object) -> io::Result<Arc<File>> {
        let mut inside = self.inside();
        if let Some(file) = inside.partial.get(&object).or_else(|| inside.whole.get(&object)) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(self.dir.join(name(object)))?);
        if inside.whole.len() >= OPEN {
            inside.whole.pop_first();
        }
        inside.whole.insert(object, Arc::clone(&file));
        Ok(file)
    }

    pub fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        let mut inside = self.inside();
        if offset == 0 {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(true).mode(0o600);
            let file = options.open(self.partial_path(object)).map_err(|e| failed(object, e))?;
            inside.partial.insert(object, Arc::new(file));
        }
        let file = inside.partial.get(&object).cloned().ok_or(ShareError::NoObject(object))?;
        drop(inside);
        // What a failed write left, the next attempt writes over.
        file.write_all_at(piece, offset).map_err(|error| failed(object, error))
    }

    /// Makes an object of this length durable.
    pub fn finish(&self, object: Object) -> Result<()> {
        let file = self.inside().partial.get(&object).cloned();
        let file = file.ok_or(ShareError::NoObject(object))?;
        let whole = self.dir.join(name(object));
        let done = file
            .sync_all()
            .and_then(|()| std::fs::rename(self.partial_path(object), &whole))
            .and_then(|()| sync_parent(&whole));
        done.map_err(|error| failed(object, error))?;
        let mut inside = self.inside();
        inside.partial.remove(&object);
        // One that it takes the place of.
        inside.whole.remove(&object);
        Ok(())
    }

    /// BLAKE3 of a whole object of this length. None if it is not there, or cannot be read.
    pub fn sum(&self, object: Object, len: u64) -> Option<[u8; 32]> {
        let file = File::open(self.dir.join(name(object))).ok()?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&file).ok()?;
        (hasher.count() == len).then(|| *hasher.finalize().as_bytes())
    }

    pub fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        let read = self.file(object).and_then(|file| file.read_exact_at(into, offset));
        read.map_err(|error| failed(object, error))
    }

    pub fn delete(&self, object: Object) -> Result<()> {
        {
            let mut inside = self.inside();
            inside.partial.remove(&object);
            inside.whole.remove(&object);
        }
        for path in [self.dir.join(name(object)), self.partial_path(object)] {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed(object, error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for it in [Object::Table(ServerTable(u64::MAX)), Object::Checkpoint(Number(7))] {
            assert_eq!(object(&name(it)), Some(it));
        }
        assert_eq!(object("t-0.part"), None);
        assert_eq!(object("x-0"), None);
    }
}
