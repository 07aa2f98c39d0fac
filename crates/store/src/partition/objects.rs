//! The objects in their places, and the table that describes them.
//!
//! The view of a running program (`view`) and the table on the disk (`Writer::entries`) differ by
//! the unsynced writes. A crash relies on the order of writes: first bytes become durable, then a
//! table that names them. Bytes that a table may name are overwritten only once the next table is
//! durable.

use super::place::ChangeKind;
use super::table::{self, BLOCK, Entry, FRONT, Layout};
use crate::medium::Medium;
use crate::write_behind::WriteBehind;
use crate::{PutMode, ReadAt, Result, StoreError, WriteAt, check_name};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Calls that write at least this many bytes do not wait for the system to take them.
const LONG: usize = 256 << 10;
/// Bytes per write of a long `put`, or of zeros.
const PIECE: usize = 256 << 10;

/// The table's name in all messages.
const TABLE: &str = "table of contents";

/// Objects in the places of a layout.
#[derive(Debug)]
pub(super) struct Objects<M: Medium> {
    behind: WriteBehind<M>,
    layout: Layout,
    /// The view of a running program. A reader holds it while it reads bytes, because the second
    /// next `put` overwrites their place.
    view: RwLock<Vec<Entry>>,
    /// Held by the writer of the table.
    writer: Mutex<Writer>,
}

/// The table as last written.
#[derive(Debug)]
struct Writer {
    number: u64,
    entries: Vec<Entry>,
    /// Perhaps not durable: the sync after it failed.
    unsettled: bool,
    /// It came from the disk. If its writer's last sync failed, the system may show it although the
    /// disk lost it. So it is written once more before the other copy changes.
    found: bool,
    /// The other copy is damaged. Then it is written first, so that one is whole at any time.
    alone: bool,
}

type Change = (usize, Entry);

impl<M: Medium> Objects<M> {
    /// Sets the most bytes kept in memory.
    pub(super) fn may_keep(&self, bytes: usize) {
        self.behind.may_keep(bytes);
    }

    /// Prefetches these ranges (object, offset, length), as far as they exist.
    pub(super) fn expect_reads(&self, ranges: &[(&str, u64, u64)]) {
        let view = self.shared();
        for &(object, offset, len) in ranges {
            if let Ok((index, entry)) = self.existing(&view, object)
                && offset.checked_add(len).is_some_and(|end| end <= entry.len)
            {
                let at = self.layout.reserved[index].begin(&entry) + offset;
                self.behind.medium().expect(at, len as usize);
            }
        }
    }

    /// Writes the first table. The content of the places is void.
    pub(super) fn create(medium: M, layout: Layout) -> io::Result<Self> {
        let entries = vec![Entry::default(); layout.reserved.len()];
        // The second first: no older table below may be found while one is whole.
        for number in [1, 0] {
            let bytes = table::encode(number, &layout, &entries);
            medium.write_at(&bytes, 0, table::copy(number))?;
        }
        medium.sync()?;
        let writer = Writer { number: 1, entries, unsettled: false, found: false, alone: false };
        Ok(Self::new(medium, layout, writer))
    }

    /// Reads the table.
    ///
    /// # Errors
    /// `InvalidData` when neither copy is whole; that of a disk that can read neither.
    pub(super) fn open(medium: M) -> io::Result<Self> {
        let (mut whole, mut failed) = (Vec::new(), None);
        // One by one: the disk may be able to read only one.
        for at in (0..FRONT).step_by(BLOCK as usize) {
            let mut copy = vec![0; BLOCK as usize];
            match medium.read_at(&mut [(at, &mut copy)]) {
                Ok(()) => whole.extend(table::decode(&copy)),
                Err(error) => failed = Some(error),
            }
        }
        let alone = whole.len() == 1;
        let Some((number, layout, entries)) = whole.into_iter().max_by_key(|found| found.0) else {
            let kind = io::ErrorKind::InvalidData;
            let none = "no table of contents that is whole: damaged, or made otherwise";
            return Err(failed.unwrap_or_else(|| io::Error::new(kind, none)));
        };
        let writer = Writer { number, entries, unsettled: true, found: true, alone };
        Ok(Self::new(medium, layout, writer))
    }

