//! Buffers for sealed buckets. The writer of the last ones may still hold them.

use crate::SealedBucket;
use std::collections::VecDeque;

/// The most bytes kept for reuse.
const MOST: usize = 8 << 20;
/// The most buffers checked for a free one. The oldest come first, so the first is mostly free.
const LOOKED_AT: usize = 8;

/// Used buffers.
#[derive(Default)]
pub struct SpareBuffers {
    waiting: VecDeque<SealedBucket>,
    bytes: usize,
}

impl SpareBuffers {
    /// Takes all of them. Beyond the limit, it drops the oldest.
    pub fn give(&mut self, used: &mut Vec<SealedBucket>) {
        self.bytes += used.iter().map(|buffer| buffer.capacity()).sum::<usize>();
        self.waiting.extend(used.drain(..));
        while self.bytes > MOST
            && let Some(buffer) = self.waiting.pop_front()
        {
            self.bytes -= buffer.capacity();
        }
    }

    /// A buffer of this length with unspecified content.
    pub fn take(&mut self, len: usize) -> Vec<u8> {
        for _ in 0..self.waiting.len().min(LOOKED_AT) {
            let Some(buffer) = self.waiting.pop_front() else { break };
            match SealedBucket::try_unwrap(buffer) {
                Ok(mut buffer) => {
                    self.bytes -= buffer.capacity();
                    buffer.resize(len, 0);
                    return buffer;
                }
                Err(kept) => self.waiting.push_back(kept),
            }
        }
        vec![0; len]
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_keeps_is_not_written_over() {
        let mut spare = SpareBuffers::default();
        let mut used: Vec<_> = [1, 2].map(|byte| SealedBucket::new(vec![byte; 10])).into();
        let (kept, at) = (SealedBucket::clone(&used[0]), used[1].as_ptr());
        spare.give(&mut used);
        assert!(used.is_empty() && spare.bytes() == 20);
        let next = spare.take(8);
        assert_eq!((next.len(), next.as_ptr()), (8, at), "the one that nobody keeps");
        assert_eq!(spare.take(10), [0; 10], "a new one");
        assert_eq!(**kept, [1; 10]);
        let at = kept.as_ptr();
        drop(kept);
        let next = spare.take(10);
        assert_eq!((next.as_ptr(), spare.bytes()), (at, 0));
    }

    #[test]
    fn they_are_not_more_and_more() {
        let mut spare = SpareBuffers::default();
        let mut used: Vec<_> = (0..10).map(|_| SealedBucket::new(vec![0; 1 << 20])).collect();
        let kept = used.clone();
        spare.give(&mut used);
        assert_eq!(spare.bytes(), MOST);
        assert_eq!(SealedBucket::strong_count(&kept[0]), 1);
        assert_eq!(SealedBucket::strong_count(&kept[9]), 2);
    }
}
