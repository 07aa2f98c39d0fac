//! The history's files: records one after the other, each with its length and a checksum.
//!
//! ```text
//! file    "oblvshr1" 8 | number of its first record 8 | records
//! record  length 4 | first 8 bytes of BLAKE3(number, bytes) | bytes
//! ```
//!
//! A file is durable before the next one begins. So a crash can only tear the end of the last one,
//! of which nobody knows that it is durable. What it tore is set aside, in a file beside the
//! others. What no crash explains is left as it is, and the volume is not opened, unless it is in
//! records that are needed no more.

use super::durable::sync_parent;
use super::framing::{FILE_HEAD, RECORD_HEAD, checksum, file_head};
use super::healed::Healed;
use super::log_copy::{LogCopy, record_at};
use super::torn;
use oblivio_store::share::{MOST_ENTRY_BYTES, Number, Result, ShareError};
use oblivio_store::{StoreError, sync_directory};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The files.
pub(super) struct Segments {
    dir: PathBuf,
    most: u64,
    inside: Mutex<Inside>,
    set_aside: Option<PathBuf>,
    /// Files that were damaged or lost, and whose other copies are whole.
    mended: Vec<Healed>,
    /// Records before the first one are needed no more, and copies of those before the second one.
    needed: (Number, Number),
}

struct Inside {
    /// In order; there is always one.
    files: VecDeque<Segment>,
    /// Of the records from `first` on.
    places: VecDeque<Place>,
    first: u64,
    /// A write-out failed: what is on disk is unknown.
    failed: bool,
    copy: LogCopy,
}

struct Segment {
    first: u64,
    file: Arc<File>,
    path: PathBuf,
    len: u64,
}

#[derive(Clone)]
struct Place {
    file: Arc<File>,
    offset: u64,
    len: u32,
}

pub(super) fn failed(source: io::Error) -> ShareError {
    StoreError::io("history", source).into()
}

pub(super) fn damaged(what: &str) -> ShareError {
    failed(io::Error::new(io::ErrorKind::InvalidData, format!("the history is damaged: {what}")))
}

impl Segments {
    /// Opens the files of a folder, which the second copies in another one make whole. Records up
    /// to `known` are needed. Returns the numbers of the first record that it has of these, and
    /// after the last one. Damage to records before `spare` is passed over: then the first one is
    /// the one after it. There are second copies of those from there on. But for what these mend,
    /// nothing is changed before all is compared, and nothing is deleted before [`Self::clean`].
    pub fn open(
        (dir, copies): (&Path, &Path),
        known: Range<Number>,
        spare: Number,
        most: u64,
    ) -> Result<(Self, Range<Number>)> {
        let (copy, mended) = LogCopy::open(copies, dir, &known).map_err(failed)?;
        let mut found = segments_in(dir)?;
        let unborn = unborn(&mut found, spare.0)?;
        let mut inside = Inside {
            files: VecDeque::new(),
            places: VecDeque::new(),
            first: found.first().map_or(known.start.0, |it| it.first),
            failed: false,
            copy,
        };
        let mut rest = None;
        for segment in found {
            if segment.first != inside.next() {
                if segment.first > spare.0 || segment.first < inside.next() {
                    return Err(inside.gap(rest.is_some()));
                }
                inside.begin_at(segment.first);
            }
            rest = inside.read(segment, spare.0)?;
        }
        if unborn.is_some() && rest.is_some() {
            // A file is begun once the one before it is durable.
            return Err(inside.gap(true));
        }
        let first = inside.first.max(known.start.0);
        if inside.first > known.start.0.max(spare.0) || inside.next() < known.start.0 {
            return Err(damaged(&format!("the records from {} on are missing", known.start.0)));
        }
        if inside.next() < known.end.0 {
            let (has, needs) = (inside.next(), known.end.0);
            let why = format!("its end is missing: there are {has} records of {needs} or more");
            return Err(damaged(&why));
        }
        let set_aside = rest.map(|rest| inside.set_aside(dir, rest)).transpose()?;
        unborn.map_or(Ok(()), std::fs::remove_file).map_err(failed)?;
        if inside.files.is_empty() {
            inside.files.push_back(create(dir, known.start.0).map_err(failed)?);
        }
        let next = inside.next();
        let (dir, inside) = (dir.into(), Mutex::new(inside));
        let needed = (known.start, spare);
        let segments = Self { dir, most, inside, set_aside, mended, needed };
        Ok((segments, Number(first)..Number(next)))
    }

