//! Tables and checkpoints as files. One that is not whole has a name of its own.

use super::durable::sync_parent;
use oblivio_store::share::{Number, Object, Result, ServerTable, ShareError};
use oblivio_store::{StoreError, read_files};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most whole files that stay open: a batch reads slots of most tables, and there may be a
/// thousand.
const MOST_OPEN: u64 = 2048;
/// The end of the name of a file that is not whole.
pub(super) const PARTIAL: &str = ".part";

/// The files.
pub(super) struct Files {
    dir: PathBuf,
    /// The most whole files that stay open.
    most: usize,
    inside: Mutex<Inside>,
    /// Files that are not whole since before the start.
    torn: Vec<PathBuf>,
}

#[derive(Default)]
struct Inside {
    /// With the numbers of their last uses.
    whole: BTreeMap<Object, (Arc<File>, u64)>,
    uses: u64,
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

/// How many files the process may have open.
fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
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
        let most = (open_files() / 4).min(MOST_OPEN) as usize;
        Ok((Self { dir: dir.into(), most, inside: Mutex::default(), torn }, found))
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
        inside.uses += 1;
        let use_number = inside.uses;
        if let Some(file) = inside.partial.get(&object) {
            return Ok(Arc::clone(file));
        }
        if let Some((file, last)) = inside.whole.get_mut(&object) {
            *last = use_number;
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(self.dir.join(name(object)))?);
        if inside.whole.len() >= self.most {
            let oldest = inside.whole.iter().min_by_key(|(_, (_, last))| *last);
            let oldest = oldest.map(|(object, _)| *object);
            oldest.and_then(|oldest| inside.whole.remove(&oldest));
        }
        inside.whole.insert(object, (Arc::clone(&file), use_number));
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
        self.read_all(&mut [(object, offset, into)])
    }

    /// Reads parts of objects. The disk fetches them at the same time.
    pub fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        // No more files are open than may be, besides those that are kept.
        reads.chunks_mut(self.most.max(1)).try_for_each(|some| self.read_some(some))
    }

    fn read_some(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        let objects: Vec<Object> = reads.iter().map(|(object, ..)| *object).collect();
        let mut opened = Vec::with_capacity(reads.len());
        for (object, offset, into) in reads {
            let file = self.file(*object).map_err(|error| failed(*object, error))?;
            opened.push((file, *offset, &mut **into));
        }
        read_files(&mut opened).map_err(|(at, error)| failed(objects[at], error))
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
