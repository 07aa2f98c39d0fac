//! Reads of a disk that has bad sectors: around what cannot be read.
//!
//! A layer below may repeat what fails, until an outage is over. A sector that cannot be read is no
//! outage: there it would repeat for ever. So a read that damage may stop is done without repeats
//! first.

use crate::damage::{DamagedPlace, may_be_damage};
use crate::header::HEADER_OBJECTS;
use crate::{Error, Result};
use oblivio_store::{
    Guard, Held, Hint, Layer, Objects, ReadAt, Slots, StoreAnswer, StoreCall, StoreError,
};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Whether the layer below may repeat reads that fail: not those of these threads. Others may wait
/// for the end of an outage meanwhile.
#[derive(Clone, Default)]
pub struct Repeats(Arc<Mutex<Vec<ThreadId>>>);

impl Repeats {
    /// Tells the store to ask before it repeats a read.
    pub fn tell(&self, store: &dyn Held) {
        let repeats = self.clone();
        store.hint(Hint::BeforeRepeat(&Guard::new(move |_| {
            match repeats.forbidden_to().contains(&thread::current().id()) {
                true => Err(StoreError::refused("", "the disk cannot read it")),
                false => Ok(()),
            }
        })));
    }

    /// Does `work`, in which each read of this thread fails at most once.
    pub fn forbidden<T>(&self, work: impl FnOnce() -> T) -> T {
        let _until_the_end = Forbidden::begin(self);
        work()
    }

    /// Does `work`, which reads what has a second copy: a place that cannot be read is no outage.
    /// If none can, `other` reads another place: where that fails too, it is one, and is outlasted.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn at_first<T>(
        &self,
        other: impl Fn() -> bool,
        mut work: impl FnMut() -> Result<T>,
    ) -> Result<T> {
        match self.forbidden(&mut work) {
            Err(Error::Store(error)) if !may_be_damage(&error) || !self.forbidden(other) => work(),
            done => done,
        }
    }

    /// The same for an inspection, which gives damaged places: `object` is one if none of its
    /// copies can be read.
    ///
    /// # Errors
    /// Those of `work` that are not damage.
    pub fn inspect(
        &self,
        object: &str,
        other: impl Fn() -> bool,
        work: impl FnMut() -> Result<Vec<DamagedPlace>>,
    ) -> Result<Vec<DamagedPlace>> {
        match self.at_first(other, work) {
            Err(Error::Store(error)) if may_be_damage(&error) => {
                let (object, why) = (object.to_owned(), error.to_string());
                Ok(vec![DamagedPlace { object, bytes: 0..0, why }])
            }
            found => found,
        }
    }

    fn forbidden_to(&self) -> MutexGuard<'_, Vec<ThreadId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Repeats are forbidden to this thread, also if its work panics.
struct Forbidden<'a> {
    repeats: &'a Repeats,
    thread: ThreadId,
}

impl<'a> Forbidden<'a> {
    fn begin(repeats: &'a Repeats) -> Self {
        let thread = thread::current().id();
        repeats.forbidden_to().push(thread);
        Self { repeats, thread }
    }
}

impl Drop for Forbidden<'_> {
    fn drop(&mut self) {
        let mut forbidden = self.repeats.forbidden_to();
        if let Some(at) = forbidden.iter().position(|thread| *thread == self.thread) {
            forbidden.swap_remove(at);
        }
    }
}

/// A piece that is lost: the number of its read, and where it begins in the object.
pub type LostPiece = (usize, u64);

/// A store of files each of which may be had elsewhere: one that cannot be read while others can is
/// no outage.
pub struct AnyFileLost {
    below: Arc<dyn Objects>,
    repeats: Repeats,
}

impl AnyFileLost {
    /// Over this store. The layer below it follows these repeats.
    pub fn new(below: Arc<dyn Objects>, repeats: Repeats) -> Self {
        repeats.tell(&*below);
        Self { below, repeats }
    }
}