    /// The volume holds together: files go that are not needed any more, but for a crash, and the
    /// second copies become those of the others.
    pub fn clean(&mut self) -> Result<()> {
        let (first, spare) = self.needed;
        self.forget(first, spare)?;
        let others = self.inside().follow(spare.0);
        self.mended.extend(others);
        Ok(())
    }

    /// Whether a folder has bytes of any record.
    pub fn any_in(dir: &Path) -> Result<bool> {
        let mut any = false;
        for segment in segments_in(dir)? {
            any |= segment.file.metadata().map_err(failed)?.len() > FILE_HEAD;
        }
        Ok(any)
    }

    /// Where the end is that a crash tore.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// The files that were damaged or lost, and whose other copies are whole.
    pub fn mended(&self) -> &[Healed] {
        &self.mended
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn append(&self, number: Number, bytes: &[u8]) -> Result<()> {
        let mut inside = self.inside();
        inside.usable()?;
        if inside.next() != number.0 {
            return Err(ShareError::Gap(Number(inside.next())));
        }
        if inside.files.back().is_none_or(|last| last.len >= self.most) {
            inside.begin_file(&self.dir)?;
        }
        inside.write(number.0, bytes)
    }

    /// Makes all that was appended before durable.
    pub fn sync(&self) -> Result<()> {
        let file = {
            let inside = self.inside();
            inside.usable()?;
            inside.files.back().map(|last| Arc::clone(&last.file))
        };
        let synced = file.map_or(Ok(()), |file| file.sync_data());
        synced.map_err(|error| {
            self.inside().failed = true;
            failed(error)
        })
    }

    /// Makes the second copies durable.
    pub fn settle(&self) -> Result<()> {
        let (files, dir) = self.inside().copy.take_unsynced();
        let synced = files.iter().try_for_each(|file| file.sync_data());
        let folder = || dir.map_or(Ok(()), |dir| sync_directory(&File::open(dir)?));
        synced.and_then(|()| folder()).map_err(failed)
    }

    fn place(&self, number: Number) -> Result<Place> {
        let inside = self.inside();
        let at = number.0.checked_sub(inside.first).and_then(|at| inside.places.get(at as usize));
        at.cloned().ok_or(ShareError::Gone(Number(inside.first)))
    }

    pub fn record(&self, number: Number) -> Result<Vec<u8>> {
        let place = self.place(number)?;
        let found = record_at(&place.file, place.offset, number.0);
        let found = found.or_else(|| self.inside().copied(number.0, place.offset));
        match found.filter(|record| record.len() == RECORD_HEAD + place.len as usize) {
            Some(mut record) => Ok(record.split_off(RECORD_HEAD)),
            None => Err(damaged("a record is not what was written")),
        }
    }

    /// A part of a record. If its file cannot be read there, it is that of the second copy.
    pub fn part(&self, number: Number, offset: u32, len: u32) -> Result<Vec<u8>> {
        let place = self.place(number)?;
        let mut bytes = vec![0; len as usize];
        let at = place.offset + RECORD_HEAD as u64 + u64::from(offset);
        if place.file.read_exact_at(&mut bytes, at).is_err() {
            let record = self.record(number)?;
            let part = record.get(offset as usize..offset as usize + len as usize);
            bytes.copy_from_slice(part.ok_or(ShareError::Gone(number))?);
        }
        Ok(bytes)
    }

    /// Deletes files all of whose records are before this one, and second copies of those before
    /// `copied`.
    pub fn forget(&self, before: Number, copied: Number) -> Result<()> {
        let mut inside = self.inside();
        let firsts: Vec<u64> = inside.files.iter().map(|file| file.first).collect();
        inside.copy.forget(&firsts, copied.0);
        while inside.files.get(1).is_some_and(|second| second.first <= before.0) {
            let (gone, second) = (&inside.files[0], &inside.files[1]);
            // Of a file before damage, no record is known any more.
            let records = second.first.saturating_sub(inside.first);
            std::fs::remove_file(&gone.path).map_err(failed)?;
            inside.first += records;
            inside.places.drain(..records as usize);
            inside.files.pop_front();
        }
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.inside().files.iter().map(|file| file.len).sum()
    }
}

impl Inside {
    fn next(&self) -> u64 {
        self.first + self.places.len() as u64
    }

