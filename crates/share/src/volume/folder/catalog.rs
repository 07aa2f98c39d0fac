//! The catalog: small numbers and names, changed in transactions of redb.

use super::super::keeper::{Catalog, Change};
use super::healed::Healed;
use super::paired::PairedDatabase;
use oblivio_store::StoreError;
use oblivio_store::share::{Checkpoint, Number, Result, ScribeTerm, ServerTable, ShareParameters};
use redb::{DatabaseError, ReadableTable, TableDefinition, TableError, WriteTransaction};
use std::io;
use std::path::Path;

const NUMBERS: TableDefinition<&str, u64> = TableDefinition::new("numbers");
const TABLES: TableDefinition<u64, u64> = TableDefinition::new("tables");
const HEADERS: TableDefinition<&str, &[u8]> = TableDefinition::new("headers");

const TERM: &str = "term";
const QUOTA: &str = "quota";
const APPLIED: &str = "applied";
const FIRST: &str = "first";
const STARTS: &str = "starts";
const CHECKPOINT: &str = "checkpoint";
const CHECKPOINT_BYTES: &str = "checkpoint bytes";
const VERSION: &str = "version";
const SLOT_BYTES: &str = "slot bytes";
const HEADER: &str = "header";
/// BLAKE3 of the newest checkpoint, among the headers: versions with one copy of it have none.
const SUM: &str = "checkpoint sum";
/// Which checkpoint that is of. Versions with one copy leave the sum of an older one behind.
const SUM_OF: &str = "checkpoint sum of";

/// The file, twice. One process has it at a time.
pub(super) struct CatalogFile(PairedDatabase);

fn failed(error: impl Into<redb::Error>) -> StoreError {
    let source = match error.into() {
        redb::Error::Io(source) => source,
        other => io::Error::other(other.to_string()),
    };
    StoreError::io("catalog", source)
}

impl CatalogFile {
    /// Opens it, or makes it. Nothing in it changes before [`Self::begin`].
    pub fn open(path: &Path) -> Result<(Self, Catalog)> {
        let opened = PairedDatabase::open(path).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::Busy,
            other => failed(other),
        })?;
        let file = Self(opened);
        let mut catalog = file.read()?;
        catalog.starts += 1;
        Ok((file, catalog))
    }

    /// Counts this start, and makes changes that it brings.
    pub fn begin(&self, changes: &[Change]) -> Result<()> {
        let begin = |write: &WriteTransaction| {
            {
                let mut numbers = write.open_table(NUMBERS)?;
                let starts = numbers.get(STARTS)?.map_or(0, |it| it.value());
                numbers.insert(STARTS, starts + 1)?;
            }
            write.open_table(TABLES)?;
            write.open_table(HEADERS)?;
            changes.iter().try_for_each(|it| make(write, it))
        };
        Ok(self.0.change(begin).map_err(failed)?)
    }

    /// The files that were damaged or lost, or cannot be written.
    pub fn healed(&self) -> Vec<Healed> {
        self.0.healed()
    }

    fn read(&self) -> Result<Catalog> {
        let read = self.0.read().map_err(failed)?;
        let numbers = match read.open_table(NUMBERS) {
            // It is new.
            Err(TableError::TableDoesNotExist(_)) => return Ok(Catalog::default()),
            numbers => numbers.map_err(failed)?,
        };
        let find =
            |name| Ok::<_, StoreError>(numbers.get(name).map_err(failed)?.map(|it| it.value()));
        let number = |name| Ok::<_, StoreError>(find(name)?.unwrap_or(0));
        let headers = read.open_table(HEADERS).map_err(failed)?;
        let header = headers.get(HEADER).map_err(failed)?;
        let parameters = match header {
            Some(header) => Some(ShareParameters {
                version: number(VERSION)?,
                slot_bytes: u32::try_from(number(SLOT_BYTES)?).unwrap_or(u32::MAX),
                header: header.value().to_vec(),
            }),
            None => None,
        };
        let checkpoint = match find(CHECKPOINT)? {
            Some(at) => Some(Checkpoint { at: Number(at), len: number(CHECKPOINT_BYTES)? }),
            None => None,
        };
        let sum = headers.get(SUM).map_err(failed)?;
        let is_its = checkpoint.is_some_and(|it| find(SUM_OF).is_ok_and(|of| of == Some(it.at.0)));
        let sum = sum.filter(|_| is_its).and_then(|sum| sum.value().try_into().ok());
        let mut catalog = Catalog {
            term: ScribeTerm(number(TERM)?),
            parameters,
            quota: find(QUOTA)?,
            applied: Number(number(APPLIED)?),
            checkpoint,
            sum,
            first: Number(number(FIRST)?),
            starts: number(STARTS)?,
            ..Catalog::default()
        };
        let tables = read.open_table(TABLES).map_err(failed)?;
        for entry in tables.iter().map_err(failed)? {
            let (table, len) = entry.map_err(failed)?;
            catalog.tables.insert(ServerTable(table.value()), len.value());
        }
        Ok(catalog)
    }

    /// Makes changes, all of them at once, durably.
    pub fn commit(&self, changes: &[Change]) -> Result<()> {
        let all = |write: &WriteTransaction| changes.iter().try_for_each(|it| make(write, it));
        Ok(self.0.change(all).map_err(failed)?)
    }
}

fn make(write: &WriteTransaction, change: &Change) -> std::result::Result<(), redb::Error> {
    let mut numbers = write.open_table(NUMBERS)?;
    let mut set = |name, value| numbers.insert(name, value).map(drop);
    match change {
        Change::Term(term) => set(TERM, term.0)?,
        Change::Quota(Some(bytes)) => set(QUOTA, *bytes)?,
        Change::Quota(None) => drop(numbers.remove(QUOTA)?),
        Change::Parameters(parameters) => {
            set(VERSION, parameters.version)?;
            set(SLOT_BYTES, u64::from(parameters.slot_bytes))?;
            write.open_table(HEADERS)?.insert(HEADER, &*parameters.header)?;
        }
        Change::Switch { number, table, len, replaced } => {
            set(APPLIED, number.0 + 1)?;
            let mut tables = write.open_table(TABLES)?;
            for gone in replaced {
                tables.remove(gone.0)?;
            }
            tables.insert(table.0, *len)?;
        }
        Change::Checkpoint { checkpoint, first, sum } => {
            set(CHECKPOINT, checkpoint.at.0)?;
            set(CHECKPOINT_BYTES, checkpoint.len)?;
            set(FIRST, first.0)?;
            let mut headers = write.open_table(HEADERS)?;
            match sum {
                Some(sum) => drop(headers.insert(SUM, &sum[..])?),
                None => drop(headers.remove(SUM)?),
            }
            set(SUM_OF, checkpoint.at.0)?;
        }
    }
    Ok(())
}
