//! A second copy of the newest files of a history: those with records that the clients' newest
//! state lacks. It has the same bytes under the same names, and is durable a little later: the
//! first copy alone says what is acknowledged, unless a place in it cannot be read.

use super::durable::sync_parent;
use super::framing::{FILE_HEAD, RECORD_HEAD, checksum, file_head};
use super::paired::SECOND;
use oblivio_store::share::MOST_ENTRY_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that are compared or copied at once.
const PIECE: usize = 1 << 20;

/// The copies of files by the numbers of their first records.
pub(super) struct LogCopy {
    dir: PathBuf,
    files: BTreeMap<u64, Arc<File>>,
    /// The file that lacks something since a write failed: it ends there until the next start.
    broken: Option<u64>,
    /// Copies that were written since they were made durable, and whether one is new.
    unsynced: BTreeSet<u64>,
    is_new: bool,
}

/// The record of this number at a place, with its head, if it is whole.
pub(super) fn record_at(file: &File, at: u64, number: u64) -> Option<Vec<u8>> {
    let mut head = [0; RECORD_HEAD];
    file.read_exact_at(&mut head, at).ok()?;
    let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    if len > MOST_ENTRY_BYTES {
        return None;
    }
    let mut bytes = vec![0; RECORD_HEAD + len];
    file.read_exact_at(&mut bytes, at).ok()?;
    (bytes[4..RECORD_HEAD] == checksum(number, &bytes[RECORD_HEAD..])).then_some(bytes)
}

fn has_head(file: &File, first: u64) -> bool {
    let mut head = [0; FILE_HEAD as usize];
    file.read_exact_at(&mut head, 0).is_ok() && head == file_head(first)
}

/// How a file and its copy compare.
#[derive(PartialEq)]
enum Compared {
    Same,
    /// One of them ends before the other.
    Shorter,
    /// What cannot be read is other, too.
    Other,
}

fn compare(one: &File, other: &File) -> io::Result<Compared> {
    let (len, len_of_other) = (one.metadata()?.len(), other.metadata()?.len());
    let (mut a, mut b) = (vec![0; PIECE], vec![0; PIECE]);
    let common = len.min(len_of_other);
    for at in (0..common).step_by(PIECE) {
        let piece = (common - at).min(PIECE as u64) as usize;
        let (a, b) = (&mut a[..piece], &mut b[..piece]);
        if one.read_exact_at(a, at).is_err() || other.read_exact_at(b, at).is_err() || a != b {
            return Ok(Compared::Other);
        }
    }
    Ok(if len == len_of_other { Compared::Same } else { Compared::Shorter })
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn name(first: u64) -> String {
    format!("{first:016x}")
}

/// The files of a folder by the numbers of their first records.
fn found_in(dir: &Path) -> io::Result<BTreeMap<u64, Arc<File>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let text = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Ok(first) = u64::from_str_radix(text, 16) {
            found.insert(first, Arc::new(open(&path)?));
        }
    }
    Ok(found)
}

/// Writes what is whole in the copy over what is not in the file. Whether there was any.
fn mend(file: &File, copy: &File, first: u64) -> io::Result<bool> {
    if !has_head(copy, first) {
        return Ok(false);
    }
    let mut mended = !has_head(file, first);
    if mended {
        file.write_all_at(&file_head(first), 0)?;
    }
    let (mut at, mut number) = (FILE_HEAD, first);
    loop {
        let record = match (record_at(file, at, number), record_at(copy, at, number)) {
            (Some(record), _) => record,
            (None, Some(record)) => {
                file.write_all_at(&record, at)?;
                mended = true;
                record
            }
            (None, None) => break,
        };
        (at, number) = (at + record.len() as u64, number + 1);
    }
    if mended {
        file.sync_all()?;
    }
    Ok(mended)
}

impl LogCopy {
    /// Opens the copies in `dir`, and makes the files in `log` whole with them. Returns the names
    /// of those that were not.
    pub fn open(dir: &Path, log: &Path) -> io::Result<(Self, Vec<String>)> {
        let files = found_in(dir)?;
        let mut mended = Vec::new();
        for (first, copy) in &files {
            let path = log.join(name(*first));
            let is_there = path.exists();
            if !is_there && !has_head(copy, *first) {
                continue;
            }
            let file = open(&path)?;
            if compare(&file, copy)? != Compared::Same && mend(&file, copy, *first)? {
                sync_parent(&path)?;
                mended.push(format!("log/{}", name(*first)));
            }
        }
        let (unsynced, is_new) = (BTreeSet::new(), false);
        Ok((Self { dir: dir.into(), files, broken: None, unsynced, is_new }, mended))
    }

