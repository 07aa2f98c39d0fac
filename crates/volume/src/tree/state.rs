//! What a tree's checkpoints and deltas hold beside the engine's part.
//!
//! All sizes follow from public numbers (docs/format.md §"State").

use crate::block::StoredRoot;
use crate::records::state::Plain;
use crate::trust::{MOST_ROWS, Table};
use crate::{Error, Result};
use oblivio_crypto::SEAL_HEADER;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const TABLE: usize = Table::bytes(MOST_ROWS);

/// The slots of buckets in a checkpoint or a delta.
pub enum ChangedSlots<'a> {
    /// Of all buckets, by heap index; in checkpoints.
    All(Box<dyn ExactSizeIterator<Item = u32> + 'a>),
    /// Of the changed buckets; in deltas.
    Changed(Vec<(u64, u32)>),
}

/// A changed bucket and its slot, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Changed {
    bucket: U64,
    slot: U32,
}

/// Begins a checkpoint or delta: room for the seal, the file layer's root, the table of computers,
/// the slots. The caller appends the engine's part.
pub fn begin(root: &[u8], table: &[u8], slots: ChangedSlots<'_>) -> Vec<u8> {
    let mut out = vec![0; SEAL_HEADER];
    out.extend_from_slice(StoredRoot::new(root).as_bytes());
    out.extend_from_slice(table);
    out.resize(SEAL_HEADER + size_of::<StoredRoot>() + TABLE, 0);
    match slots {
        ChangedSlots::All(table) => {
            out.extend_from_slice(&(table.len() as u64).to_le_bytes());
            table.for_each(|slot| out.extend_from_slice(&slot.to_le_bytes()));
        }
        ChangedSlots::Changed(changed) => {
            out.extend_from_slice(&(changed.len() as u64).to_le_bytes());
            for (bucket, slot) in changed {
                let changed = Changed { bucket: U64::new(bucket), slot: U32::new(slot) };
                out.extend_from_slice(changed.as_bytes());
            }
        }
    }
    out
}

/// A parsed checkpoint or delta.
pub struct Parts<'a> {
    /// The file layer's root.
    pub root: &'a [u8],
    /// The table of computers, if it has one.
    pub table: Option<Table>,
    /// Buckets and their slots.
    pub slots: Vec<(u64, u32)>,
    /// The engine's part.
    pub engine: &'a [u8],
}

impl<'a> Parts<'a> {
    /// Parses an opened checkpoint.
    ///
    /// # Errors
    /// `Tampered` if the bytes are something else.
    pub fn of_checkpoint(plain: &'a Plain) -> Result<Self> {
        let all = |slots: &[U32]| (0..).zip(slots.iter().map(|slot| slot.get())).collect();
        Self::parse(plain, all).ok_or_else(Self::broken)
    }

    /// Parses an opened delta.
    ///
    /// # Errors
    /// `Tampered` if the bytes are something else.
    pub fn of_delta(plain: &'a Plain) -> Result<Self> {
        let slot = |changed: &Changed| (changed.bucket.get(), changed.slot.get());
        let changed = |slots: &[Changed]| slots.iter().map(slot).collect();
        Self::parse(plain, changed).ok_or_else(Self::broken)
    }

    fn broken() -> Error {
        Error::Tampered("the state does not parse".into())
    }

    fn parse<T: FromBytes + KnownLayout + Immutable + 'a>(
        plain: &'a Plain,
        slots: impl Fn(&[T]) -> Vec<(u64, u32)>,
    ) -> Option<Self> {
        let (root, mut rest) = StoredRoot::ref_from_prefix(&plain.bytes).ok()?;
        let mut table = None;
        if plain.has_table {
            let (stored, after) = rest.split_at_checked(TABLE)?;
            (table, rest) = (Some(Table::parse(stored)?), after);
        }
        let (count, rest) = U64::ref_from_prefix(rest).ok()?;
        let count = usize::try_from(count.get()).ok()?;
        let (stored, engine) = <[T]>::ref_from_prefix_with_elems(rest, count).ok()?;
        Some(Self { root: root.get()?, table, slots: slots(stored), engine })
    }
}
