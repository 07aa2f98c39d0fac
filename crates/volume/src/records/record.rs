//! Records of what a volume on trees shows and writes: everything since the last commit.
//!
//! There are two kinds, and changes of the size. An *intent* names the next reads and is recorded
//! before them: durably, or within the bounds of `tree/record_sync`. A crashed session has shown
//! paths; the volume, opened again at its last commit, replays the logged batches, which shows
//! exactly the same paths and remaps their blocks. So no path is shown twice because of what the
//! user does after the crash. A *sync* holds the bytes written since the last sync. It makes them
//! durable without waiting for whole paths, which follow on their schedule. Its length is padded to
//! a public size class.

use crate::records::journal::{begin, open_head};
use crate::records::writes::Writes;
use crate::trust::{Act, LogCheck};
use oblivio_engine::BlockId;
use oblivio_engine::tree::Intent;
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, IntoBytes};

pub(crate) const INTENT: u64 = 1;
pub(crate) const SYNC: u64 = 2;
pub(crate) const RESIZE: u64 = 3;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A batch that was, or was about to be, served.
    Intent(Intent),
    /// The writes since the last sync, and the root.
    Sync {
        /// The caller's root.
        root: Vec<u8>,
        /// The writes in order.
        writes: Writes,
    },
    /// A new number of addressable blocks, and a new size class of the tree.
    Resize {
        /// Addressable blocks.
        blocks: u64,
        /// The size class of the live blocks.
        class: u64,
    },
}

/// The record of a batch's intent. Its size follows from the batch's length. `ahead` as of
/// [`begin`], here and below.
pub fn intent(act: Act, ahead: Option<u64>, intent: &Intent) -> Vec<u8> {
    let mut record = begin(INTENT, act, ahead, 8 * (intent.ids.len() + 2));
    push_intent(&mut record, intent);
    record
}

/// Appends what an intent's record says.
pub(crate) fn push_intent(record: &mut Vec<u8>, intent: &Intent) {
    let seed_and_count = [intent.seed, intent.ids.len() as u64].map(U64::new);
    record.extend_from_slice(seed_and_count.as_bytes());
    for id in &intent.ids {
        record.extend_from_slice(&id.0.to_le_bytes());
    }
}

/// The record of writes and the root.
pub fn sync(act: Act, ahead: Option<u64>, root: &[u8], writes: &Writes) -> Vec<u8> {
    let mut record = begin(SYNC, act, ahead, 8 + root.len() + writes.len());
    push_sync(&mut record, root, writes);
    record
}

/// Appends what a sync's record says.
pub(crate) fn push_sync(record: &mut Vec<u8>, root: &[u8], writes: &Writes) {
    record.extend_from_slice(&(root.len() as u64).to_le_bytes());
    record.extend_from_slice(root);
    writes.write_to(record);
}

/// The record of a change of size. It comes before the first batch served with it.
pub fn resize(act: Act, ahead: Option<u64>, blocks: u64, class: u64) -> Vec<u8> {
    let mut record = begin(RESIZE, act, ahead, 16);
    push_resize(&mut record, blocks, class);
    record
}

/// Appends what the record of a change of size says.
pub(crate) fn push_resize(record: &mut Vec<u8>, blocks: u64, class: u64) {
    record.extend_from_slice([blocks, class].map(U64::new).as_bytes());
}

/// Parses an opened record; gives its act, if it names one. `check` gets its sync.
pub fn parse(plain: &[u8], check: &mut LogCheck) -> Option<(Option<Act>, Record)> {
    let (kind, act, rest) = open_head(plain)?;
    let record = parse_as(kind, rest)?;
    if matches!(record, Record::Sync { .. }) {
        check.sync();
    }
    Some((act, record))
}

/// Parses what a record of a kind says.
pub(crate) fn parse_as(kind: u64, rest: &[u8]) -> Option<Record> {
    match kind {
        INTENT => {
            let ([seed, count], rest) = <[U64; 2]>::ref_from_prefix(rest).ok()?;
            let count = usize::try_from(count.get()).ok()?;
            let (ids, _) = <[U64]>::ref_from_prefix_with_elems(rest, count).ok()?;
            let ids = ids.iter().map(|id| BlockId(id.get())).collect();
            Some(Record::Intent(Intent { seed: seed.get(), ids }))
        }
        SYNC => {
            let (len, rest) = U64::ref_from_prefix(rest).ok()?;
            let (root, rest) = rest.split_at_checked(usize::try_from(len.get()).ok()?)?;
            Some(Record::Sync { root: root.to_vec(), writes: Writes::parse(rest)? })
        }
        RESIZE => {
            let ([blocks, class], _) = <[U64; 2]>::ref_from_prefix(rest).ok()?;
            Some(Record::Resize { blocks: blocks.get(), class: class.get() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
