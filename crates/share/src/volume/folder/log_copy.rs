//! A second copy of the newest files of a history: those with records that the clients' newest
//! state lacks. It has the same bytes under the same names, and is durable a little later: the
//! first copy alone says what is acknowledged, unless a place in it cannot be read.

use super::durable::sync_parent;
use super::framing::{FILE_HEAD, RECORD_HEAD, checksum, file_head};
use super::healed::Healed;
use super::paired::SECOND;
use super::torn;
use oblivio_store::UNFINISHED;
use oblivio_store::share::{MOST_ENTRY_BYTES, Number};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
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
    /// One of them ends before the other, or a crash tore its end.
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

/// Whether a copy has the records of its file up to a place from which on it has no whole one: a
/// crash leaves that of what was not durable yet.
fn is_torn(file: &File, copy: &File, first: u64) -> bool {
    if !has_head(copy, first) {
        return rest_of(copy, 0).is_ok_and(|all| all.iter().all(|byte| *byte == 0));
    }
    let (mut at, mut number) = (FILE_HEAD, first);
    while let Some(record) = record_at(copy, at, number) {
        if record_at(file, at, number).is_none_or(|it| it != record) {
            return false;
        }
        (at, number) = (at + record.len() as u64, number + 1);
    }
    rest_of(copy, at).is_ok_and(|rest| !torn::is_followed(&rest, number))
}

/// The bytes of a file from a place on.
fn rest_of(file: &File, at: u64) -> io::Result<Vec<u8>> {
    let mut rest = vec![0; file.metadata()?.len().saturating_sub(at) as usize];
    file.read_exact_at(&mut rest, at)?;
    Ok(rest)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn name(first: u64) -> String {
    format!("{first:016x}")
}

/// The paths of a folder's files by the numbers of their first records.
fn names_in(dir: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let text = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Ok(first) = u64::from_str_radix(text, 16) {
            found.insert(first, path);
        }
    }
    Ok(found)
}

/// The copies of a folder that can be opened.
fn found_in(dir: &Path) -> io::Result<BTreeMap<u64, Arc<File>>> {
    let opened = |(first, path): (u64, PathBuf)| Some((first, Arc::new(open(&path).ok()?)));
    Ok(names_in(dir)?.into_iter().filter_map(opened).collect())
}

/// What a file lacked that its copy has.
#[derive(Clone, Copy, PartialEq)]
enum Lacked {
    Nothing,
    /// Records from this one on, after all that it has.
    End(u64),
    /// Records before others, or its head.
    Middle,
}

/// Writes what is whole in `from` over what is not in `file`.
fn mend(file: &File, from: &File, first: u64) -> io::Result<Lacked> {
    let mut lacked = Lacked::Nothing;
    if !has_head(file, first) {
        lacked = Lacked::Middle;
        file.write_all_at(&file_head(first), 0)?;
    }
    let (mut at, mut number) = (FILE_HEAD, first);
    loop {
        let record = match (record_at(file, at, number), record_at(from, at, number)) {
            // What follows there is of another history.
            (Some(record), Some(other)) if record != other => break,
            (Some(record), _) => {
                if let Lacked::End(_) = lacked {
                    lacked = Lacked::Middle;
                }
                record
            }
            (None, Some(record)) => {
                file.write_all_at(&record, at)?;
                if lacked == Lacked::Nothing {
                    lacked = Lacked::End(number);
                }
                record
            }
            (None, None) => break,
        };
        (at, number) = (at + record.len() as u64, number + 1);
    }
    if lacked != Lacked::Nothing {
        file.sync_all()?;
    }
    Ok(lacked)
}

/// Gives a copy the bytes of a file, durably.
fn fill(copy: &File, file: &File) -> io::Result<()> {
    let len = file.metadata()?.len();
    let mut piece = vec![0; PIECE];
    for at in (0..len).step_by(PIECE) {
        let piece = &mut piece[..(len - at).min(PIECE as u64) as usize];
        file.read_exact_at(piece, at)?;
        copy.write_all_at(piece, at)?;
    }
    copy.set_len(len)?;
    copy.sync_all()
}

/// The name of a file that is being made.
fn unfinished(path: &Path) -> PathBuf {
    let mut made = path.as_os_str().to_owned();
    made.push(UNFINISHED);
    made.into()
}

/// Where the whole records of a file end.
fn end_of(file: &File, first: u64) -> u64 {
    let (mut at, mut number) = (FILE_HEAD, first);
    while let Some(record) = record_at(file, at, number) {
        (at, number) = (at + record.len() as u64, number + 1);
    }
    at
}

/// Makes a file anew whose place on the disk cannot be written: the copy takes in what it lacks of
/// it, and a copy of that takes its place. Without room for one, the copy itself does.
fn replace(
    path: &Path,
    file: &File,
    (copy_path, copy): (&Path, &File),
    first: u64,
) -> io::Result<()> {
    mend(copy, file, first)?;
    let end = end_of(copy, first);
    if let Ok(rest) = rest_of(file, end) {
        copy.write_all_at(&rest, end)?;
        copy.set_len(end + rest.len() as u64)?;
    }
    copy.sync_all()?;
    let made = unfinished(path);
    let copied = std::fs::copy(copy_path, &made).and_then(|_| File::open(&made)?.sync_all());
    let replaced = copied.and_then(|()| std::fs::rename(&made, path));
    replaced.or_else(|_| {
        let _ = std::fs::remove_file(&made);
        std::fs::rename(copy_path, path)
    })?;
    sync_parent(path)
}

