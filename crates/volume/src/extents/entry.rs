//! The entry of an epoch: everything that leads to it, and which file each extent is in.
//!
//! It names the epoch before it with the digest of its entry, and for each session the last epoch
//! that led here. So whether one epoch is in the past of another is known without the entries in
//! between, which may be deleted, or may not have arrived.

use super::names::{EpochId, MOST};
use super::shape::ExtentLayout;
use crate::session::Vault;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Kind, SEAL_HEADER, SEAL_OVERHEAD, digest};
use std::mem::take;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const VERSION: u64 = 2;
/// Entries of this version have no second copy, and no parities in their tables.
const SINGLE: u64 = 1;
/// Sessions that an entry remembers. The one that changed longest ago goes first; an epoch of its
/// that is still somewhere then counts as another history.
const MOST_ROWS: usize = 4096;
/// Histories that an entry keeps: more than anybody leaves.
const MOST_KEPT: usize = 65_536;
/// Bytes of a digest.
pub const DIGEST: usize = 32;

/// The epoch of an extent's file, and the digest of its bytes.
pub type HeldExtent = (EpochId, [u8; DIGEST]);

/// An epoch, opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Epoch {
    pub id: EpochId,
    /// Who made it, and the number of that computer's act.
    pub computer: ComputerId,
    pub act: u64,
    /// When, in seconds since 1970, by that computer's clock.
    pub date: u64,
    /// The epoch that it stands on, and the digest of its entry.
    pub parent: Option<(EpochId, [u8; DIGEST])>,
    /// How often somebody chose between histories.
    pub picks: u64,
    /// For each session the last epoch that led here, its own included.
    rows: Vec<EpochId>,
    /// Histories that were not chosen, and are kept until they are dropped.
    pub kept: Vec<EpochId>,
    /// Each extent's file, then each parity's; `None` for one that was never written.
    pub table: Vec<Option<HeldExtent>>,
    /// Whether the entry itself has two files.
    pub twofold: bool,
}

/// Before the lists, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Front {
    version: U64,
    computer: [u8; 16],
    act: U64,
    date: U64,
    parent: StoredHeld,
    picks: U64,
    rows: U64,
    kept: U64,
    extents: U64,
}

/// An epoch and a digest, as stored; number 0 for none.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StoredHeld {
    epoch: StoredEpoch,
    digest: [u8; DIGEST],
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StoredEpoch {
    session: U64,
    number: U64,
}

impl StoredEpoch {
    fn new(id: EpochId) -> Self {
        Self { session: U64::new(id.session), number: U64::new(id.number) }
    }

    fn get(&self) -> EpochId {
        EpochId { session: self.session.get(), number: self.number.get() }
    }
}

impl StoredHeld {
    fn new(held: Option<HeldExtent>) -> Self {
        let (id, digest) = held.unwrap_or_default();
        Self { epoch: StoredEpoch::new(id), digest }
    }

    fn get(&self) -> Option<HeldExtent> {
        let id = self.epoch.get();
        (id.number > 0).then_some((id, self.digest))
    }
}

impl Epoch {
    /// The most bytes that an entry of a volume with this number of files has.
    pub fn most_bytes(files: u64) -> u64 {
        let ids = (MOST_ROWS + MOST_KEPT) * size_of::<StoredEpoch>();
        let fixed = (SEAL_OVERHEAD + size_of::<Front>() + ids) as u64;
        fixed + files.saturating_mul(size_of::<StoredHeld>() as u64)
    }

    /// The first epoch of a volume, with places for this number of files.
    pub fn first(files: usize) -> Self {
        Self {
            id: EpochId::default(),
            computer: ComputerId::default(),
            act: 0,
            date: 0,
            parent: None,
            picks: 0,
            rows: Vec::new(),
            kept: Vec::new(),
            table: vec![None; files],
            twofold: true,
        }
    }

    /// The entry after this one, whose bytes have this digest; not yet by anybody.
    pub fn after(&self, digest: [u8; DIGEST]) -> Self {
        Self { parent: Some((self.id, digest)), ..self.clone() }
    }

    /// Gives it its place.
    pub fn made(&mut self, id: EpochId, (computer, act): (ComputerId, u64), date: u64) {
        (self.id, self.computer, self.act, self.date) = (id, computer, act, date);
        self.twofold = true;
        self.lead(id);
    }

    /// Takes over what led to another entry.
    pub fn join(&mut self, other: &Self) {
        other.rows.iter().for_each(|row| self.lead(*row));
        self.picks = self.picks.max(other.picks);
        let mut kept = take(&mut self.kept);
        kept.extend(&other.kept);
        kept.sort_unstable();
        kept.dedup();
        self.kept = kept;
    }

