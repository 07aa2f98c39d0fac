//! Which entries of its log hold the top of the tree, as a commit stores it
//! (docs/format.md §"Top index").
//!
//! For each bucket of the top that differs from its stored version: its number, the tag of that
//! version and its children's, and for each of its slots the block, its label, its home, and the
//! tag of an entry. Then the homes of the stash, whose content the state has. Its size follows from
//! the schedule.

use super::backend::Backend;
use super::bounds::{EMPTY, STASH_BOUND, padded};
use super::bucket_cache::Resident;
use super::geometry::{SlotHeader, buckets_in};
use super::top_log::{Entry, FoundTop, ListedBlock, ListedBucket, STORED, TopLog, TopRule};
use crate::wire::{Reader, Writer};
use crate::{BucketId, EngineError, Label, Result};
use oblivio_crypto::Tag;
use std::collections::BTreeMap;

/// The most entries that a stored log may have.
const MOST_ENTRIES: u64 = 1 << 32;

/// The buckets that only the log makes durable, descending.
pub(super) fn logged(tree: &Backend) -> Vec<BucketId> {
    let Some(log) = &tree.top.log else { return Vec::new() };
    let mut dirty = tree.cache.dirty();
    dirty.retain(|&bucket| log.holds(bucket));
    dirty
}

/// Appends the index of a log under way.
pub(super) fn write(tree: &Backend, out: &mut Writer<'_>) {
    let Some(log) = &tree.top.log else { return };
    let (dirty, TopRule { buckets, span, places }) = (logged(tree), log.rule);
    out.words(&[buckets, span, places, log.first, log.next, dirty.len() as u64]);
    for bucket in dirty {
        out.words(&[bucket.0, u64::from(tree.cache.slots(bucket))]);
        out.bytes(&stored_tag(tree, bucket).0);
        tree.cache.tags_if_touched(bucket).iter().for_each(|tag| out.bytes(&tag.0));
        let blocks = tree.cache.blocks(bucket).iter();
        let mut alive = blocks.filter(|block| !tree.is_dead(block.header.id));
        for _ in 0..tree.geometry.blocks_per_bucket {
            let (id, label) = match alive.next() {
                None => (EMPTY, 0),
                Some(block) => {
                    out.words(&[block.header.stored_id(), block.header.label.0]);
                    write_home(log, block, out);
                    continue;
                }
            };
            out.words(&[id, label, 0]);
            out.bytes(&Entry::NONE.tag.0);
        }
    }
    let listed = padded(tree.stash.len(), STASH_BOUND);
    out.u64(listed as u64);
    tree.stash.iter().for_each(|block| write_home(log, block, out));
    for _ in tree.stash.len()..listed {
        out.u64(0);
        out.bytes(&Entry::NONE.tag.0);
    }
}

/// The tag of a bucket's stored version; zeros if there is none.
fn stored_tag(tree: &Backend, bucket: BucketId) -> Tag {
    match bucket {
        BucketId::ROOT => tree.root_tag,
        _ => tree.cache.tags_if_touched(BucketId(bucket.0 / 2))[bucket.side()],
    }
}

fn write_home(log: &TopLog, block: &Resident, out: &mut Writer<'_>) {
    let tag = log.entry(block.home).map_or(Entry::NONE.tag, |entry| entry.tag);
    out.u64(block.home);
    out.bytes(&tag.0);
}

/// Reads what [`write()`] wrote; the newest one counts.
///
/// # Errors
/// `State` when the bytes are no index.
pub(super) fn read(tree: &Backend, input: &mut Reader<'_>) -> Result<FoundTop> {
    let broken = || EngineError::State("the index of the top does not parse");
    let [buckets, span, places] = [input.u64()?, input.u64()?, input.u64()?];
    let [first, next, count] = [input.u64()?, input.u64()?, input.u64()?];
    if first == 0 || first > next || next - first > places.min(MOST_ENTRIES) || count > buckets {
        return Err(broken());
    }
    let most = buckets.min(buckets_in(tree.leaves.depth));
    let mut listed = Vec::new();
    for _ in 0..count {
        let it = read_bucket(tree, input)?;
        let right = |block: &ListedBlock| {
            is_home(tree, (first, next), block.home)
                && block.header.label.bucket_at(it.bucket.level()) == it.bucket
        };
        if !(1..=most).contains(&it.bucket.0) || !it.blocks.iter().all(right) {
            return Err(broken());
        }
        listed.push(it);
    }
    let count = input.u64()?;
    let stash = (0..count).map(|_| Ok((input.u64()?, input.tag()?))).collect::<Result<_>>()?;
    let rule = TopRule { buckets, span, places };
    let (entries, wanted) = (first..next, BTreeMap::new());
    Ok(FoundTop { rule, entries, buckets: listed, stash, wanted })
}

/// Whether this may be a block's home: one of these entries, or a slot of a stored bucket.
fn is_home(tree: &Backend, (first, next): (u64, u64), home: u64) -> bool {
    let slots =
        buckets_in(tree.leaves.depth).saturating_add(1) * tree.geometry.blocks_per_bucket as u64;
    match home & STORED {
        0 => (first..next).contains(&home),
        _ => (home & !STORED) < slots,
    }
}

fn read_bucket(tree: &Backend, input: &mut Reader<'_>) -> Result<ListedBucket> {
    let most = tree.geometry.blocks_per_bucket;
    let (bucket, slots) = (BucketId(input.u64()?), input.u64()?);
    if slots > most as u64 || bucket.0 == 0 {
        return Err(EngineError::State("a bucket of the top is none"));
    }
    let (stored, child_tags) = (input.tag()?, [input.tag()?, input.tag()?]);
    let mut blocks = Vec::new();
    for _ in 0..most {
        let [id, label, home] = [input.u64()?, input.u64()?, input.u64()?];
        let tag = input.tag()?;
        if id != EMPTY {
            let header = SlotHeader::of(id, Label(label), SlotHeader::VACANT.mac);
            blocks.push(ListedBlock { header, home, tag });
        }
    }
    Ok(ListedBucket { bucket, stored, child_tags, slots: slots as u8, blocks })
}
