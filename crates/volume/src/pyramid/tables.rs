//! The tables of an engine, in a store.

use super::places::{Place, Places};
use crate::{Error, Result};
use oblivio_engine::pyramid::{Home, WITHIN_TABLE};
use oblivio_engine::{Carrier, Read, Write};
use oblivio_store::{ReadAt, Store};

/// Carries out the steps of one job.
pub struct Tables<'a> {
    store: &'a dyn Store,
    places: &'a mut Places,
    /// The table that the job wrote.
    pub written: Option<(Home, Place)>,
}

impl<'a> Tables<'a> {
    /// For a job that wrote nothing yet.
    pub fn new(store: &'a dyn Store, places: &'a mut Places) -> Self {
        Self { store, places, written: None }
    }
}

impl Carrier for Tables<'_> {
    type Error = Error;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        let mut reads = Vec::with_capacity(read.extents.len());
        for (extent, buf) in read.parts() {
            let (object, offset) = self.places.find(extent.offset)?;
            reads.push(ReadAt { object, offset, buf });
        }
        match reads.is_empty() {
            true => Ok(()),
            false => Ok(self.store.read(&mut reads)?),
        }
    }

    /// Durably: a table is recorded, and used, from then on.
    fn write(&mut self, write: Write<'_>) -> Result<()> {
        for piece in write.parts() {
            let home = Home((piece.extent.offset >> WITHIN_TABLE) as u32);
            let place = self.places.take(home, piece.extent.bytes)?;
            let (object, offset) = self.places.find(piece.extent.offset)?;
            self.store.write_durable(object, offset, piece.data)?;
            self.written = Some((home, place));
        }
        Ok(())
    }
}
