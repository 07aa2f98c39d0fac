//! Reads of a disk that has bad sectors: around what cannot be read.
//!
//! A layer below may repeat what fails, until an outage is over. A sector that cannot be read is no
//! outage: there it would repeat for ever. So a read that damage may stop is done without repeats
//! first.

use crate::damage::may_be_damage;
use crate::{Error, Result};
use oblivio_store::{Guard, Hint, ReadAt, Slots, StoreError};
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Whether the layer below may repeat reads that fail: not those of these threads. Others may wait
/// for the end of an outage meanwhile.
#[derive(Clone, Default)]
pub struct Repeats(Arc<Mutex<Vec<ThreadId>>>);

impl Repeats {
    /// Tells the store to ask before it repeats a read.
    pub fn tell(&self, store: &dyn Slots) {
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
        let this = thread::current().id();
        self.forbidden_to().push(this);
        let done = work();
        let mut forbidden = self.forbidden_to();
        if let Some(at) = forbidden.iter().position(|thread| *thread == this) {
            forbidden.swap_remove(at);
        }
        done
    }

    /// Does `work`, which reads what has a second copy: a place that cannot be read is no outage,
    /// unless none can.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn at_first<T>(&self, mut work: impl FnMut() -> Result<T>) -> Result<T> {
        match self.forbidden(&mut work) {
            Err(Error::Store(_)) => work(),
            done => done,
        }
    }

    fn forbidden_to(&self) -> MutexGuard<'_, Vec<ThreadId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads, around what cannot be read: see [`read_around`]. If it is an outage, it is outlasted.
///
/// # Errors
/// Those of the store.
pub fn read(
    store: &dyn Slots,
    reads: &mut [ReadAt<'_>],
    (repeats, piece): (&Repeats, usize),
    other: impl Fn() -> bool,
) -> Result<()> {
    match repeats.forbidden(|| store.read(reads)) {
        Err(error) if may_be_damage(&error) => {
            match read_around(store, reads, (repeats, piece), other)? {
                true => Ok(()),
                false => Ok(store.read(reads)?),
            }
        }
        read => Ok(read?),
    }
}

/// How often a place must fail, beside others that are read, to count as lost.
const TRIES: usize = 3;

/// Reads again, in pieces of at most `piece` bytes, what a read of all of it could not. What is
/// lost gets zeros, which open under no seal. `other` reads another place: what fails between two
/// of its successes is no outage.
///
/// # Errors
/// Those of the store that no place can be blamed for. False if it is an outage.
fn read_around(
    store: &dyn Slots,
    reads: &mut [ReadAt<'_>],
    (repeats, piece): (&Repeats, usize),
    other: impl Fn() -> bool,
) -> Result<bool> {
    for read in reads {
        let mut at = read.offset;
        for buf in read.buf.chunks_mut(piece) {
            let bytes = buf.len() as u64;
            let mut part = ReadAt { object: read.object, offset: at, buf };
            if !read_piece(store, &mut part, repeats, &other)? {
                return Ok(false);
            }
            at += bytes;
        }
    }
    Ok(true)
}

/// Whether a store answered a read: also by saying that an object ends before.
pub fn answers(read: &std::result::Result<(), StoreError>) -> bool {
    matches!(read, Ok(()) | Err(StoreError::Short { .. }))
}

fn read_piece(
    store: &dyn Slots,
    part: &mut ReadAt<'_>,
    repeats: &Repeats,
    other: &impl Fn() -> bool,
) -> Result<bool> {
    for _ in 0..TRIES {
        match repeats.forbidden(|| store.read(slice::from_mut(part))) {
            Ok(()) => return Ok(true),
            // The object itself says so.
            Err(StoreError::Short { .. }) => break,
            Err(error) if !may_be_damage(&error) => return Err(error.into()),
            Err(_) if !repeats.forbidden(other) => return Ok(false),
            Err(_) => {}
        }
    }
    part.buf.fill(0);
    Ok(true)
}
