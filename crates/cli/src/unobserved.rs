//! A store that is only read: the writes of a volume that is read go to a temporary file.
//!
//! Reading a volume hides reads by writing, and a session leaves the volume in a state that shows
//! no path twice. Here nothing of that is kept: the next session reads the same paths for the same
//! blocks. Use it only where nobody watches.

use crate::args::OpenArgs;
use crate::exit::usage;
use oblivio_store::{
    Capabilities, Held, Hint, Lease, Log, Objects, PutMode, ReadAt, Result, Slots, StoreAnswer,
    StoreCall, StoreError, WriteAt, begin_by_writes,
};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Refuses `--unobserved`, `--history` and `--incomplete` for a command that changes the volume.
pub fn refuse_changes(args: &OpenArgs) -> anyhow::Result<()> {
    if args.history.is_some() {
        let what = "--history looks at a history, and this changes it";
        let hint = "Choose it first: oblivio pick VOLUME NAME. A mount takes it with --read-only.";
        return Err(usage(what, hint));
    }
    if args.incomplete {
        let what = "--incomplete looks at what is there, and this changes it";
        let hint = "Leave it out once all files are there. A mount takes it with --read-only.";
        return Err(usage(what, hint));
    }
    match args.unobserved {
        true => Err(usage(
            "--unobserved reads a volume, and this changes it",
            "Leave it out. A mount or a disk takes it with --read-only.",
        )),
        false => Ok(()),
    }
}

/// Bytes of a page in which writes are kept.
const PAGE: u64 = 4096;

/// The store.
pub struct Unobserved {
    below: Arc<dyn Objects>,
    kept: Mutex<Kept>,
}

struct Kept {
    /// Sealed, as all that a store gets; the file has no name.
    file: File,
    end: u64,
    objects: HashMap<String, Object>,
}

/// An object that was written to.
struct Object {
    /// None when it was deleted.
    len: Option<u64>,
    /// Bytes of the object below that still show.
    below: u64,
    /// The place in the file of each written page.
    pages: BTreeMap<u64, u64>,
}

impl Unobserved {
    /// Over a store that is only read, and not even locked.
    ///
    /// # Errors
    /// Temporary files cannot be made.
    pub fn over(below: Arc<dyn Objects>) -> std::io::Result<Self> {
        let kept = Kept { file: tempfile::tempfile()?, end: 0, objects: HashMap::new() };
        Ok(Self { below, kept: Mutex::new(kept) })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an object.
    fn change(
        &self,
        name: &str,
        work: impl FnOnce(&dyn Objects, &mut Kept, &mut Object) -> std::io::Result<()>,
    ) -> Result<()> {
        let mut kept = self.kept();
        let mut object = match kept.objects.remove(name) {
            Some(object) => object,
            None => {
                let len = self.below.len(name)?;
                Object { len, below: len.unwrap_or(0), pages: BTreeMap::new() }
            }
        };
        let done = work(&*self.below, &mut kept, &mut object);
        kept.objects.insert(name.to_owned(), object);
        done.map_err(|error| StoreError::io(name, error))
    }

    fn write_one(&self, write: &WriteAt<'_>) -> Result<()> {
        let WriteAt { object: name, offset, data, .. } = *write;
        self.change(name, |below, kept, object| {
            let mut at = 0;
            while at < data.len() {
                let here = offset + at as u64;
                let (page, within) = (here / PAGE, here % PAGE);
                let len = (data.len() - at).min((PAGE - within) as usize);
                let place = kept.page(below, name, object, page, len as u64 == PAGE)?;
                kept.file.write_all_at(&data[at..at + len], place + within)?;
                at += len;
            }
            // No bytes extend nothing, as in any store; they only make the object.
            let end = if data.is_empty() { 0 } else { offset + data.len() as u64 };
            object.len = Some(object.len.unwrap_or(0).max(end));
            Ok(())
        })
    }
}

impl Kept {
    /// The place of an object's page in the file. The page gets the object's content there unless
    /// it is overwritten as a whole.
    fn page(
        &mut self,
        below: &dyn Objects,
        name: &str,
        object: &mut Object,
        page: u64,
        whole: bool,
    ) -> std::io::Result<u64> {
        if let Some(place) = object.pages.get(&page) {
            return Ok(*place);
        }
        let place = self.end;
        self.end += PAGE;
        self.file.set_len(self.end)?;
        let from = page * PAGE;
        let shows = object.below.saturating_sub(from).min(PAGE) as usize;
        if !whole && shows > 0 {
            let mut bytes = vec![0; shows];
            let read = below.read(&mut [ReadAt { object: name, offset: from, buf: &mut bytes }]);
            read.map_err(std::io::Error::other)?;
            self.file.write_all_at(&bytes, place)?;
        }
        object.pages.insert(page, place);
        Ok(place)
    }

