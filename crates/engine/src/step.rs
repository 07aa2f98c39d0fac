//! The one protocol between engines and storage: an engine's reads and writes, as plain data.
//!
//! A *job* (a batch, a flush, a rebuild) lives outside its engine and owns the buffers of its
//! steps. It asks the engine for the next [`Step`], and needs it for that moment only. So one
//! engine serves many jobs in flight, if its kind of work allows them. The steps of a run are
//! exactly the store's view: tests check obliviousness on that list, a crash is the list cut short,
//! and one engine serves any kind of store.

use crate::{Leaf, Result, WorkPart};
use std::sync::Arc;

/// A sealed bucket. A writer may hold on to it; a copy would cost as much as sealing did.
pub type SealedBucket = Arc<Vec<u8>>;

/// A part of an engine's storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Extent {
    /// Where it begins: a byte of a disk; in a tree, the number of a bucket.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

impl Extent {
    /// The first byte after it, on a disk.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// A request to carry out before the job's next step.
#[derive(Debug)]
pub enum Step<'j> {
    /// Fill a buffer.
    Read(Read<'j>),
    /// Store bytes.
    Write(Write<'j>),
    /// No I/O: run [`Job::parts`].
    Work {
        /// Likely reads of the next jobs, for a store that prefetches.
        expected: &'j [Extent],
    },
    /// Nothing is left to do.
    Done,
}

/// A read. It may be empty: everything is in memory then.
#[derive(Debug)]
pub struct Read<'j> {
    /// What to read, ascending.
    pub extents: &'j [Extent],
    /// The buffer, of their total length: one after the other.
    pub into: &'j mut [u8],
    /// The leaves whose paths this read shows; a crash after it repeats them.
    pub shown: &'j [Leaf],
    /// How many of them follow the public schedule; these come last.
    pub scheduled: usize,
}

/// A write.
#[derive(Debug)]
pub struct Write<'j> {
    /// What to write: children before parents, or in the schedule's order.
    pub extents: &'j [Extent],
    /// The bytes.
    pub data: Data<'j>,
}

/// The bytes of a write.
#[derive(Clone, Copy, Debug)]
pub enum Data<'j> {
    /// Of all extents, one after the other.
    Together(&'j [u8]),
    /// Of each extent by itself.
    Apart(&'j [SealedBucket]),
}

/// One extent of a write.
#[derive(Clone, Copy, Debug)]
pub struct WritePiece<'j> {
    /// Its place.
    pub extent: Extent,
    /// Its bytes.
    pub data: &'j [u8],
    /// The same, to hold on to.
    pub shared: Option<&'j SealedBucket>,
}

impl Read<'_> {
    /// Each extent with its part of the buffer.
    pub fn parts(&mut self) -> impl Iterator<Item = (Extent, &mut [u8])> {
        let mut left = &mut *self.into;
        self.extents.iter().map(move |&extent| {
            let (part, rest) = std::mem::take(&mut left).split_at_mut(extent.bytes as usize);
            left = rest;
            (extent, part)
        })
    }
}

impl<'j> Write<'j> {
    /// Each extent with its bytes.
    pub fn parts(&self) -> impl Iterator<Item = WritePiece<'j>> {
        let (data, mut at) = (self.data, 0);
        self.extents.iter().enumerate().map(move |(index, &extent)| {
            let begin = at;
            at += extent.bytes as usize;
            match data {
                Data::Together(bytes) => {
                    WritePiece { extent, data: &bytes[begin..at], shared: None }
                }
                Data::Apart(buckets) => {
                    WritePiece { extent, data: &buckets[index], shared: Some(&buckets[index]) }
                }
            }
        })
    }
}

/// A job on an engine.
pub trait Job {
    /// Its engine.
    type Engine;

    /// The next step. Another call confirms that the previous step was carried out.
    ///
    /// A job that is given up before it is done leaves its engine closed, unless it only reads.
    ///
    /// # Errors
    /// `Tampered` and its kin when a read differs from the last write.
    fn step<'j>(&'j mut self, engine: &mut Self::Engine) -> Result<Step<'j>>;

    /// Work that needs no engine, once the previous step was carried out: at most `count` parts,
    /// which may run in parallel. If the caller skips it, the next step does it.
    fn parts(&mut self, count: usize) -> Vec<WorkPart<'_>> {
        let _ = count;
        Vec::new()
    }
}
