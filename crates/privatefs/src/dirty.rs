//! Written pages of a file that wait for the next flush.

use std::collections::BTreeMap;
use std::ops::Range;

/// A page and the parts of it that were written; the rest is zeros and means nothing.
#[derive(Clone, Debug, Default)]
pub struct DirtyPage {
    pub bytes: Vec<u8>,
    /// Apart, in order.
    pub parts: Vec<Range<usize>>,
}

impl DirtyPage {
    /// Puts the written parts over what the page holds.
    pub fn lay_over(&self, base: &mut [u8]) {
        for part in &self.parts {
            if let (Some(to), Some(from)) =
                (base.get_mut(part.clone()), self.bytes.get(part.clone()))
            {
                to.copy_from_slice(from);
            }
        }
    }

    /// Whether nothing of what the page held counts.
    pub fn is_whole(&self) -> bool {
        self.parts.first().is_some_and(|part| part.len() == self.bytes.len())
    }

    fn note(&mut self, mut part: Range<usize>) {
        let touches = |other: &Range<usize>| other.start <= part.end && part.start <= other.end;
        let (joined, apart): (Vec<_>, Vec<_>) = self.parts.drain(..).partition(touches);
        for other in joined {
            part = part.start.min(other.start)..part.end.max(other.end);
        }
        self.parts = apart;
        self.parts.push(part);
        self.parts.sort_by_key(|part| part.start);
    }
}

/// The pages of one file.
#[derive(Clone, Debug, Default)]
pub struct Dirty {
    pub pages: BTreeMap<u64, DirtyPage>,
    /// The end of the furthest byte written since the last flush.
    pub end: u64,
    /// Whether anything was written since the last flush.
    pub any: bool,
}

impl Dirty {
    pub fn write(&mut self, offset: u64, data: &[u8], block_bytes: usize) {
        for (page, part, bytes) in pieces(offset, data.len(), block_bytes) {
            let page = self.pages.entry(page).or_default();
            page.bytes.resize(block_bytes, 0);
            page.bytes[part.clone()].copy_from_slice(&data[bytes]);
            page.note(part);
        }
        self.end = self.end.max(offset + data.len() as u64);
        self.any = true;
    }

    /// Where the last stretch ends that lies beyond a file's end and was not written itself.
    pub fn gap_end(&self, size: u64, block_bytes: usize) -> Option<u64> {
        let (mut at, mut gap) = (size, None);
        for (number, page) in &self.pages {
            let begin = number * block_bytes as u64;
            for part in &page.parts {
                let (start, end) = (begin + part.start as u64, begin + part.end as u64);
                if start > at {
                    gap = Some(start);
                }
                at = at.max(end);
            }
        }
        gap
    }
}

/// The pages that a stretch touches: page, part of it, part of the stretch.
pub fn pieces(
    offset: u64,
    len: usize,
    block_bytes: usize,
) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset + done as u64;
        let (page, begin) = (at / block_bytes as u64, (at % block_bytes as u64) as usize);
        let taken = (block_bytes - begin).min(len - done);
        let piece = (page, begin..begin + taken, done..done + taken);
        done += taken;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_touch_become_one() {
        let mut dirty = Dirty::default();
        dirty.write(10, &[1; 5], 1024);
        dirty.write(20, &[2; 5], 1024);
        assert_eq!(dirty.pages[&0].parts, [10..15, 20..25]);
        dirty.write(15, &[3; 5], 1024);
        assert_eq!(dirty.pages[&0].parts.len(), 1);
        dirty.write(1020, &[4; 10], 1024);
        assert_eq!(
            (dirty.pages[&1].parts.clone(), dirty.end),
            (Vec::from([Range { start: 0, end: 6 }]), 1030)
        );
    }

    #[test]
    fn a_gap_beyond_the_end_is_found() {
        let mut dirty = Dirty::default();
        dirty.write(100, &[1; 5], 1024);
        assert_eq!(dirty.gap_end(40, 1024), Some(100));
        assert_eq!(dirty.gap_end(100, 1024), None);
        dirty.write(105, &[1; 3000], 1024);
        assert_eq!(dirty.gap_end(100, 1024), None);
        dirty.write(9000, &[1; 5], 1024);
        assert_eq!(dirty.gap_end(100, 1024), Some(9000));
        assert_eq!(dirty.gap_end(9000, 1024), None);
    }
}
