//! The amortized construction (§5, Algorithm 1): a level merges at once when both its buffers are
//! full. A read searches the levels and uses no formula. So this construction is slow and simple,
//! and an oracle for the other one.

use oblivio_engine::BlockId;
use std::collections::BTreeMap;

/// A buffer: blocks in ascending order. Fakes fill the rest of its size.
type Buffer<V> = Vec<(BlockId, V)>;

/// A level: a merge buffer, and a write buffer that is handed on at once.
struct Level<V> {
    merge: Option<Buffer<V>>,
}

/// The amortized construction over values in memory.
pub struct Amortized<V> {
    queue: BTreeMap<BlockId, V>,
    /// Writes since the last flush, rewrites of a queued block included.
    queued: usize,
    bucket_blocks: usize,
    levels: Vec<Level<V>>,
    last: Option<Buffer<V>>,
    flushes: u64,
    /// Block slots written, fakes included.
    written: u64,
}

impl<V> Amortized<V> {
    /// An empty construction with buckets of `bucket_blocks` blocks. Below `levels` levels is the
    /// last level, which has room for everything.
    pub fn new(bucket_blocks: usize, levels: usize) -> Self {
        let levels = (0..levels).map(|_| Level { merge: None }).collect();
        let queue = BTreeMap::new();
        Self { queue, queued: 0, bucket_blocks, levels, last: None, flushes: 0, written: 0 }
    }

    /// Writes a block.
    pub fn write(&mut self, block: BlockId, value: V) {
        self.queue.insert(block, value);
        self.queued += 1;
        if self.queued == self.bucket_blocks {
            let bucket = std::mem::take(&mut self.queue).into_iter().collect();
            self.queued = 0;
            self.flushes += 1;
            self.write_buffer(bucket);
        }
    }

    /// Hands a bucket to the top level, and on down through every full level: `merge(i)`.
    fn write_buffer(&mut self, mut buffer: Buffer<V>) {
        let mut size = self.bucket_blocks as u64;
        for level in &mut self.levels {
            self.written += size;
            match level.merge.take() {
                // The merge buffer is empty: switch the buffers.
                None => {
                    level.merge = Some(buffer);
                    return;
                }
                Some(older) => buffer = merge(older, buffer),
            }
            size *= 2;
        }
        self.written += size;
        let older = self.last.take().unwrap_or_default();
        self.last = Some(merge(older, buffer));
    }

    /// Reads a block by searching the levels from the top (the search invariant, §5).
    pub fn read(&self, block: BlockId) -> Option<&V> {
        if let Some(value) = self.queue.get(&block) {
            return Some(value);
        }
        let levels = self.levels.iter().map(|level| &level.merge);
        let buffers = levels.chain([&self.last]).flatten();
        let mut found = buffers.filter_map(|buffer| {
            let at = buffer.binary_search_by_key(&block, |(block, _)| *block).ok()?;
            Some(&buffer[at].1)
        });
        found.next()
    }

    /// Flushes so far.
    pub fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Block slots written so far, fakes included.
    pub fn written(&self) -> u64 {
        self.written
    }
}

/// Merges two sorted buffers and keeps the newer of two copies.
fn merge<V>(older: Buffer<V>, newer: Buffer<V>) -> Buffer<V> {
    let mut merged = Vec::with_capacity(older.len() + newer.len());
    let (mut older, mut newer) = (older.into_iter().peekable(), newer.into_iter().peekable());
    loop {
        let (old, new) = (older.peek().map(|it| it.0), newer.peek().map(|it| it.0));
        match (old, new) {
            (None, None) => return merged,
            (Some(old), Some(new)) if old < new => merged.extend(older.next()),
            (Some(_), None) => merged.extend(older.next()),
            (old, new) => {
                if old == new {
                    older.next();
                }
                merged.extend(newer.next());
            }
        }
    }
}

#[test]
fn the_newer_of_two_copies_is_kept() {
    let buffer = |values: &[(u64, u8)]| values.iter().map(|it| (BlockId(it.0), it.1)).collect();
    let merged = merge(buffer(&[(1, 0), (3, 0), (5, 0)]), buffer(&[(0, 1), (3, 1), (9, 1)]));
    assert_eq!(merged, buffer(&[(0, 1), (1, 0), (3, 1), (5, 0), (9, 1)]));
}

#[test]
fn reads_find_the_newest_version_whatever_was_merged() {
    for bucket in [1, 3, 8] {
        let mut amortized = Amortized::new(bucket, 4);
        let mut newest = BTreeMap::new();
        for step in 0..3000u64 {
            let block = BlockId(step * step % 97);
            amortized.write(block, step);
            newest.insert(block, step);
            for block in (0..97).map(BlockId) {
                assert_eq!(amortized.read(block), newest.get(&block), "step {step}");
            }
        }
        assert_eq!(amortized.flushes(), 3000 / bucket as u64);
    }
}

/// Each write costs one slot per level: a level is written once each time it fills.
#[test]
fn what_is_written_depends_on_the_number_of_writes_only() {
    let run = |block: fn(u64) -> u64| {
        let mut amortized = Amortized::new(2, 3);
        (0..64u64).for_each(|step| amortized.write(BlockId(block(step)), ()));
        amortized.written()
    };
    assert_eq!(run(|step| step), 64 * 4);
    assert_eq!(run(|_| 5), 64 * 4);
}
