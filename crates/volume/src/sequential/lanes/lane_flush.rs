//! The steps of a lane's flush: it reads from the lane, and writes into the bytes that go to the
//! store with the volume's own flush.

use super::places::LanePlaces;
use crate::Result;
use crate::sequential::disk::Disk;
use crate::sequential::shared::Shared;
use oblivio_engine::sequential::Flush;
use oblivio_engine::{Carrier, Extent, Read, WorkPart, Write};
use std::ops::Range;

pub(super) struct LaneFlush<'a> {
    disk: Disk<'a>,
    places: &'a LanePlaces,
    outer: Flush,
    out: &'a mut [u8],
    /// The parts of `out` that the engine wrote nothing into, once it wrote.
    left: Option<Vec<Range<usize>>>,
    read: u64,
}

impl<'a> LaneFlush<'a> {
    pub fn new(
        shared: &'a Shared,
        places: &'a LanePlaces,
        outer: Flush,
        out: &'a mut [u8],
    ) -> Self {
        Self { disk: shared.flush_disk(), places, outer, out, left: None, read: 0 }
    }

    pub fn has_written(&self) -> bool {
        self.left.is_some()
    }

    /// The parts without content, and how many bytes were read.
    pub fn done(self) -> (Vec<Range<usize>>, u64) {
        (self.left.unwrap_or_default(), self.read)
    }
}

impl Carrier for LaneFlush<'_> {
    type Error = crate::Error;

    fn read(&mut self, read: Read<'_>) -> Result<()> {
        self.read += read.into.len() as u64;
        self.disk.read(read)
    }

    fn write(&mut self, write: Write<'_>) -> Result<()> {
        self.left = Some(self.places.disk().begin_flush(self.outer, &write, self.out));
        Ok(())
    }

    fn expect(&mut self, extents: &[Extent]) {
        self.disk.expect(extents);
    }

    fn hands(&self) -> usize {
        self.disk.hands()
    }

    fn work(&mut self, parts: Vec<WorkPart<'_>>) {
        self.disk.work(parts);
    }
}
