//! Where a shared volume keeps its bytes: the little that memory and a folder do differently.

use oblivio_store::share::{
    Checkpoint, Number, Object, Result, ScribeTerm, ServerTable, ShareError, ShareParameters,
};
use std::collections::BTreeMap;

/// What to do with a volume that lacks something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingParts {
    /// Not to open it: what is missing may be put back.
    Refused,
    /// To open it without: clients lose what it held.
    Accepted,
}

/// What stays small, and is changed as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Catalog {
    pub term: ScribeTerm,
    pub parameters: Option<ShareParameters>,
    pub quota: Option<u64>,
    /// The tables in use, with their lengths, as of the records before `applied`.
    pub tables: BTreeMap<ServerTable, u64>,
    pub applied: Number,
    pub checkpoint: Option<Checkpoint>,
    /// Its BLAKE3, if it was stored by a version that keeps two copies of it.
    pub sum: Option<[u8; 32]>,
    /// The first record that is kept.
    pub first: Number,
    /// How often the server was started.
    pub starts: u64,
}

/// A durable change of the catalog.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Term(ScribeTerm),
    Parameters(ShareParameters),
    Quota(Option<u64>),
    /// A table takes the place of others, by this record.
    Switch {
        number: Number,
        table: ServerTable,
        len: u64,
        replaced: Vec<ServerTable>,
    },
    Checkpoint {
        checkpoint: Checkpoint,
        first: Number,
        sum: Option<[u8; 32]>,
    },
}

impl Catalog {
    /// Makes a change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Term(term) => self.term = *term,
            Change::Parameters(parameters) => self.parameters = Some(parameters.clone()),
            Change::Quota(quota) => self.quota = *quota,
            Change::Switch { number, table, len, replaced } => {
                self.tables.retain(|table, _| !replaced.contains(table));
                self.tables.insert(*table, *len);
                self.applied = Number(number.0 + 1);
            }
            Change::Checkpoint { checkpoint, first, sum } => {
                self.checkpoint = Some(*checkpoint);
                self.first = *first;
                self.sum = *sum;
            }
        }
    }
}

/// Keeps bytes. No call overlaps another one of the same object.
pub(super) trait Keeper: Send + Sync {
    /// What it has was read and holds together: what a crash left goes, and what lacks a copy gets
    /// it.
    fn clean(&mut self) -> Result<()> {
        Ok(())
    }
    /// Writes the next record. When it fails, nothing was written.
    fn append(&self, number: Number, record: &[u8]) -> Result<()>;
    /// Makes all records that were appended before durable.
    fn sync(&self) -> Result<()>;
    /// A record.
    fn record(&self, number: Number) -> Result<Vec<u8>>;
    /// A part of a record, which it has.
    fn part(&self, number: Number, offset: u32, len: u32) -> Result<Vec<u8>>;
    /// Records before this one are needed no more, and a second copy of those before `spare`.
    fn forget(&self, before: Number, spare: Number) -> Result<()>;
    /// Makes durable what may wait for that.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
    /// Bytes that may still be stored: a forecast.
    fn free_bytes(&self) -> Result<u64> {
        Ok(u64::MAX)
    }
    /// Bytes of all records that take space.
    fn record_bytes(&self) -> u64;

    /// Writes a piece of an object that is not finished.
    fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()>;
    /// Makes an object durable.
    fn finish(&self, object: Object) -> Result<()>;
    /// Reads a part of an object, finished or not, which it has.
    fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()>;
    /// As [`Self::read`], of many parts, all at once where the objects are far away.
    fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        let mut reads = reads.iter_mut();
        reads.try_for_each(|(object, offset, into)| self.read(*object, *offset, into))
    }
    /// Whether a read failed with this because bytes are lost, of a volume that goes on without
    /// them. Zeros take their place: clients find those.
    fn goes_without(&self, _error: &ShareError) -> bool {
        false
    }
    /// Deletes an object. A missing one is no error.
    fn delete(&self, object: Object) -> Result<()>;

    /// BLAKE3 of a checkpoint that is finished, if there is a second copy of it.
    fn sum(&self, _checkpoint: Checkpoint) -> Result<Option<[u8; 32]>> {
        Ok(None)
    }
    /// Makes the newest checkpoint whole, if a copy of it is. Else clients find the damage.
    fn mend(&self, _checkpoint: Checkpoint, _sum: [u8; 32]) -> Result<()> {
        Ok(())
    }

    /// Makes changes of the catalog durable, all of them at once.
    fn commit(&self, changes: &[Change]) -> Result<()>;
}

/// What a keeper has when it is opened.
pub(super) struct Kept {
    pub catalog: Catalog,
    /// Finished objects, with their lengths.
    pub objects: BTreeMap<Object, u64>,
    /// The number after the last record.
    pub next: Number,
}