    fn usable(&self) -> Result<()> {
        match self.failed {
            true => Err(failed(io::Error::other("an earlier write failed; start the server anew"))),
            false => Ok(()),
        }
    }

    /// Writes a record, or nothing.
    fn write(&mut self, number: u64, bytes: &[u8]) -> Result<()> {
        let mut record = Vec::with_capacity(RECORD_HEAD + bytes.len());
        record.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        record.extend_from_slice(&checksum(number, bytes));
        record.extend_from_slice(bytes);
        let Some(last) = self.files.back_mut() else { return Err(damaged("no file")) };
        if let Err(error) = last.file.write_all_at(&record, last.len) {
            self.failed = last.file.set_len(last.len).is_err();
            return Err(failed(error));
        }
        self.copy.append(last.first, last.len, &record);
        let file = Arc::clone(&last.file);
        self.places.push_back(Place { file, offset: last.len, len: bytes.len() as u32 });
        last.len += record.len() as u64;
        Ok(())
    }

    fn begin_file(&mut self, dir: &Path) -> Result<()> {
        if let Some(last) = self.files.back()
            && let Err(error) = last.file.sync_data()
        {
            self.failed = true;
            return Err(failed(error));
        }
        self.files.push_back(create(dir, self.next()).map_err(failed)?);
        Ok(())
    }

    /// Makes the second copies those of the files with this record and later ones.
    fn follow(&mut self, from: u64) -> Vec<Healed> {
        let later = |at: usize| self.files.get(at + 1).is_none_or(|next| next.first > from);
        let files = (0..self.files.len()).filter(|at| later(*at)).map(|at| &self.files[at]);
        let files: Vec<_> = files.map(|it| (it.first, &*it.file)).collect();
        self.copy.follow(&files)
    }

    /// The record of this number at this place of its file's second copy.
    fn copied(&self, number: u64, at: u64) -> Option<Vec<u8>> {
        let file = self.files.iter().rev().find(|file| file.first <= number)?;
        self.copy.record(file.first, at, number)
    }

    /// The error that a record is missing between two files, or cannot be read in one.
    fn gap(&self, is_there: bool) -> ShareError {
        let next = self.next();
        let file = self.files.back().and_then(|last| last.path.file_name());
        let file = file.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        damaged(&match is_there {
            true => {
                format!("record {next} cannot be read, and whole ones follow it, in log/{file}")
            }
            false => format!("the file log/{} is missing", name(next)),
        })
    }

    /// Knows no record before this one any more.
    fn begin_at(&mut self, first: u64) {
        self.places.clear();
        self.first = first;
    }

