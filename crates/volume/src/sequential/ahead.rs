//! Prefetch: fetches the next blocks from the disk for a sequential reader.
//!
//! An observer of reads learns from them anyway (SECURITY.md), so prefetches may follow from reads.

use oblivio_engine::BlockId;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// The least bytes in a row that may belong to a sequential read.
const LEAST: usize = 64 << 10;
/// Bytes fetched behind the last read, at first.
const WINDOW: usize = 8 << 20;
/// The widest window: it doubles each time. A fetch is at least half a window, because on an aged
/// disk it has a few blocks in each of several places, next to those of the next fetch.
const WIDEST: usize = 32 << 20;
/// The greatest distance of sequential reads from each other: several are in flight, and come in
/// any order.
const NEAR: usize = 8 << 20;
/// Bytes read at once, however long the request.
const FIRST: usize = 1 << 20;
/// Concurrent sequential readers.
const STREAMS: usize = 8;

/// A sequential reader.
struct Stream {
    /// The block behind the last read.
    next: u64,
    /// The block behind the last fetch.
    fetched: u64,
    /// Blocks fetched behind the last read.
    window: u64,
}

/// The sequential readers, and how far ahead of them to fetch.
pub(super) struct Ahead {
    blocks: u64,
    block_bytes: usize,
    /// The one found most recently comes last.
    streams: Mutex<Vec<Stream>>,
}

impl Ahead {
    pub fn new(blocks: u64, block_bytes: usize) -> Self {
        Self { blocks, block_bytes, streams: Mutex::default() }
    }

    /// What to fetch when these blocks, in ascending order, are read.
    pub fn expect(&self, blocks: &[BlockId]) -> Range<u64> {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return 0..0 };
        let (first, end) = (first.0, last.0 + 1);
        if blocks.len() < self.count(LEAST) as usize || end - first != blocks.len() as u64 {
            return 0..0;
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let near = self.count(NEAR);
        let Some(at) = streams.iter().position(|it| it.next.abs_diff(first) <= near) else {
            if streams.len() == STREAMS {
                streams.remove(0);
            }
            streams.push(Stream { next: end, fetched: end, window: self.count(WINDOW) });
            return 0..0;
        };
        let mut stream = streams.remove(at);
        stream.next = stream.next.max(end);
        let from = stream.fetched.max(first + self.count(FIRST));
        let to = (stream.next + stream.window).min(self.blocks);
        let enough = from + stream.window / 2 <= to || (from < to && to == self.blocks);
        if enough {
            stream.fetched = to;
            stream.window = (2 * stream.window).min(self.count(WIDEST));
        }
        streams.push(stream);
        if enough { from..to } else { 0..0 }
    }

    fn count(&self, bytes: usize) -> u64 {
        (bytes / self.block_bytes).max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 4096;

    fn read(ahead: &Ahead, blocks: Range<u64>) -> Range<u64> {
        ahead.expect(&blocks.map(BlockId).collect::<Vec<_>>())
    }

    #[test]
    fn all_that_is_read_in_order_is_fetched_once_and_no_more() {
        for order in [[0, 1, 2, 3], [1, 0, 3, 2]] {
            let ahead = Ahead::new(80_000, BLOCK);
            let mut fetched: Vec<u64> = Vec::new();
            for at in (0..256).step_by(4).flat_map(|group| order.map(|at| group + at)) {
                let next = read(&ahead, at * 256..(at + 1) * 256);
                let window = (WIDEST / BLOCK) as u64;
                assert!(next.end <= (at + 4) * 256 + window, "not further than the window");
                fetched.extend(next);
            }
            assert!(fetched.is_sorted_by(|one, next| *one + 1 == *next), "{order:?}");
            assert!(fetched[0] <= 1024 && fetched.len() as u64 > 250 * 256);
        }
    }

    #[test]
    fn what_is_read_at_random_or_little_is_followed_by_nothing() {
        let ahead = Ahead::new(1 << 30, BLOCK);
        for at in 0..100 {
            assert!(read(&ahead, at * 4..at * 4 + 4).is_empty(), "little");
            let far = at * 7_919 * 4_000 % (1 << 30);
            assert!(read(&ahead, far..far + 64).is_empty(), "anywhere");
        }
        let holes: Vec<BlockId> = (0..100).map(|at| BlockId(2 * at)).collect();
        assert!((0..3).all(|_| ahead.expect(&holes).is_empty()));
        assert!(ahead.expect(&[]).is_empty());
    }

    #[test]
    fn nothing_behind_the_end_is_fetched() {
        let ahead = Ahead::new(1_000, BLOCK);
        assert!(read(&ahead, 0..256).is_empty());
        assert_eq!(read(&ahead, 256..512), 512..1_000);
        assert!(read(&ahead, 512..1_000).is_empty());
    }
}
