//! The tree's steps on its slab, with a report of what the store sees.

use crate::options::{OnShown, Shown, ShownKind};
use crate::tree::slab::Slab;
use crate::{Error, Result};
use oblivio_engine::{Carrier, Read, Write};
use oblivio_store::Store;

/// The slab in its store, and the report of one job.
pub(crate) struct Buckets<'a> {
    store: &'a dyn Store,
    slab: &'a mut Slab,
    report: Option<(Shown, &'a mut OnShown)>,
    /// Whether the last step read.
    has_read: bool,
}

impl<'a> Buckets<'a> {
    /// For one job.
    pub fn new(
        store: &'a dyn Store,
        slab: &'a mut Slab,
        report: Option<(Shown, &'a mut OnShown)>,
    ) -> Self {
        Self { store, slab, report, has_read: false }
    }

    /// Notes the tree's depth, and whether it shrinks, before the next step: a round of the map may
    /// have removed the tree's last level.
    pub fn is_deep(&mut self, depth: u32, sweep: bool) {
        if let Some((shown, _)) = &mut self.report
            && std::mem::take(&mut self.has_read)
        {
            (shown.depth, shown.sweep) = (depth, sweep);
        }
    }

    /// Reports the job, which is done.
    pub fn report(self, kind: ShownKind) {
        if let Some((shown, report)) = self.report {
            report(&Shown { kind, ..shown });
        }
    }
}

impl Carrier for Buckets<'_> {
    type Error = Error;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        if let Some((shown, report)) = &mut self.report {
            shown.next_round(report);
            shown.read(&read, self.slab);
        }
        self.has_read = true;
        self.slab.read(self.store, &mut read)
    }

    fn write(&mut self, write: Write<'_>) -> Result<()> {
        self.slab.write(self.store, &write)?;
        if let Some((shown, _)) = &mut self.report {
            shown.wrote(&write, self.slab);
        }
        Ok(())
    }
}