    /// Reads the records of a file, and returns where what cannot be read begins and ends. One
    /// before `spare` is passed over if the next one is where its length says.
    fn read(&mut self, mut segment: Segment, spare: u64) -> Result<Option<Range<u64>>> {
        let whole = segment.file.metadata().map_err(failed)?.len();
        segment.len = FILE_HEAD;
        let mut head = [0; RECORD_HEAD];
        while segment.len + RECORD_HEAD as u64 <= whole {
            if segment.file.read_exact_at(&mut head, segment.len).is_err() {
                break;
            }
            let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
            let end = segment.len + RECORD_HEAD as u64 + u64::from(len);
            if len as usize > MOST_ENTRY_BYTES || end > whole {
                break;
            }
            let mut bytes = vec![0; len as usize];
            let at = segment.len + RECORD_HEAD as u64;
            let number = self.next();
            // A sector that the disk cannot read is damage like any other.
            let is_read = segment.file.read_exact_at(&mut bytes, at).is_ok();
            if !is_read || head[4..] != checksum(number, &bytes) {
                let is_followed = record_at(&segment.file, end, number + 1).is_some();
                if number >= spare || !is_followed {
                    break;
                }
                self.begin_at(number + 1);
                segment.len = end;
                continue;
            }
            let file = Arc::clone(&segment.file);
            self.places.push_back(Place { file, offset: segment.len, len });
            segment.len = end;
        }
        let rest = segment.len..whole;
        self.files.push_back(segment);
        Ok(if rest.is_empty() { None } else { Some(rest) })
    }

    /// Moves the end of the last file into a file of its own, whose path it returns.
    fn set_aside(&mut self, dir: &Path, rest: Range<u64>) -> Result<PathBuf> {
        let number = self.next();
        let Some(last) = self.files.back() else { return Err(damaged("no file")) };
        let mut bytes = vec![0; (rest.end - rest.start) as usize];
        last.file.read_exact_at(&mut bytes, rest.start).map_err(failed)?;
        if torn::is_followed(&bytes, number) {
            let why = format!("record {number} cannot be read, and whole ones follow it");
            return Err(damaged(&why));
        }
        let path = torn::keep(dir, number, &bytes).map_err(failed)?;
        last.file.set_len(rest.start).and_then(|()| last.file.sync_all()).map_err(failed)?;
        Ok(path)
    }
}

fn name(first: u64) -> String {
    format!("{first:016x}")
}

/// Makes a file that begins with this record, durably.
fn create(dir: &Path, first: u64) -> io::Result<Segment> {
    let path = dir.join(name(first));
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    let made = file.write_all_at(&file_head(first), 0).and_then(|()| file.sync_all());
    if let Err(error) = made.and_then(|()| sync_parent(&path)) {
        let _ = std::fs::remove_file(&path);
        return Err(error);
    }
    Ok(Segment { first, file: Arc::new(file), path, len: FILE_HEAD })
}

/// The files of a folder in order, their records unread.
fn segments_in(dir: &Path) -> Result<Vec<Segment>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let text = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok(first) = u64::from_str_radix(text, 16) else { continue };
        let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed)?;
        found.push(Segment { first, file: Arc::new(file), path, len: 0 });
    }
    found.sort_by_key(|segment| segment.first);
    Ok(found)
}

/// Checks the heads, but those of files with records before `spare` only. A last file without one
/// was never begun: it is taken out, and may go.
fn unborn(found: &mut Vec<Segment>, spare: u64) -> Result<Option<PathBuf>> {
    let last = found.len().saturating_sub(1);
    for at in 0..found.len() {
        let segment = &found[at];
        let mut head = [0; FILE_HEAD as usize];
        let read = segment.file.read_exact_at(&mut head, 0);
        let good = read.is_ok() && head == file_head(segment.first);
        let len = segment.file.metadata().map_err(failed)?.len();
        if !good && at == last && len <= FILE_HEAD {
            return Ok(found.pop().map(|unborn| unborn.path));
        } else if !good && found.get(at + 1).is_none_or(|next| next.first > spare) {
            return Err(damaged("a file without its head"));
        }
    }
    Ok(None)
}
