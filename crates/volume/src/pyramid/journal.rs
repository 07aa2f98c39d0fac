//! The pyramid's records in the journal: everything since the last commit.
//!
//! A *sync* holds the bytes written since the last one. An *intent* names the next asks and is
//! durable before they read. Each begins with the merges since the record before, whose tables are
//! durable: one record, so that a crash leaves all of it or nothing. Opening a volume again repeats
//! them in their order. No length depends on more than public numbers.

use super::places::{Place, StoredPlace};
use crate::records::deferred::Writes;
use crate::records::journal::{begin, open_head};
use crate::trust::{Act, LogCheck};
use crate::{Error, Result};
use oblivio_crypto::Attempt;
use oblivio_engine::BlockId;
use oblivio_engine::pyramid::{MOST_LEFT, Merged, Seed};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const INTENT: u64 = 1;
const SYNC: u64 = 2;

/// A merge whose table is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The place of its table.
    pub place: Place,
    /// What the engine must know.
    pub merged: Merged,
}

/// What a record says beside the merges before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A round that was, or was about to be, shown.
    Intent {
        /// The seed of its draws.
        seed: Seed,
        /// Whether it carries out the oldest waiting writes; else it reads.
        writes: bool,
        /// Its blocks.
        ids: Vec<BlockId>,
    },
    /// The writes since the last sync, and the root.
    Sync {
        /// The caller's root.
        root: Vec<u8>,
        /// The writes in order.
        writes: Writes,
    },
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The merges since the record before it.
    pub merges: Vec<Merge>,
    /// What came then.
    pub what: What,
}

/// Merges that no record has yet.
#[derive(Default)]
pub struct Merges {
    count: u64,
    bytes: Vec<u8>,
}

impl Merges {
    /// Adds one; that of a base has room for what it may leave.
    ///
    /// # Errors
    /// `Closed` if it left more.
    pub fn add(&mut self, merge: &Merge, base: bool, block_bytes: usize) -> Result<()> {
        let left = &merge.merged.left;
        let room = if base { MOST_LEFT } else { 0 };
        // Nothing is asked for while a merge is open.
        if left.len() > room || !merge.merged.asked.is_empty() {
            return Err(Error::Closed("a merge left more blocks than a record holds".into()));
        }
        let head = MergedHead {
            place: StoredPlace::new(merge.merged.home, merge.place),
            attempt: merge.merged.attempt.0,
            room: U64::new(room as u64),
            left: U64::new(left.len() as u64),
        };
        self.count += 1;
        self.bytes.extend_from_slice(head.as_bytes());
        left.iter().for_each(|block| self.bytes.extend_from_slice(block));
        let rest = (room - left.len()) * block_bytes;
        self.bytes.resize(self.bytes.len() + rest, 0);
        Ok(())
    }

    /// Forgets them: a record or a commit has them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Begins a record with them.
    fn begin(&self, kind: u64, act: Act, room: usize) -> Vec<u8> {
        let mut record = begin(kind, act, 8 + self.bytes.len() + room);
        record.extend_from_slice(&self.count.to_le_bytes());
        record.extend_from_slice(&self.bytes);
        record
    }
}

/// An intent's begin, as stored; the ids follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct IntentHead {
    seed: [u8; 32],
    writes: U64,
    count: U64,
}

/// A merge, as stored; the blocks that it left follow, and zeros.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct MergedHead {
    place: StoredPlace,
    attempt: [u8; 16],
    /// Blocks that there is room for.
    room: U64,
    left: U64,
}

/// The record of a round.
pub fn intent(act: Act, merges: &Merges, (seed, writes, ids): (Seed, bool, &[BlockId])) -> Vec<u8> {
    let mut record = merges.begin(INTENT, act, size_of::<IntentHead>() + 8 * ids.len());
    let (writes, count) = (U64::new(writes.into()), U64::new(ids.len() as u64));
    record.extend_from_slice(IntentHead { seed: seed.0, writes, count }.as_bytes());
    ids.iter().for_each(|id| record.extend_from_slice(&id.0.to_le_bytes()));
    record
}

/// The record of writes and the root; with the length of all but these writes.
pub fn sync(act: Act, merges: &Merges, root: &[u8], writes: &Writes) -> (Vec<u8>, usize) {
    let mut record = merges.begin(SYNC, act, 8 + root.len() + writes.bytes().len());
    record.extend_from_slice(&(root.len() as u64).to_le_bytes());
    record.extend_from_slice(root);
    record.extend_from_slice(writes.bytes());
    (record, merges.bytes.len())
}

/// Parses an opened record, with its act. `check` gets its sync.
pub fn parse(plain: &[u8], block_bytes: usize, check: &mut LogCheck) -> Option<(Act, Record)> {
    let (kind, act, rest) = open_head(plain)?;
    let (count, mut rest) = U64::ref_from_prefix(rest).ok()?;
    let mut merges = Vec::new();
    for _ in 0..count.get() {
        let (merge, after) = parse_merge(rest, block_bytes)?;
        merges.push(merge);
        rest = after;
    }
    let what = parse_what(kind, rest)?;
    if matches!(what, What::Sync { .. }) {
        check.sync();
    }
    Some((act, Record { merges, what }))
}

fn parse_merge(bytes: &[u8], block_bytes: usize) -> Option<(Merge, &[u8])> {
    let (head, rest) = MergedHead::ref_from_prefix(bytes).ok()?;
    let most = |count: U64| usize::try_from(count.get()).ok().filter(|&it| it <= MOST_LEFT);
    let (room, left) = (most(head.room)?, most(head.left)?);
    let (blocks, rest) = rest.split_at_checked(room * block_bytes)?;
    let left = blocks.get(..left * block_bytes)?;
    let left = left.chunks_exact(block_bytes).map(<[u8]>::to_vec).collect();
    let (home, place) = head.place.get();
    let merged = Merged { home, attempt: Attempt(head.attempt), left, asked: Vec::new() };
    Some((Merge { place, merged }, rest))
}

fn parse_what(kind: u64, rest: &[u8]) -> Option<What> {
    match kind {
        INTENT => {
            let (head, rest) = IntentHead::ref_from_prefix(rest).ok()?;
            let count = usize::try_from(head.count.get()).ok()?;
            let (ids, _) = <[U64]>::ref_from_prefix_with_elems(rest, count).ok()?;
            let ids = ids.iter().map(|id| BlockId(id.get())).collect();
            Some(What::Intent { seed: Seed(head.seed), writes: head.writes.get() == 1, ids })
        }
        SYNC => {
            let (len, rest) = U64::ref_from_prefix(rest).ok()?;
            let (root, rest) = rest.split_at_checked(usize::try_from(len.get()).ok()?)?;
            Some(What::Sync { root: root.to_vec(), writes: Writes::parse(rest)? })
        }
        _ => None,
    }
}
