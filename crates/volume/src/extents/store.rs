//! A store over two: what stands in the folder and never changes, and beside it, on this computer,
//! what changed since the last epoch.
//!
//! An extent is copied beside the folder as a whole before its first change, and then changed
//! there, in place. So a write that was synced is as durable as in a store on this computer alone.

use super::entry::HeldExtent as File;
use super::names::working;
use super::parity::recovered;
use super::shape::{ExtentLayout, ExtentPiece};
use oblivio_crypto::digest;
use oblivio_store::{
    Capabilities, Held, Hint, Log, Objects, PutMode, ReadAt, Result, Slots, Store, StoreError,
    WriteAt,
};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// Where the files of epochs are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochSource {
    /// Beside the folder, where each has a second name.
    Beside,
    /// In the folder itself.
    Folder,
}

/// What the volume now consists of.
#[derive(Clone, Debug)]
struct Current {
    table: Vec<Option<File>>,
    /// Extents that changed since the epoch of the table.
    changed: BTreeSet<u64>,
    overlay: u64,
}

/// The store.
pub struct ExtentStore {
    folder: Arc<dyn Objects>,
    beside: Arc<dyn Store>,
    source: EpochSource,
    shape: ExtentLayout,
    current: RwLock<Current>,
    /// Changed extents with writes that are not durable yet.
    unsynced: Mutex<BTreeSet<u64>>,
    /// Extents whose files are missing or damaged.
    lost: BTreeSet<u64>,
}

/// What is read instead of the bytes of a lost extent: no seal opens over them, and unlike zeros
/// they are not what was never written.
const LOST: u8 = 0xFF;

/// A part of a read or a write: whether it is beside the folder, the object there, the place.
struct Place {
    beside: bool,
    object: String,
    offset: u64,
}

impl ExtentStore {
    /// Of these files, with what changed since.
    pub fn new(
        (folder, beside): (Arc<dyn Objects>, Arc<dyn Store>),
        source: EpochSource,
        shape: ExtentLayout,
        table: Vec<Option<File>>,
        (overlay, changed): (u64, BTreeSet<u64>),
    ) -> Self {
        // A killed process may have left writes that no disk has yet.
        let unsynced = Mutex::new(changed.clone());
        let current = RwLock::new(Current { table, changed, overlay });
        Self { folder, beside, source, shape, current, unsynced, lost: BTreeSet::new() }
    }

    /// The same without these extents: what is in them reads as damage.
    #[must_use]
    pub fn without(self, lost: BTreeSet<u64>) -> Self {
        Self { lost, ..self }
    }

    /// The files of an object that are lost.
    pub fn all_lost_in(&self, object: &str) -> Vec<String> {
        self.lost_in(object, 0, self.shape.len(object).unwrap_or(0) as usize)
    }

    /// The files that have a part of a range and are lost.
    pub fn lost_in(&self, object: &str, offset: u64, len: usize) -> Vec<String> {
        let (current, pieces) = (self.current(), self.shape.pieces(object, offset, len));
        let lost = pieces.into_iter().flatten().filter(|it| self.lost.contains(&it.extent));
        let file = |it: ExtentPiece| current.table.get(it.extent as usize).copied().flatten();
        lost.filter_map(|it| file(it).map(|(id, _)| id.extent(it.extent))).collect()
    }

    /// What is cut where.
    pub fn shape(&self) -> &ExtentLayout {
        &self.shape
    }

    /// The extents that changed, in order.
    pub fn changed(&self) -> Vec<u64> {
        self.current().changed.iter().copied().collect()
    }

    /// The bytes of a changed extent.
    ///
    /// # Errors
    /// Those of the store beside the folder.
    pub fn bytes_of(&self, extent: u64) -> Result<Vec<u8>> {
        let object = working(self.current().overlay, extent);
        let mut buf = vec![0; self.shape.bytes_of(extent) as usize];
        self.beside.read(&mut [ReadAt { object: &object, offset: 0, buf: &mut buf }])?;
        Ok(buf)
    }

