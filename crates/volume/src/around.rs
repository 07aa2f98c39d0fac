//! Reads of a disk that has bad sectors: around what cannot be read.
//!
//! A layer below may repeat what fails, until an outage is over. A sector that cannot be read is no
//! outage: there it would repeat for ever. So a read that damage may stop is done without repeats
//! first.

use crate::Result;
use crate::damage::may_be_damage;
use oblivio_store::{Guard, Hint, ReadAt, Slots, StoreError};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the layer below may repeat reads that fail.
#[derive(Clone, Default)]
pub struct Repeats(Arc<AtomicBool>);

impl Repeats {
    /// Tells the store to ask before it repeats a read.
    pub fn tell(&self, store: &dyn Slots) {
        let forbidden = Arc::clone(&self.0);
        store.hint(Hint::BeforeRepeat(&Guard::new(move |_| {
            match forbidden.load(Ordering::Relaxed) {
                true => Err(StoreError::refused("", "the disk cannot read it")),
                false => Ok(()),
            }
        })));
    }

    /// Does `work`, in which each read fails at most once.
    pub fn forbidden<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.store(true, Ordering::Relaxed);
        let done = work();
        self.0.store(false, Ordering::Relaxed);
        done
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
pub fn read_around(
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
