//! Where the tables and checkpoints of a folder are: in it, or in a store somewhere else.

use super::super::keeper::{Catalog, MissingParts};
use super::elsewhere::{Elsewhere, PART_BYTES};
use super::files::Files;
use super::healed::Healed;
use super::notes::Owner;
use oblivio_store::share::{Object, Result};
use oblivio_store::{Objects, StoreError};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A store somewhere else for the tables and checkpoints of one volume.
pub struct Tables {
    /// The store, of this volume alone.
    pub store: Arc<dyn Objects>,
    /// Random bytes, by which a new store is known to be this volume's.
    pub random: [u8; 16],
    /// Objects are cut into parts of this length.
    pub part_bytes: u64,
}

impl Tables {
    /// With parts of the usual length.
    #[must_use]
    pub fn new(store: Arc<dyn Objects>, random: [u8; 16]) -> Self {
        Self { store, random, part_bytes: PART_BYTES }
    }
}

/// Tables and checkpoints.
pub(super) enum Stored {
    Here(Files),
    Elsewhere(Elsewhere, bool),
}

impl Stored {
    /// Opens those of the folder `dir`, with the lengths of whole ones. A volume that has begun in
    /// one place stays there. Nothing is deleted before [`Self::clean`].
    pub fn open(
        dir: &Path,
        tables: &Path,
        known: &Catalog,
        given: Option<Tables>,
        lacking: MissingParts,
    ) -> Result<(Self, BTreeMap<Object, u64>)> {
        let owner = match (Owner::find(dir)?, &given) {
            (None, None) => {
                let (files, found) = Files::open(tables)?;
                return Ok((Self::Here(files), found));
            }
            (Some(owner), _) => owner,
            (None, Some(given)) => {
                let is_new = known.tables.is_empty() && known.checkpoint.is_none();
                if !is_new || !Files::open(tables)?.1.is_empty() {
                    let why =
                        "a volume's tables are in the folder: start the server without --tables";
                    return Err(StoreError::io("tables", io::Error::other(why)).into());
                }
                Owner::note(dir, given.random)?
            }
        };
        let part_bytes = given.as_ref().map_or(PART_BYTES, |it| it.part_bytes);
        let (is_given, store) = (given.is_some(), given.map(|it| it.store));
        let run = (known.starts, part_bytes);
        let in_use = |object| match object {
            Object::Table(table) => known.tables.contains_key(&table),
            Object::Checkpoint(at) => known.checkpoint.is_some_and(|it| it.at == at),
        };
        let (elsewhere, found) = Elsewhere::open(tables, owner, store, run, in_use, lacking)?;
        Ok((Self::Elsewhere(elsewhere, is_given), found))
    }

    /// All was checked: what a crash left goes.
    pub fn clean(&mut self) -> Result<()> {
        match self {
            Self::Here(files) => files.clean(),
            Self::Elsewhere(parts, _) => parts.clean(),
        }
    }

    /// The files that were damaged or lost.
    pub fn healed(&self) -> Vec<Healed> {
        match self {
            Self::Here(_) => Vec::new(),
            Self::Elsewhere(parts, _) => parts.healed(),
        }
    }

    /// Whether they are somewhere else, and nobody said where.
    pub fn is_lacking(&self) -> bool {
        matches!(self, Self::Elsewhere(_, false))
    }

    pub fn write(&self, object: Object, offset: u64, piece: &[u8]) -> Result<()> {
        match self {
            Self::Here(files) => files.write(object, offset, piece),
            Self::Elsewhere(parts, _) => parts.write(object, offset, piece),
        }
    }

    pub fn finish(&self, object: Object) -> Result<()> {
        match self {
            Self::Here(files) => files.finish(object),
            Self::Elsewhere(parts, _) => parts.finish(object),
        }
    }

    pub fn read(&self, object: Object, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read_all(&mut [(object, offset, into)])
    }

    pub fn read_all(&self, reads: &mut [(Object, u64, &mut [u8])]) -> Result<()> {
        match self {
            Self::Here(files) => files.read_all(reads),
            Self::Elsewhere(parts, _) => parts.read_all(reads),
        }
    }

    pub fn delete(&self, object: Object) -> Result<()> {
        match self {
            Self::Here(files) => files.delete(object),
            Self::Elsewhere(parts, _) => parts.delete(object),
        }
    }
}