    /// Goes over to another epoch, with nothing changed since.
    pub fn go_over(&self, table: Vec<Option<File>>, overlay: u64) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        *current = Current { table, changed: BTreeSet::new(), overlay };
        self.unsynced().clear();
    }

    fn current(&self) -> RwLockReadGuard<'_, Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsynced(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pieces of a range, which the object must have.
    fn pieces(&self, object: &str, offset: u64, len: usize) -> Result<Vec<ExtentPiece>> {
        self.shape.pieces(object, offset, len).ok_or_else(|| match self.shape.len(object) {
            Some(has) => {
                let wanted = offset.saturating_add(len as u64);
                StoreError::Short { object: object.to_owned(), len: has, wanted }
            }
            None => StoreError::Missing { object: object.to_owned() },
        })
    }

    /// Whether a piece is lost: what changed since is not.
    fn is_lost(&self, current: &Current, piece: ExtentPiece) -> bool {
        self.lost.contains(&piece.extent) && !current.changed.contains(&piece.extent)
    }

    /// Where a piece is; `None` if it was never written.
    fn place(&self, current: &Current, piece: ExtentPiece) -> Option<Place> {
        let ExtentPiece { extent, offset, .. } = piece;
        if current.changed.contains(&extent) {
            let object = working(current.overlay, extent);
            return Some(Place { beside: true, object, offset });
        }
        let (id, _) = current.table.get(extent as usize).copied().flatten()?;
        let beside = self.source == EpochSource::Beside;
        Some(Place { beside, object: id.extent(extent), offset })
    }

    /// Makes extents ready to be changed.
    fn open_up(&self, extents: impl Iterator<Item = u64>) -> Result<()> {
        for extent in extents {
            let current = self.current();
            if current.changed.contains(&extent) {
                continue;
            }
            let object = working(current.overlay, extent);
            let file = current.table.get(extent as usize).copied().flatten();
            drop(current);
            self.beside.put(&object, &self.before_change(extent, file)?, PutMode::Replace)?;
            let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
            current.changed.insert(extent);
        }
        Ok(())
    }

    /// The bytes of an extent before its first change. If the copy that is usually read is damaged,
    /// they are those of the other one, or are made again from all other files. If nothing has
    /// them, what is not damaged in it has seals of its own.
    fn before_change(&self, extent: u64, file: Option<File>) -> Result<Vec<u8>> {
        let len = self.shape.bytes_of(extent) as usize;
        let Some((id, expected)) = file else { return Ok(vec![0; len]) };
        if self.lost.contains(&extent) {
            return Ok(vec![LOST; len]);
        }
        let object = id.extent(extent);
        let found = match self.source {
            EpochSource::Beside => whole(&self.beside, &object, len),
            EpochSource::Folder => whole(&self.folder, &object, len),
        };
        if found.as_ref().is_ok_and(|bytes| digest(bytes) == expected) {
            return found;
        }
        match self.right(extent, (id, expected)).or_else(|| self.made_again(extent)) {
            Some(right) => Ok(right),
            None => found,
        }
    }

    /// The bytes of a file of the table, from where they are right.
    fn right(&self, file: u64, (id, expected): File) -> Option<Vec<u8>> {
        let (object, len) = (id.extent(file), self.shape.bytes_of(file) as usize);
        let stores: [&dyn Held; 2] = [&self.beside, &self.folder];
        let mut found = stores.into_iter().filter_map(|store| whole(store, &object, len).ok());
        found.find(|bytes| digest(bytes) == expected)
    }

    /// The bytes of an extent from all others of its group, if those are right.
    fn made_again(&self, extent: u64) -> Option<Vec<u8>> {
        let table = self.current().table.clone();
        let read = &mut |file, held| Ok(self.right(file, held));
        recovered(&self.shape, &table, extent, read).ok().flatten()
    }

    /// The pieces of a write, in extents that are ready for it.
    fn ready(&self, write: &WriteAt<'_>) -> Result<Vec<(String, ExtentPiece)>> {
        let pieces = self.pieces(write.object, write.offset, write.data.len())?;
        self.open_up(pieces.iter().map(|piece| piece.extent))?;
        let overlay = self.current().overlay;
        let named = |piece: ExtentPiece| (working(overlay, piece.extent), piece);
        Ok(pieces.into_iter().map(named).collect())
    }

    /// The changed extents of an object with writes that are not durable.
    fn to_sync(&self, object: &str) -> Vec<u64> {
        self.unsynced().range(self.shape.of(object)).copied().collect()
    }
}

fn whole(store: &dyn Held, object: &str, len: usize) -> Result<Vec<u8>> {
    let mut buf = vec![0; len];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut buf }])?;
    Ok(buf)
}

/// Reads of parts, and the buffers that they fill.
type Parts<'b> = Vec<(Place, &'b mut [u8])>;

fn read_all(store: &dyn Held, parts: &mut Parts<'_>) -> Result<()> {
    let reads = parts.iter_mut();
    let mut reads: Vec<ReadAt<'_>> = reads
        .map(|(place, buf)| ReadAt { object: &place.object, offset: place.offset, buf })
        .collect();
    if reads.is_empty() { Ok(()) } else { store.read(&mut reads) }
}

fn refused(object: &str, why: &'static str) -> StoreError {
    StoreError::io(object, io::Error::new(io::ErrorKind::Unsupported, why))
}