    /// Reads a range that is within the object.
    fn read(&self, below: &dyn Objects, object: &Object, range: &mut ReadAt<'_>) -> Result<()> {
        let (name, offset, len) = (range.object, range.offset, range.buf.len() as u64);
        let shows = object.below.saturating_sub(offset).min(len) as usize;
        let (shown, zeros) = range.buf.split_at_mut(shows);
        zeros.fill(0);
        if !shown.is_empty() {
            below.read(&mut [ReadAt { object: name, offset, buf: shown }])?;
        }
        let pages = object.pages.range(offset / PAGE..(offset + len).div_ceil(PAGE));
        for (page, place) in pages {
            let from = (page * PAGE).max(offset);
            let to = ((page + 1) * PAGE).min(offset + len);
            let piece = &mut range.buf[(from - offset) as usize..(to - offset) as usize];
            let read = self.file.read_exact_at(piece, place + from % PAGE);
            read.map_err(|error| StoreError::io(name, error))?;
        }
        Ok(())
    }
}

impl Held for Unobserved {
    fn capabilities(&self) -> Capabilities {
        Capabilities::OVER
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let kept = self.kept();
        if !reads.iter().any(|read| kept.objects.contains_key(read.object)) {
            drop(kept);
            return self.below.read(reads);
        }
        for read in reads {
            let Some(object) = kept.objects.get(read.object) else {
                self.below.read(std::slice::from_mut(read))?;
                continue;
            };
            let (name, wanted) = (read.object.to_owned(), read.offset + read.buf.len() as u64);
            match object.len {
                None => return Err(StoreError::Missing { object: name }),
                Some(len) if wanted > len => {
                    return Err(StoreError::Short { object: name, len, wanted });
                }
                Some(_) => kept.read(&*self.below, object, read)?,
            }
        }
        Ok(())
    }

    fn len(&self, name: &str) -> Result<Option<u64>> {
        match self.kept().objects.get(name) {
            Some(object) => Ok(object.len),
            None => self.below.len(name),
        }
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        let kept = self.kept();
        let mut all: BTreeMap<String, u64> = self.below.list()?.into_iter().collect();
        for (name, object) in &kept.objects {
            match object.len {
                Some(len) => all.insert(name.clone(), len),
                None => all.remove(name),
            };
        }
        Ok(all.into_iter().collect())
    }

    fn hint(&self, hint: Hint<'_>) {
        if let Hint::Reads(_) = hint {
            self.below.hint(hint);
        }
    }
}

impl Log for Unobserved {
    fn write_durable(&self, name: &str, offset: u64, data: &[u8]) -> Result<()> {
        self.write_one(&WriteAt::new(name, offset, data))
    }

    fn truncate(&self, name: &str, len: u64) -> Result<()> {
        if self.len(name)?.is_none() {
            return Err(StoreError::Missing { object: name.to_owned() });
        }
        self.change(name, |below, kept, object| {
            // Cut-off bytes must not return when the object grows again.
            if !len.is_multiple_of(PAGE) && len < object.len.unwrap_or(0) {
                let place = kept.page(below, name, object, len / PAGE, false)?;
                let rest = vec![0; (PAGE - len % PAGE) as usize];
                kept.file.write_all_at(&rest, place + len % PAGE)?;
            }
            object.pages.split_off(&len.div_ceil(PAGE));
            object.below = object.below.min(len);
            object.len = Some(len);
            Ok(())
        })
    }
}

impl Slots for Unobserved {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        writes.iter().try_for_each(|write| self.write_one(write))
    }