impl Layer for AnyFileLost {
    type Below = dyn Objects;

    fn below(&self) -> &(dyn Objects + 'static) {
        &*self.below
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> std::result::Result<StoreAnswer, StoreError> {
        if !matches!(call, StoreCall::Read(_)) {
            return call.on(&*self.below);
        }
        let other = || reads_any(&*self.below, &HEADER_OBJECTS);
        let read = self.repeats.at_first(other, || Ok(call.on(&*self.below)?));
        read.map_err(|error| match error {
            Error::Store(error) => error,
            other => StoreError::io("", std::io::Error::other(other.to_string())),
        })
    }
}

/// Reads, around what cannot be read: see [`read_around`]. If it is an outage, it is outlasted.
/// Gives what is lost.
///
/// # Errors
/// Those of the store.
pub fn read(
    store: &dyn Slots,
    reads: &mut [ReadAt<'_>],
    (repeats, piece): (&Repeats, usize),
    other: impl Fn() -> bool,
) -> Result<Vec<LostPiece>> {
    match repeats.forbidden(|| store.read(reads)) {
        Err(error) if may_be_damage(&error) => {
            if let Some(lost) = read_around(store, reads, (repeats, piece), other)? {
                return Ok(lost);
            }
            store.read(reads)?;
        }
        read => read?,
    }
    Ok(Vec::new())
}

/// How often a place must fail, beside others that are read, to count as lost.
const TRIES: usize = 3;

/// Reads again, in pieces of at most `piece` bytes, what a read of all of it could not. What is
/// lost gets zeros, which open under no seal. `other` reads another place: what fails between two
/// of its successes is no outage.
///
/// # Errors
/// Those of the store that no place can be blamed for. `None` if it is an outage.
fn read_around(
    store: &dyn Slots,
    reads: &mut [ReadAt<'_>],
    (repeats, piece): (&Repeats, usize),
    other: impl Fn() -> bool,
) -> Result<Option<Vec<LostPiece>>> {
    let mut lost = Vec::new();
    for (number, read) in reads.iter_mut().enumerate() {
        let mut at = read.offset;
        for buf in read.buf.chunks_mut(piece) {
            let bytes = buf.len() as u64;
            let mut part = ReadAt { object: read.object, offset: at, buf };
            let once = || repeats.forbidden(|| store.read(slice::from_mut(&mut part)));
            match read_place(once, || repeats.forbidden(&other)) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    part.buf.fill(0);
                    lost.push((number, at));
                }
                Err(error) if may_be_damage(&error) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
            at += bytes;
        }
    }
    Ok(Some(lost))
}

/// Whether a store reads the beginning of any of these objects.
pub fn reads_any(store: &dyn Held, objects: &[&str]) -> bool {
    let mut sector = [0; 512];
    let mut reads =
        |object| answers(&store.read(&mut [ReadAt { object, offset: 0, buf: &mut sector }]));
    objects.iter().any(|object| reads(object))
}

/// Whether a store answered a read: also by saying that an object ends before.
pub fn answers(read: &std::result::Result<(), StoreError>) -> bool {
    matches!(read, Ok(()) | Err(StoreError::Short { .. }))
}

/// Reads a place, some times if it fails; gives what the store said if the place is damaged.
/// `other` reads another place, as in [`read_around`].
///
/// # Errors
/// Those of the store that the place cannot be blamed for: an outage is one.
pub fn read_place(
    mut read: impl FnMut() -> std::result::Result<(), StoreError>,
    other: impl Fn() -> bool,
) -> std::result::Result<Option<StoreError>, StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match read() {
            Ok(()) => return Ok(None),
            // The object itself says so.
            Err(error @ StoreError::Short { .. }) => return Ok(Some(error)),
            Err(error) if !may_be_damage(&error) || !other() => return Err(error),
            Err(error) if tries == TRIES => return Ok(Some(error)),
            Err(_) => {}
        }
    }
}
