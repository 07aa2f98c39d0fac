//! Entries of the top's log: each round appends its own to its writes.

use super::{Backend, Round};
use crate::tree::block_pool::Payload;
use crate::tree::bucket_cache::Resident;
use crate::tree::geometry::SlotHeader;
use crate::tree::top_log::{Entry, LOG_ENTRIES, TopLog};
use crate::{Address, BucketId, Extent, Result, SealedBucket};
use oblivio_crypto::{Kind, Place, SEAL_HEADER};

/// Bytes of an entry before the block's content: its id and its label.
const ENTRY_HEADER: usize = 16;

/// Where a block in memory is.
enum Spot {
    Bucket(BucketId, usize),
    Stash(usize),
}

/// A log whose entries of one round are appended.
struct Appending<'a> {
    tree: &'a mut Backend,
    log: &'a mut TopLog,
    round: &'a mut Round,
}

/// Appends the entries of a round to its writes: one and a quarter for each access.
///
/// # Errors
/// Those of the sealer.
pub(super) fn append(tree: &mut Backend, round: &mut Round) -> Result<()> {
    let Some(mut log) = tree.top.log.take() else { return Ok(()) };
    let result = Appending { tree, log: &mut log, round }.all();
    tree.top.log = Some(log);
    result
}

impl Appending<'_> {
    fn all(&mut self) -> Result<()> {
        self.log.quarters += 5 * self.round.accesses();
        let due = self.log.quarters / 4;
        self.log.quarters %= 4;
        let fresh = std::mem::take(&mut self.log.fresh);
        let mut written = fresh.len() as u64;
        for block in fresh {
            self.one(Some(block))?;
        }
        // More than is due only if all the blocks of the top would not stay within the span.
        while written < due || self.log.first + self.log.rule.span < self.log.next {
            let block = self.renewed();
            if block.is_none() && written >= due {
                break;
            }
            self.one(block)?;
            written += 1;
        }
        Ok(())
    }

    /// Gives the block of the oldest entry that is still needed the next one instead.
    fn renewed(&mut self) -> Option<(SlotHeader, Payload)> {
        let spot = self.oldest()?;
        let block = match spot {
            Spot::Bucket(bucket, at) => &mut self.tree.cache.blocks_mut(bucket)[at],
            Spot::Stash(at) => &mut self.tree.stash[at],
        };
        block.home = self.log.next;
        Some((block.header, block.payload))
    }

    /// Takes the oldest entry that is still needed off the log.
    fn oldest(&mut self) -> Option<Spot> {
        while self.log.first < self.log.next {
            let entry = self.log.entries.pop_front()?;
            let number = self.log.first;
            self.log.first += 1;
            let spot = self.find(&entry, number);
            if spot.is_some() {
                return spot;
            }
        }
        None
    }

    /// Where the block of an entry is, if it is in the top or the stash and has no newer one.
    fn find(&self, entry: &Entry, number: u64) -> Option<Spot> {
        let tree = &*self.tree;
        if entry.id == Address::NONE || tree.is_dead(entry.id) {
            return None;
        }
        let is_it = |block: &Resident| block.home == number && block.header.id == entry.id;
        for level in 0..=tree.leaves.depth.0 {
            let bucket = entry.label.bucket_at(crate::Level(level));
            if !self.log.holds(bucket) {
                break;
            }
            if tree.cache.is_dirty(bucket)
                && let Some(at) = tree.cache.blocks(bucket).iter().position(is_it)
            {
                return Some(Spot::Bucket(bucket, at));
            }
        }
        tree.stash.iter().position(is_it).map(Spot::Stash)
    }

    /// Seals the next entry, of a block or of nothing.
    fn one(&mut self, block: Option<(SlotHeader, Payload)>) -> Result<()> {
        let Self { tree, log, round } = self;
        let mut sealed = round.spare.take(tree.geometry.entry_bytes());
        let header = block.map_or(SlotHeader::VACANT, |(header, _)| header);
        let data = &mut sealed[SEAL_HEADER..];
        data[..8].copy_from_slice(&header.stored_id().to_le_bytes());
        data[8..ENTRY_HEADER].copy_from_slice(&header.label.0.to_le_bytes());
        if let Some((_, payload)) = block {
            let content = tree.pool.get(payload);
            data[ENTRY_HEADER..][..content.len()].copy_from_slice(content);
        }
        let number = log.next;
        let tag = tree.sealer.seal(&place(tree, number), &mut sealed)?;
        log.next += 1;
        log.entries.push_back(Entry { id: header.id, label: header.label, tag });
        let bytes = sealed.len() as u64;
        round.append(Extent { offset: LOG_ENTRIES + number, bytes }, SealedBucket::new(sealed));
        tree.meters.entries_written += 1;
        tree.meters.bytes_moved += bytes;
        Ok(())
    }
}

/// The place of an entry.
fn place(tree: &Backend, number: u64) -> Place {
    Place { kind: Kind::TopEntry, index: number, ..tree.place(BucketId(0)) }
}

/// Opens an entry in place; gives the content of its block.
pub(in crate::tree) fn open<'a>(
    tree: &mut Backend,
    number: u64,
    sealed: &'a mut [u8],
) -> Option<&'a [u8]> {
    let place = place(tree, number);
    tree.sealer.open(&place, sealed).ok().and_then(|opened| opened.get(ENTRY_HEADER..))
}

/// Opens the stored version of a bucket in place; says whether it did.
pub(in crate::tree) fn open_bucket(
    tree: &mut Backend,
    bucket: BucketId,
    sealed: &mut [u8],
) -> bool {
    let place = tree.place(bucket);
    tree.sealer.open(&place, sealed).is_ok()
}

/// Notes that entries of the log are damaged: their blocks are lost.
pub(in crate::tree) fn met_lost(tree: &mut Backend) {
    tree.marks.met_damage = true;
    tree.damaged_now = true;
}