    /// Makes the copies those of these files, and of no others. Returns the names of those that had
    /// other bytes. One that cannot be made is missing: the history does not wait for it.
    pub fn follow(&mut self, files: &[(u64, &File)]) -> Vec<String> {
        let kept = |first: &u64| files.iter().any(|it| it.0 == *first);
        self.files.retain(|first, _| kept(first) || !remove(&self.dir, *first));
        let mut others = Vec::new();
        for (first, file) in files {
            match self.copy(*first, file) {
                Ok(true) => others.push(format!("{SECOND}/log/{}", name(*first))),
                Ok(false) => {}
                Err(_) => self.give_up(*first),
            }
        }
        others
    }

    /// Makes the copy of a file, and returns whether it had other bytes.
    fn copy(&mut self, first: u64, file: &File) -> io::Result<bool> {
        let path = self.dir.join(name(first));
        let copy = match self.files.get(&first) {
            Some(copy) => Arc::clone(copy),
            None => Arc::new(open(&path)?),
        };
        let compared = compare(file, &copy)?;
        if compared != Compared::Same {
            let len = file.metadata()?.len();
            let mut piece = vec![0; PIECE];
            for at in (0..len).step_by(PIECE) {
                let piece = &mut piece[..(len - at).min(PIECE as u64) as usize];
                file.read_exact_at(piece, at)?;
                copy.write_all_at(piece, at)?;
            }
            copy.set_len(len)?;
            copy.sync_all()?;
            sync_parent(&path)?;
        }
        self.files.insert(first, copy);
        Ok(compared == Compared::Other)
    }

    /// Other records may take the places of those in this copy.
    fn give_up(&mut self, first: u64) {
        self.broken = Some(first);
        self.files.remove(&first);
        remove(&self.dir, first);
    }

    /// Adds what was added to the file that begins with `first`, at this place. A copy that cannot
    /// be written is none: the history does not wait for it.
    pub fn append(&mut self, first: u64, at: u64, record: &[u8]) {
        if self.broken == Some(first) {
            return;
        }
        let written = match self.files.get(&first) {
            Some(copy) => copy.write_all_at(record, at),
            None => self.begin(first).and_then(|copy| copy.write_all_at(record, at)),
        };
        match written {
            Ok(()) => drop(self.unsynced.insert(first)),
            Err(_) => self.give_up(first),
        }
    }

    fn begin(&mut self, first: u64) -> io::Result<Arc<File>> {
        let copy = Arc::new(open(&self.dir.join(name(first)))?);
        copy.set_len(0)?;
        copy.write_all_at(&file_head(first), 0)?;
        self.files.insert(first, Arc::clone(&copy));
        self.is_new = true;
        Ok(copy)
    }

    /// The record of this number in the copy of this file, at this place.
    pub fn record(&self, first: u64, at: u64, number: u64) -> Option<Vec<u8>> {
        self.files.get(&first).and_then(|copy| record_at(copy, at, number))
    }

    /// Deletes the copies of files whose records are all before this one.
    pub fn forget(&mut self, before: u64) {
        let firsts: Vec<u64> = self.files.keys().copied().collect();
        for pair in firsts.windows(2).filter(|pair| pair[1] <= before) {
            self.files.remove(&pair[0]);
            remove(&self.dir, pair[0]);
        }
    }

    /// What must be made durable: the copies that were written, and their folder if one is new.
    pub fn take_unsynced(&mut self) -> (Vec<Arc<File>>, Option<PathBuf>) {
        let written = std::mem::take(&mut self.unsynced);
        let files = written.iter().filter_map(|first| self.files.get(first).cloned()).collect();
        (files, std::mem::take(&mut self.is_new).then(|| self.dir.clone()))
    }
}

/// Deletes a copy. One that stays is a copy of a file that is gone, and goes at the next start.
fn remove(dir: &Path, first: u64) -> bool {
    std::fs::remove_file(dir.join(name(first))).is_ok()
}
