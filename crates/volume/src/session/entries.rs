//! Entries of a session, read one after the other: side by side, and to the first that does not
//! open.

use super::ask::{found, lens, near};
use super::entry::SessionEntry;
use super::history::{BATCH, HistoryReader, tampered};
use super::names::SessionId;
use crate::Result;
use crate::damage::DamagedPlace;
use oblivio_store::ReadAt;
use std::ops::RangeInclusive;

impl HistoryReader<'_> {
    /// Entries of this computer's last session that its disk has, if that has all of them.
    pub(super) fn cached(
        &mut self,
        id: SessionId,
        indices: RangeInclusive<u64>,
    ) -> Vec<Option<SessionEntry>> {
        let Some(cache) = self.cache.clone() else { return Vec::new() };
        let found = indices.take(BATCH as usize).map(|index| {
            let bytes = near(&*cache, &id.entry(index))?;
            SessionEntry::open(self.vault, id, index, bytes)
        });
        let found: Option<Vec<SessionEntry>> = found.collect();
        found.unwrap_or_default().into_iter().map(Some).collect()
    }

    /// A session's entries of these numbers, to the first that does not open. Those up to `known`
    /// were acknowledged, and so were those of which a later one says it.
    pub(super) fn entries(
        &mut self,
        id: SessionId,
        numbers: RangeInclusive<u64>,
        known: u64,
    ) -> Result<Vec<SessionEntry>> {
        self.chain(id, (numbers, known), Vec::new())
    }

    /// As [`Self::entries`], where the first of them are read already.
    pub(super) fn chain(
        &mut self,
        id: SessionId,
        (numbers, known): (RangeInclusive<u64>, u64),
        mut first: Vec<Option<SessionEntry>>,
    ) -> Result<Vec<SessionEntry>> {
        let (mut next, end) = numbers.into_inner();
        let mut entries: Vec<SessionEntry> = Vec::new();
        while next <= end {
            let mut batch = match std::mem::take(&mut first) {
                first if first.is_empty() => self.batch(id, next, BATCH.min(end - next + 1))?,
                first => first,
            };
            for at in 0..batch.len() {
                let entry = match batch[at].take() {
                    Some(entry) => entry,
                    None => {
                        // Later ones may be there: they were sent side by side.
                        let settled = batch[at..].iter().flatten().map(|later| later.settled);
                        let said = settled.max().is_some_and(|settled| settled >= next);
                        let copy = if said || next <= known { self.copy(id, next)? } else { None };
                        match copy {
                            Some(copy) => copy,
                            None if said && !self.accept_gaps => {
                                let why = "an entry does not open that was acknowledged";
                                return Err(tampered(why));
                            }
                            None => return Ok(entries),
                        }
                    }
                };
                if entries.last().is_some_and(|last| last.mark.tag != entry.before) {
                    return Err(tampered("an entry follows another one than that before it"));
                }
                entries.push(entry);
                next += 1;
            }
        }
        Ok(entries)
    }

    /// The second copy of an entry that does not open, if it has one.
    pub(super) fn copy(&mut self, id: SessionId, index: u64) -> Result<Option<SessionEntry>> {
        let mut copies = self.objects(&[id.copy(index)])?;
        let copy = copies.pop().flatten();
        let entry = copy.and_then(|bytes| SessionEntry::open(self.vault, id, index, bytes));
        if entry.is_some() {
            self.note(id.entry(index), "it does not open; its second copy does");
        }
        Ok(entry)
    }

    pub(super) fn note(&mut self, object: String, why: &str) {
        self.damaged.push(DamagedPlace { object, bytes: 0..0, why: why.into() });
    }

    /// Entries side by side, each if it opens.
    pub(super) fn batch(
        &mut self,
        id: SessionId,
        from: u64,
        count: u64,
    ) -> Result<Vec<Option<SessionEntry>>> {
        let names: Vec<String> = (from..from + count).map(|index| id.entry(index)).collect();
        let objects = self.objects(&names)?;
        Ok(self.opened(id, from, objects))
    }

    /// Each of these entries from a number on, if it opens.
    pub(super) fn opened(
        &mut self,
        id: SessionId,
        from: u64,
        objects: Vec<Option<Vec<u8>>>,
    ) -> Vec<Option<SessionEntry>> {
        let open = |(index, bytes)| SessionEntry::open(self.vault, id, index, bytes?);
        (from..).zip(objects).map(open).collect()
    }

    /// Objects side by side that are there and have the length of entries.
    pub(super) fn objects(&self, names: &[String]) -> Result<Vec<Option<Vec<u8>>>> {
        let lens = lens(self.store, names)?.into_iter();
        self.read_objects(
            names,
            &lens.map(|len| len.filter(|&len| SessionEntry::has_length(len))).collect::<Vec<_>>(),
        )
    }

    /// Objects side by side, by their lengths.
    pub(super) fn read_objects(
        &self,
        names: &[String],
        lens: &[Option<u64>],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut buffers: Vec<Vec<u8>> =
            lens.iter().map(|len| vec![0; len.unwrap_or(0) as usize]).collect();
        let mut reads: Vec<ReadAt<'_>> = names
            .iter()
            .zip(&mut buffers)
            .filter(|(_, buf)| !buf.is_empty())
            .map(|(object, buf)| ReadAt { object, offset: 0, buf })
            .collect();
        // One that was deleted since fails them all: then each by itself.
        let whole = found(self.store.read(&mut reads))?;
        let mut objects = Vec::new();
        for (object, mut buf) in names.iter().zip(buffers) {
            let mut there = whole && !buf.is_empty();
            if !whole && !buf.is_empty() {
                let read = ReadAt { object, offset: 0, buf: &mut buf };
                there = found(self.store.read(&mut [read]))?;
            }
            objects.push(there.then_some(buf));
        }
        Ok(objects)
    }
}