    fn lead(&mut self, id: EpochId) {
        let at = self.rows.iter().position(|row| row.session == id.session);
        let known = at.map_or(0, |at| self.rows.remove(at).number);
        self.rows.push(EpochId { number: known.max(id.number), ..id });
        if self.rows.len() > MOST_ROWS {
            self.rows.remove(0);
        }
    }

    /// Whether an epoch led to this one, or is it.
    pub fn has(&self, id: EpochId) -> bool {
        self.rows.iter().any(|row| row.session == id.session && row.number >= id.number)
    }

    /// The files that it names: their epochs and extents.
    pub fn files(&self) -> impl Iterator<Item = (u64, HeldExtent)> + '_ {
        let numbered = self.table.iter().enumerate();
        numbered.filter_map(|(extent, held)| Some((extent as u64, (*held)?)))
    }

    /// Seals it; gives the bytes of its file and their digest.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&self, vault: &mut Vault) -> Result<(Vec<u8>, [u8; DIGEST])> {
        let front = Front {
            version: U64::new(VERSION),
            computer: self.computer.0,
            act: U64::new(self.act),
            date: U64::new(self.date),
            parent: StoredHeld::new(self.parent),
            picks: U64::new(self.picks),
            rows: U64::new(self.rows.len() as u64),
            kept: U64::new(self.kept.len() as u64),
            extents: U64::new(self.table.len() as u64),
        };
        let mut bytes = [&[0; SEAL_HEADER], front.as_bytes()].concat();
        for id in self.rows.iter().chain(&self.kept) {
            bytes.extend_from_slice(StoredEpoch::new(*id).as_bytes());
        }
        for held in &self.table {
            bytes.extend_from_slice(StoredHeld::new(*held).as_bytes());
        }
        bytes.resize(bytes.len() + SEAL_OVERHEAD - SEAL_HEADER, 0);
        vault.seal(Kind::Epoch, self.id.number, self.id.session, &mut bytes)?;
        let digest = digest(&bytes);
        Ok((bytes, digest))
    }

    /// Opens the bytes of an entry's file; `None` if they are not, or not yet, what was made.
    ///
    /// # Errors
    /// `Unsupported` for an unknown version.
    pub fn open(vault: &mut Vault, id: EpochId, mut bytes: Vec<u8>) -> Result<Option<OpenedEpoch>> {
        let digest = digest(&bytes);
        let Some(plain) = vault.open(Kind::Epoch, id.number, id.session, &mut bytes) else {
            return Ok(None);
        };
        let Ok((front, rest)) = Front::ref_from_prefix(plain) else { return Ok(None) };
        if ![VERSION, SINGLE].contains(&front.version.get()) {
            return Err(Error::Unsupported("an epoch has an unknown version".into()));
        }
        Ok(Self::parse(id, front, rest).map(|entry| OpenedEpoch { entry, digest }))
    }

    fn parse(id: EpochId, front: &Front, rest: &[u8]) -> Option<Self> {
        let count =
            |number: &U64| usize::try_from(number.get()).ok().filter(|it| *it as u64 <= MOST);
        let list = <[StoredEpoch]>::ref_from_prefix_with_elems;
        let (rows, rest) = list(rest, count(&front.rows)?).ok()?;
        let (kept, rest) = list(rest, count(&front.kept)?).ok()?;
        let table = <[StoredHeld]>::ref_from_bytes_with_elems(rest, count(&front.extents)?).ok()?;
        Some(Self {
            id,
            computer: ComputerId(front.computer),
            act: front.act.get(),
            date: front.date.get(),
            parent: front.parent.get(),
            picks: front.picks.get(),
            rows: rows.iter().map(StoredEpoch::get).collect(),
            kept: kept.iter().map(StoredEpoch::get).collect(),
            table: table.iter().map(StoredHeld::get).collect(),
            twofold: front.version.get() == VERSION,
        })
    }
}

/// An entry, and the digest of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenedEpoch {
    pub entry: Epoch,
    pub digest: [u8; DIGEST],
}

impl OpenedEpoch {
    /// The entry, if it is one of a volume of this shape. One without parities has room for them.
    pub fn fitting(mut self, shape: &ExtentLayout) -> Option<Self> {
        let (table, single) = (&mut self.entry.table, !self.entry.twofold);
        if single && table.len() as u64 == shape.extents() {
            table.resize(shape.files() as usize, None);
        }
        (table.len() as u64 == shape.files()).then_some(self)
    }

    /// The names of the entry's own files.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let id = self.entry.id;
        [id.entry()].into_iter().chain(self.entry.twofold.then(|| id.twin()))
    }
}