    fn new(medium: M, layout: Layout, writer: Writer) -> Self {
        let view = RwLock::new(writer.entries.clone());
        Self { behind: WriteBehind::new(medium), layout, view, writer: Mutex::new(writer) }
    }

    /// Bytes from the front to the end of the last place.
    pub(super) fn size(&self) -> u64 {
        self.layout.size
    }

    pub(super) fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let object = reads.first().map_or("", |read| read.object);
        let view = self.shared();
        let mut cold = Vec::new();
        for read in reads {
            let (index, entry) = self.existing(&view, read.object)?;
            let end = range_end(read.object, read.offset, read.buf.len())?;
            if end > entry.len {
                return Err(StoreError::short(read.object, entry.len, end));
            }
            let at = self.layout.reserved[index].begin(&entry) + read.offset;
            let kept = self.behind.read(at, read.buf);
            if !kept.map_err(|error| StoreError::io(read.object, error))? {
                cold.push((at, &mut *read.buf));
            }
        }
        let read = self.behind.medium().read_at(&mut cold);
        read.map_err(|error| StoreError::io(object, error))
    }

    /// Writes nothing when one of the ranges does not fit.
    pub(super) fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let mut places = Vec::with_capacity(writes.len());
        for write in writes {
            let index = self.placed(write.object)?;
            let end = range_end(write.object, write.offset, write.data.len())?;
            if end > self.layout.reserved[index].capacity {
                return Err(StoreError::Full);
            }
            places.push((index, end));
        }
        let later = writes.iter().map(|write| write.data.len()).sum::<usize>() >= LONG;
        let view = self.shared();
        let within = |&(index, end): &(usize, u64)| view[index].exists && end <= view[index].len;
        if places.iter().all(within) {
            let mut all = writes.iter().zip(&places);
            return all.try_for_each(|(write, (index, _))| {
                let at = self.layout.reserved[*index].begin(&view[*index]) + write.offset;
                self.give(WriteAt { offset: at, ..*write }, later)
            });
        }
        drop(view);
        let mut view = self.exclusive();
        let mut all = writes.iter().zip(&places);
        all.try_for_each(|(write, (index, _))| self.extend(&mut view[*index], *index, write, later))
    }

    /// Writes a range of an object that may be absent or shorter.
    fn extend(
        &self,
        entry: &mut Entry,
        index: usize,
        write: &WriteAt<'_>,
        later: bool,
    ) -> Result<()> {
        let place = &self.layout.reserved[index];
        let fixed = place.kind == ChangeKind::Fixed;
        let begin = place.begin(entry);
        if !fixed && !write.data.is_empty() {
            self.zero(write.object, begin, entry.len, write.offset)?;
        }
        self.give(WriteAt { offset: begin + write.offset, ..*write }, later)?;
        entry.exists = true;
        if fixed {
            entry.len = place.capacity;
        } else if !write.data.is_empty() {
            entry.len = entry.len.max(write.offset + write.data.len() as u64);
        }
        Ok(())
    }

    pub(super) fn sync(&self, objects: &[&str]) -> Result<()> {
        let Some(first) = objects.first() else { return Ok(()) };
        let mut writer = self.writer();
        let mut changes = Vec::new();
        {
            let view = self.shared();
            for object in objects {
                let (index, entry) = self.existing(&view, object)?;
                if entry != writer.entries[index] {
                    changes.push((index, entry));
                }
            }
        }
        if changes.is_empty() && writer.alone {
            self.flush(first)?;
            return self.settle_if_needed(&mut writer);
        }
        if changes.is_empty() {
            // The usual case, in which others need not wait.
            drop(writer);
            return self.flush(first);
        }
        self.flush(first)?;
        self.note(&mut writer, &changes)?;
        self.settle(&mut writer)
    }

    pub(super) fn len(&self, object: &str) -> Result<Option<u64>> {
        let Some(index) = self.layout.find(object) else {
            return check_name(object).map(|()| None);
        };
        let entry = self.shared()[index];
        Ok(entry.exists.then_some(entry.len))
    }

    pub(super) fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        let index = self.placed(object)?;
        let place = &self.layout.reserved[index];
        let mut writer = self.writer();
        let held = self.shared()[index];
        if held.exists && mode == PutMode::IfAbsent {
            return Err(StoreError::Exists { object: object.to_owned() });
        }
        let len = data.len() as u64;
        if len > place.capacity {
            return Err(StoreError::Full);
        }
        if place.kind != ChangeKind::Twice && held.exists {
            return Err(StoreError::refused(object, "it has one place only: delete it first"));
        }
        if place.kind == ChangeKind::Fixed && len != place.capacity {
            return Err(StoreError::refused(object, "its length is fixed"));
        }
        // The second last table names the other place.
        self.settle_if_needed(&mut writer)?;
        let second = place.kind == ChangeKind::Twice && !held.second;
        let new = Entry { exists: true, second, len };
        // To write a part of a block, the system reads the rest, which the disk perhaps cannot.
        let mut padded = Vec::new();
        let data = match place.kind {
            ChangeKind::Twice => {
                padded.extend_from_slice(data);
                padded.resize(data.len().next_multiple_of(BLOCK as usize), 0);
                &padded
            }
            _ => data,
        };
        for (number, piece) in data.chunks(PIECE).enumerate() {
            let at = place.begin(&new) + (number * PIECE) as u64;
            self.give(WriteAt::new(object, at, piece), true)?;
        }
        self.flush(object)?;
        self.change(&mut writer, &[(index, new)])
    }

    pub(super) fn truncate(&self, object: &str, len: u64) -> Result<()> {
        range_end(object, len, 0)?;
        let mut writer = self.writer();
        let (index, held) = self.existing(&self.shared(), object)?;
        let place = &self.layout.reserved[index];
        if len > place.capacity {
            return Err(StoreError::Full);
        }
        if place.kind == ChangeKind::Fixed && len != place.capacity {
            return Err(StoreError::refused(object, "its length is fixed"));
        }
        if len > held.len {
            self.zero(object, place.begin(&held), held.len, len)?;
        }
        // A length becomes durable after the bytes that it covers.
        self.flush(object)?;
        self.change(&mut writer, &[(index, Entry { len, ..held })])
    }

    /// Punches ranges, if `wanted`.
    pub(super) fn discard(&self, ranges: &[(&str, u64, u64)], wanted: bool) -> Result<()> {
        for &(object, offset, len) in ranges {
            let view = self.shared();
            let (index, entry) = self.existing(&view, object)?;
            let begin = self.layout.reserved[index].begin(&entry);
            // Only whole blocks, and never the neighbour's.
            let from = offset.min(entry.len).next_multiple_of(BLOCK);
            let to = offset.saturating_add(len).min(entry.len) / BLOCK * BLOCK;
            if wanted && from < to {
                let (at, len) = (begin + from, to - from);
                let settled = self.behind.settle(at, len);
                let punched = settled.and_then(|()| self.behind.medium().punch(at, len));
                punched.map_err(|error| StoreError::io(object, error))?;
            }
        }
        Ok(())
    }

    /// The free capacity of existing objects that are not fixed, and the full capacity of absent
    /// ones.
    pub(super) fn free_bytes(&self) -> u64 {
        let view = self.shared();
        let places = self.layout.reserved.iter().zip(view.iter());
        places.map(|(place, entry)| place.capacity - entry.len).sum()
    }

    pub(super) fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| check_name(object))?;
        let mut writer = self.writer();
        let mut changes: Vec<Change> = Vec::new();
        {
            let view = self.shared();
            for index in objects.iter().filter_map(|object| self.layout.find(object)) {
                let known = view[index].exists || writer.entries[index].exists;
                if known && changes.iter().all(|change| change.0 != index) {
                    changes.push((index, Entry { exists: false, len: 0, ..view[index] }));
                }
            }
        }
        if changes.is_empty() {
            return self.settle_if_needed(&mut writer);
        }
        self.change(&mut writer, &changes)
    }

    /// All existing objects, sorted.
    pub(super) fn list(&self) -> Vec<(String, u64)> {
        let view = self.shared();
        let places = self.layout.reserved.iter().zip(view.iter());
        let present = places.filter(|(_, entry)| entry.exists);
        let mut found: Vec<_> =
            present.map(|(place, entry)| (place.name.clone(), entry.len)).collect();
        found.sort();
        found
    }

    /// Changes the view and the durable table.
    fn change(&self, writer: &mut Writer, changes: &[Change]) -> Result<()> {
        self.note(writer, changes)?;
        let mut view = self.exclusive();
        changes.iter().for_each(|(index, entry)| view[*index] = *entry);
        drop(view);
        self.settle(writer)
    }

    /// Writes a new table, which is durable once `writer` is settled. An error leaves the table
    /// unchanged.
    fn note(&self, writer: &mut Writer, changes: &[Change]) -> Result<()> {
        self.settle_if_needed(writer)?;
        let mut entries = writer.entries.clone();
        changes.iter().for_each(|(index, entry)| entries[*index] = *entry);
        let number = writer.number + 1;
        self.write_table(number, &entries)?;
        *writer = Writer { number, entries, unsettled: true, found: false, alone: false };
        Ok(())
    }

    fn write_table(&self, number: u64, entries: &[Entry]) -> Result<()> {
        let bytes = table::encode(number, &self.layout, entries);
        // A deferred write is refused now or kept until it is durable: never half.
        self.give(WriteAt::new(TABLE, table::copy(number), &bytes), true)
    }

    fn settle_if_needed(&self, writer: &mut Writer) -> Result<()> {
        if writer.alone {
            // The whole copy is the only one: the same table goes to the other place first.
            self.write_table(writer.number + 1, &writer.entries)?;
            self.settle(writer)?;
            (writer.number, writer.alone, writer.found) = (writer.number + 1, false, false);
        }
        if writer.found {
            self.write_table(writer.number, &writer.entries)?;
            writer.found = false;
        }
        if writer.unsettled { self.settle(writer) } else { Ok(()) }
    }

    fn settle(&self, writer: &mut Writer) -> Result<()> {
        self.flush(TABLE)?;
        writer.unsettled = false;
        Ok(())
    }

    /// Makes all writes to any object durable.
    fn flush(&self, object: &str) -> Result<()> {
        self.behind.sync().map_err(|error| StoreError::io(object, error))
    }

    /// Writes at an offset of the partition.
    fn give(&self, write: WriteAt<'_>, later: bool) -> Result<()> {
        if write.data.is_empty() {
            return Ok(());
        }
        self.behind.write(&write, later).map_err(|error| StoreError::io(write.object, error))
    }

    /// Writes zeros between two offsets in the place that begins at `begin`.
    fn zero(&self, object: &str, begin: u64, from: u64, to: u64) -> Result<()> {
        let zeros = [0; 16 << 10];
        let mut at = from;
        while at < to {
            let len = zeros.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
            self.give(WriteAt::new(object, begin + at, &zeros[..len]), true)?;
            at += len as u64;
        }
        Ok(())
    }

    /// The index of an object with a place.
    fn placed(&self, object: &str) -> Result<usize> {
        self.layout.find(object).map_or_else(
            || {
                check_name(object)?;
                Err(StoreError::refused(object, "no place is reserved for it in this partition"))
            },
            Ok,
        )
    }

    fn existing(&self, view: &[Entry], object: &str) -> Result<(usize, Entry)> {
        let found = self.layout.find(object).map(|index| (index, view[index]));
        found.filter(|found| found.1.exists).ok_or_else(|| {
            // Checks for an invalid name only after a failed lookup, off the fast path.
            check_name(object).err().unwrap_or_else(|| StoreError::missing(object))
        })
    }

    fn shared(&self) -> RwLockReadGuard<'_, Vec<Entry>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Vec<Entry>> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a range, if a file could be that long.
fn range_end(object: &str, offset: u64, len: usize) -> Result<u64> {
    let end = offset.checked_add(len as u64).filter(|end| i64::try_from(*end).is_ok());
    end.ok_or_else(|| StoreError::out_of_range(object))
}
