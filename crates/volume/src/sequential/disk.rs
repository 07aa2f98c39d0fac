//! The engine's steps on the object that is its disk.

use super::DISK_OBJECT;
use super::lanes::LanePlaces;
use super::reads::DiskReads;
use crate::{Error, Result};
use oblivio_engine::{Carrier, Extent, Read, WorkPart, Write};
use oblivio_store::{Hint, ReadAt, Slots, WriteAt};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The disk in its store, and threads to open and seal blocks with.
pub(super) struct Disk<'a> {
    store: &'a dyn Slots,
    reads: &'a DiskReads,
    hands: usize,
    /// Where it is, of a lane's engine.
    lane: Option<&'a LanePlaces>,
    /// What goes to the store with the engine's next write.
    beside: Vec<WriteAt<'a>>,
}

impl<'a> Disk<'a> {
    /// The disk of the volume, or of a lane, with this many threads.
    pub fn new(
        store: &'a dyn Slots,
        reads: &'a DiskReads,
        lane: Option<&'a LanePlaces>,
        hands: usize,
    ) -> Self {
        Self { store, reads, hands, lane, beside: Vec::new() }
    }

    /// The same; these writes go to the store in one call with the engine's next one.
    pub fn with(self, beside: Vec<WriteAt<'a>>) -> Self {
        Self { beside, ..self }
    }
}

impl Carrier for Disk<'_> {
    type Error = Error;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        let (object, mut reads) = (DISK_OBJECT, Vec::with_capacity(read.extents.len()));
        for (extent, buf) in read.parts() {
            match self.lane {
                Some(lane) => reads.extend(lane.reads(extent, buf)),
                None => reads.push(ReadAt { object, offset: extent.offset, buf }),
            }
        }
        self.reads.read(self.store, &mut reads).map(drop)
    }

    fn write(&mut self, write: Write<'_>) -> Result<()> {
        let pieces = write.parts();
        let writes = pieces.map(|it| WriteAt::new(DISK_OBJECT, it.extent.offset, it.data));
        Ok(self.store.write(&writes.chain(self.beside.drain(..)).collect::<Vec<_>>())?)
    }

    fn expect(&mut self, extents: &[Extent]) {
        self.store.hint(Hint::Reads(&ranges(self.lane, extents)));
    }

    fn hands(&self) -> usize {
        self.hands
    }

    fn work(&mut self, parts: Vec<WorkPart<'_>>) {
        together(parts);
    }
}

/// Extents as ranges of the store's object, the volume's or a lane's.
pub(super) fn ranges(
    lane: Option<&LanePlaces>,
    extents: &[Extent],
) -> Vec<(&'static str, u64, u64)> {
    match lane {
        Some(lane) => lane.ranges(extents),
        None => extents.iter().map(|it| (DISK_OBJECT, it.offset, it.bytes)).collect(),
    }
}

/// Does all parts, one for each thread if the system has room for them.
#[expect(clippy::disallowed_methods, reason = "to open and to seal takes most of a flush")]
fn together(parts: Vec<WorkPart<'_>>) {
    let helpers = parts.len().saturating_sub(1);
    if helpers == 0 {
        return parts.into_iter().for_each(WorkPart::run);
    }
    let parts = Mutex::new(parts.into_iter());
    let next = || parts.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        while let Some(part) = next() {
            part.run();
        }
    };
    thread::scope(|scope| {
        for _ in 0..helpers {
            // Without a helper thread, this one does its part.
            let _ = thread::Builder::new().name("sealing".into()).spawn_scoped(scope, work);
        }
        work();
    });
}

/// Threads for a flush: two, if there are two cores. More would wait for the store anyway.
pub(super) fn hands() -> usize {
    thread::available_parallelism().map_or(1, |cores| cores.get().min(2))
}
