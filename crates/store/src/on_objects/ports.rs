//! The ports of a store, on parts.

use super::part::{self, Kind};
use super::{Index, LEASE, OnObjects, State};
use crate::ports::{Blobs, Held, Lease, Log, Objects, PutMode, Slots};
use crate::{Capabilities, LeaseKind, ReadAt, Result, StoreError, WriteAt};

impl<O: Objects> Held for OnObjects<O> {
    fn capabilities(&self) -> Capabilities {
        let below = self.below.capabilities();
        let lease = match below.creates_exclusively {
            true => LeaseKind::Stored,
            false => LeaseKind::Granted,
        };
        Capabilities {
            replaces_atomically: true,
            // Two writers give their parts different versions.
            creates_exclusively: false,
            writes_over: true,
            versions: true,
            frees_discarded: false,
            reserves_space: false,
            knows_free_space: false,
            lease,
            ..below
        }
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let state = self.state();
        for read in reads {
            let object =
                state.index.objects.get(read.object).ok_or_else(|| missing(read.object))?;
            let end = self.end(read.object, read.offset, read.buf.len() as u64)?;
            if end > object.len {
                return Err(StoreError::short(read.object, object.len, end));
            }
            self.fill(object, read.offset, read.buf)?;
        }
        Ok(())
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        part::check(object)?;
        Ok(self.state().index.objects.get(object).map(|found| found.len))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        let state = self.state();
        Ok(state.index.objects.iter().map(|(name, object)| (name.clone(), object.len)).collect())
    }
}

impl<O: Objects> Log for OnObjects<O> {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        let index = &mut self.change().index;
        self.write_one(index, object, offset, data)?;
        self.flush(index, object)
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        self.end(object, len, 0)?;
        let index = &mut self.change().index;
        let found = index.objects.get(object).ok_or_else(|| missing(object))?;
        let (kind, data) = match &found.whole {
            // Otherwise its bytes beyond the end would come back when the object grows.
            Some(whole) if whole.bytes > len => {
                let mut data = vec![0; len as usize];
                self.fill(found, 0, &mut data)?;
                (Kind::Whole, data)
            }
            _ => {
                let chunk = len.saturating_sub(1) / self.chunk_bytes;
                let mut data = self.chunk(found, chunk)?;
                data.resize((len - chunk * self.chunk_bytes) as usize, 0);
                (Kind::Chunk { index: chunk, len }, data)
            }
        };
        self.store(index, object, kind, &data)?;
        if let Some(found) = index.objects.get_mut(object) {
            found.dirty.split_off(&len.div_ceil(self.chunk_bytes));
        }
        // It is durable. What is left of older parts goes before the next one.
        let _ = self.bury(index);
        Ok(())
    }
}

impl<O: Objects> Slots for OnObjects<O> {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let index = &mut self.change().index;
        writes.iter().try_for_each(|it| self.write_one(index, it.object, it.offset, it.data))
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        let index = &mut self.change().index;
        match objects.iter().find(|name| !index.objects.contains_key(**name)) {
            Some(name) => Err(missing(name)),
            None => objects.iter().try_for_each(|object| self.flush(index, object)),
        }
    }

    /// Keeps everything: a chunk is replaced as a whole.
    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let state = self.state();
        match ranges.iter().find(|range| !state.index.objects.contains_key(range.0)) {
            Some(range) => Err(missing(range.0)),
            None => Ok(()),
        }
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl<O: Objects> Blobs for OnObjects<O> {
    fn put(&self, object: &str, data: &[u8], mode: PutMode) -> Result<()> {
        part::check(object)?;
        let index = &mut self.change().index;
        if mode == PutMode::IfAbsent && index.objects.contains_key(object) {
            return Err(StoreError::Exists { object: object.to_owned() });
        }
        self.store(index, object, Kind::Whole, data)?;
        let _ = self.bury(index);
        Ok(())
    }

    fn version(&self, object: &str) -> Result<Option<u64>> {
        part::check(object)?;
        Ok(self.state().index.objects.get(object).map(|found| found.version))
    }

    fn delete(&self, objects: &[&str]) -> Result<()> {
        objects.iter().try_for_each(|object| part::check(object))?;
        let index = &mut self.change().index;
        // An object that is not there may be, by a put that seemed to fail.
        self.bury(index)?;
        for object in objects {
            match index.objects.get(*object).map(|found| found.parts().is_empty()) {
                None => continue,
                // It is in memory only.
                Some(true) => drop(index.objects.remove(*object)),
                Some(false) => self.store(index, object, Kind::Gone, &[])?,
            }
            self.bury(index)?;
        }
        Ok(())
    }
}

impl<O: Objects> Lease for OnObjects<O> {
    /// Takes the lease, sees what an earlier writer stored, and deletes what it left.
    fn lock(&self) -> Result<()> {
        let State { index, leased } = &mut *self.change();
        if *leased {
            return Ok(());
        }
        if self.below.capabilities().creates_exclusively {
            self.below.put_new(LEASE, &[]).map_err(|error| match error {
                StoreError::Exists { .. } => StoreError::Busy,
                error => error,
            })?;
            *leased = true;
        }
        if index.objects.values().all(|object| object.dirty.is_empty()) {
            *index = Index::of(&self.below.list("")?, self.chunk_bytes);
        }
        self.bury(index)
    }
}

fn missing(object: &str) -> StoreError {
    part::check(object).err().unwrap_or_else(|| StoreError::missing(object))
}