impl Held for ExtentStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::OVER
    }

    fn read(&self, reads: &mut [ReadAt<'_>]) -> Result<()> {
        let current = self.current();
        let (mut beside, mut folder): (Parts<'_>, Parts<'_>) = (Vec::new(), Vec::new());
        for ReadAt { object, offset, buf } in reads {
            if self.shape.is_own(object) {
                if self.beside.len(object)?.is_some() {
                    self.beside.read(&mut [ReadAt { object, offset: *offset, buf }])?;
                } else {
                    buf.fill(0);
                }
                continue;
            }
            let mut rest: &mut [u8] = buf;
            for piece in self.pieces(object, *offset, rest.len())? {
                let (part, after) = rest.split_at_mut(piece.to - piece.from);
                rest = after;
                match self.place(&current, piece) {
                    _ if self.is_lost(&current, piece) => part.fill(LOST),
                    Some(place) if place.beside => beside.push((place, part)),
                    Some(place) => folder.push((place, part)),
                    None => part.fill(0),
                }
            }
        }
        read_all(&*self.beside, &mut beside)?;
        read_all(&*self.folder, &mut folder)
    }

    fn len(&self, object: &str) -> Result<Option<u64>> {
        Ok(self.shape.len(object))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        Ok(self.shape.objects())
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        let (beside, folder) = (self.beside.free_bytes()?, self.folder.free_bytes()?);
        Ok(match (beside, folder) {
            (Some(beside), Some(folder)) => Some(beside.min(folder)),
            (one, other) => one.or(other),
        })
    }

    fn hint(&self, hint: Hint<'_>) {
        match hint {
            Hint::Keep(bytes) => self.beside.hint(Hint::Keep(bytes)),
            Hint::RoundUp { .. } | Hint::BeforeRepeat(_) => {}
            Hint::Reads(ranges) => self.expect(ranges),
        }
    }
}

impl Log for ExtentStore {
    fn write_durable(&self, object: &str, offset: u64, data: &[u8]) -> Result<()> {
        let write = WriteAt::new(object, offset, data);
        if !self.shape.is_own(object)
            && let [(name, piece)] = &self.ready(&write)?[..]
            && self.to_sync(object).is_empty()
        {
            return self.beside.write_durable(name, piece.offset, data);
        }
        self.write(&[write])?;
        self.sync(&[object])
    }

    fn truncate(&self, object: &str, len: u64) -> Result<()> {
        match self.shape.len(object) {
            Some(has) if has == len => Ok(()),
            Some(_) => Err(refused(object, "its length is fixed")),
            None => Err(StoreError::Missing { object: object.to_owned() }),
        }
    }
}

impl Slots for ExtentStore {
    fn write(&self, writes: &[WriteAt<'_>]) -> Result<()> {
        let mut parts: Vec<(String, u64, &[u8])> = Vec::with_capacity(writes.len());
        for write in writes {
            if self.shape.is_own(write.object) {
                self.beside.write(&[*write])?;
                continue;
            }
            for (name, piece) in self.ready(write)? {
                self.unsynced().insert(piece.extent);
                parts.push((name, piece.offset, &write.data[piece.from..piece.to]));
            }
        }
        let writes: Vec<WriteAt<'_>> =
            parts.iter().map(|(name, offset, data)| WriteAt::new(name, *offset, data)).collect();
        if writes.is_empty() { Ok(()) } else { self.beside.write(&writes) }
    }

    fn sync(&self, objects: &[&str]) -> Result<()> {
        let mut names = Vec::new();
        let mut extents = Vec::new();
        for object in objects {
            if self.shape.is_own(object) {
                if self.beside.len(object)?.is_some() {
                    names.push((*object).to_owned());
                }
                continue;
            }
            extents.extend(self.to_sync(object));
        }
        let overlay = self.current().overlay;
        names.extend(extents.iter().map(|extent| working(overlay, *extent)));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if !names.is_empty() {
            self.beside.sync(&names)?;
        }
        let mut unsynced = self.unsynced();
        unsynced.retain(|extent| !extents.contains(extent));
        Ok(())
    }

    fn allocate(&self, object: &str, len: u64) -> Result<()> {
        if self.shape.is_own(object) {
            return self.beside.allocate(object, len);
        }
        // What was never written reads as zeros, and takes no space.
        self.truncate(object, len)
    }

    /// The bytes stay: an extent is stored as a whole anyway.
    fn discard(&self, ranges: &[(&str, u64, u64)]) -> Result<()> {
        let known = |&(object, _, _): &(&str, u64, u64)| self.shape.len(object).is_some();
        match ranges.iter().find(|range| !known(range)) {
            Some((object, _, _)) => Err(StoreError::Missing { object: (*object).to_owned() }),
            None => Ok(()),
        }
    }
}

impl ExtentStore {
    /// Announces reads to the stores where they will be.
    fn expect(&self, ranges: &[(&str, u64, u64)]) {
        let current = self.current();
        let mut places = Vec::new();
        for &(object, offset, len) in ranges {
            let pieces = self.shape.pieces(object, offset, len as usize).unwrap_or_default();
            for piece in pieces.into_iter().filter(|piece| !self.is_lost(&current, *piece)) {
                let bytes = (piece.to - piece.from) as u64;
                places.extend(self.place(&current, piece).map(|place| (place, bytes)));
            }
        }
        let stores: [(bool, &dyn Held); 2] = [(true, &self.beside), (false, &self.folder)];
        for (beside, store) in stores {
            let here = places.iter().filter(|(place, _)| place.beside == beside);
            let here: Vec<_> =
                here.map(|(place, bytes)| (place.object.as_str(), place.offset, *bytes)).collect();
            if !here.is_empty() {
                store.hint(Hint::Reads(&here));
            }
        }
    }
}