    fn sync(&self, _objects: &[&str]) -> Result<()> {
        Ok(())
    }

    fn discard(&self, _ranges: &[(&str, u64, u64)]) -> Result<()> {
        Ok(())
    }
}

impl Objects for Unobserved {
    fn put(&self, name: &str, data: &[u8], mode: PutMode) -> Result<()> {
        if mode == PutMode::IfAbsent && self.len(name)?.is_some() {
            return Err(StoreError::Exists { object: name.to_owned() });
        }
        self.delete(&[name])?;
        self.write_one(&WriteAt::new(name, 0, data))
    }

    fn delete(&self, names: &[&str]) -> Result<()> {
        names.iter().try_for_each(|name| {
            self.change(name, |_, _, object| {
                *object = Object { len: None, below: 0, pages: BTreeMap::new() };
                Ok(())
            })
        })
    }

    fn begin(&self, objects: &[(&str, &[u8])]) -> Result<()> {
        begin_by_writes(self, objects)
    }

    fn settle(&self, objects: &[&str]) -> Result<()> {
        self.sync(objects)
    }

    fn answer(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        call.on_store(self)
    }
}

impl Lease for Unobserved {
    /// Others may use it: nothing is written.
    fn lock(&self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{MemoryStore, Store};
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Event {
        Write(usize, u64, usize, u8),
        Truncate(usize, u64),
        Put(usize, usize, u8),
        Delete(usize),
    }

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn event() -> impl Strategy<Value = Event> {
        let (name, at) = (0..NAMES.len(), 0..20_000u64);
        prop_oneof![
            4 => (name.clone(), at.clone(), 0..10_000usize, any::<u8>())
                .prop_map(|(name, at, len, fill)| Event::Write(name, at, len, fill)),
            2 => (name.clone(), at).prop_map(|(name, at)| Event::Truncate(name, at)),
            1 => (name.clone(), 0..9000usize, any::<u8>())
                .prop_map(|(name, len, fill)| Event::Put(name, len, fill)),
            1 => name.prop_map(Event::Delete),
        ]
    }

    fn apply(store: &dyn Store, event: &Event) -> Result<()> {
        match *event {
            Event::Write(name, at, len, fill) => {
                store.write(&[WriteAt::new(NAMES[name], at, &vec![fill; len])])
            }
            Event::Truncate(name, len) => store.truncate(NAMES[name], len),
            Event::Put(name, len, fill) => {
                store.put(NAMES[name], &vec![fill; len], PutMode::Replace)
            }
            Event::Delete(name) => store.delete(&[NAMES[name]]),
        }
    }

    /// All objects with their contents.
    fn content(store: &dyn Store) -> Vec<(String, Vec<u8>)> {
        let objects = store.list().expect("memory");
        let read = |(name, len): (String, u64)| {
            let mut buf = vec![0; len as usize];
            store.read(&mut [ReadAt { object: &name, offset: 0, buf: &mut buf }]).expect("all");
            (name, buf)
        };
        objects.into_iter().map(read).collect()
    }

    proptest! {
        /// It behaves like a store that is written to, and the store below stays as it was.
        #[test]
        fn nothing_is_written_below(
            before in proptest::collection::vec(event(), 0..8),
            after in proptest::collection::vec(event(), 0..12),
            reads in proptest::collection::vec((0..25_000u64, 0..9000usize), 4),
        ) {
            let (below, model) = (Arc::new(MemoryStore::new()), MemoryStore::new());
            for event in &before {
                prop_assert_eq!(apply(&*below, event).is_ok(), apply(&model, event).is_ok());
            }
            let found = content(&*below);
            let store = Unobserved::over(below.clone()).expect("a file");
            for event in &after {
                prop_assert_eq!(apply(&store, event).is_ok(), apply(&model, event).is_ok());
            }
            prop_assert_eq!(content(&store), content(&model));
            for (offset, len) in reads {
                let read = |store: &dyn Store| {
                    let mut buf = vec![0; len];
                    let read = store.read(&mut [ReadAt { object: "a", offset, buf: &mut buf }]);
                    read.is_ok().then_some(buf)
                };
                prop_assert_eq!(read(&store), read(&model));
            }
            prop_assert_eq!(content(&*below), found);
        }
    }
}