impl LogCopy {
    /// Opens the copies in `dir`, and makes the files in `log` whole with them. Returns those that
    /// were not. Of the records that are `known`, those before the first one are needed no more,
    /// and all up to the last one were durable.
    pub fn open(dir: &Path, log: &Path, known: &Range<Number>) -> io::Result<(Self, Vec<Healed>)> {
        let mut files = found_in(dir)?;
        let mut firsts: BTreeSet<u64> = names_in(log)?.into_keys().collect();
        firsts.extend(files.keys());
        let mut mended = Vec::new();
        let mut replaced = Vec::new();
        for (first, copy) in files.iter().filter(|(first, copy)| has_head(copy, **first)) {
            let next = firsts.range(first + 1..).next();
            // Files before the first record were deleted, or are about to be.
            if next.is_some_and(|next| *next <= known.start.0) {
                continue;
            }
            let path = log.join(name(*first));
            let was_there = path.exists();
            let file = open(&path)?;
            if compare(&file, copy)? == Compared::Same {
                continue;
            }
            let lacked = mend(&file, copy, *first).or_else(|_| {
                replaced.push(*first);
                let copy = (&*dir.join(name(*first)), &**copy);
                replace(&path, &file, copy, *first).map(|()| Lacked::Middle)
            })?;
            sync_parent(&path)?;
            let is_damage = match lacked {
                Lacked::Nothing => false,
                Lacked::Middle => true,
                // A crash leaves that, of the last file and what nobody knew to be durable.
                Lacked::End(number) => !was_there || next.is_some() || number < known.end.0,
            };
            if is_damage {
                let made: io::Result<()> = Ok(());
                mended.push(Healed::new(format!("log/{}", name(*first)), made));
            }
        }
        // It may be another file now.
        replaced.iter().for_each(|first| drop(files.remove(first)));
        let (unsynced, is_new) = (BTreeSet::new(), false);
        Ok((Self { dir: dir.into(), files, broken: None, unsynced, is_new }, mended))
    }

    /// Makes the copies those of these files, and of no others. Returns those that had other bytes.
    /// One that cannot be made is missing: the history does not wait for it.
    pub fn follow(&mut self, files: &[(u64, &File)]) -> Vec<Healed> {
        let kept = |first: &u64| files.iter().any(|it| it.0 == *first);
        self.files.retain(|first, _| kept(first) || !remove(&self.dir, *first));
        let mut others = Vec::new();
        for (first, file) in files {
            let named = || format!("{SECOND}/log/{}", name(*first));
            match self.copy(*first, file) {
                Ok(false) => {}
                Ok(true) => others.push(Healed::new(named(), Ok::<(), io::Error>(()))),
                Err(error) => {
                    others.push(Healed::new(named(), Err(error)));
                    self.give_up(*first);
                }
            }
        }
        others
    }

    /// Makes the copy of a file, and returns whether it was damaged.
    fn copy(&mut self, first: u64, file: &File) -> io::Result<bool> {
        let path = self.dir.join(name(first));
        let mut copy = match self.files.get(&first) {
            Some(copy) => Arc::clone(copy),
            None => Arc::new(open(&path)?),
        };
        let compared = compare(file, &copy)?;
        let mut is_damaged = compared == Compared::Other && !is_torn(file, &copy, first);
        if compared != Compared::Same && fill(&copy, file).is_err() {
            // Its place on the disk cannot be written.
            is_damaged = true;
            let made = unfinished(&path);
            let _ = std::fs::remove_file(&made);
            copy = Arc::new(open(&made)?);
            let filled = fill(&copy, file).and_then(|()| std::fs::rename(&made, &path));
            filled.inspect_err(|_| drop(std::fs::remove_file(&made)))?;
        }
        if compared != Compared::Same {
            sync_parent(&path)?;
        }
        self.files.insert(first, copy);
        Ok(is_damaged)
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

    /// Deletes the copies of files whose records are all before this one. `firsts` are the numbers
    /// with which the files begin: a copy may be missing.
    pub fn forget(&mut self, firsts: &[u64], before: u64) {
        let next = |first: u64| firsts.iter().find(|next| **next > first);
        let is_over = |first: &u64| next(*first).is_some_and(|next| *next <= before);
        let dir = &self.dir;
        self.files.retain(|first, _| !is_over(first) || !remove(dir, *first));
    }

    /// What must be made durable: the copies that were written, and their folder if one is new.
    pub fn take_unsynced(&mut self) -> (Vec<Arc<File>>, Option<PathBuf>) {
        let written = std::mem::take(&mut self.unsynced);
        let files = written.iter().filter_map(|first| self.files.get(first).cloned()).collect();
        (files, std::mem::take(&mut self.is_new).then(|| self.dir.clone()))
    }
}

/// Deletes a copy. One that stays goes at the next start, which takes nothing from it if its file
/// was deleted.
fn remove(dir: &Path, first: u64) -> bool {
    std::fs::remove_file(dir.join(name(first))).is_ok()
}
