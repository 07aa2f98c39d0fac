//! Which frame of memory a page of a program gets.
//!
//! The paper does not say. Frames in the order of first touch keep neighbours together, which is
//! kind to a PLB. Frames scattered over the memory are what a machine has that has run for a while.

use std::collections::HashMap;

const PAGE_BYTES: u64 = 4096;
/// Frames of 4 GiB.
pub const FRAME_BITS: u32 = 20;

/// How frames are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// In the order of first touch.
    FirstTouch,
    /// Scattered by a fixed permutation.
    Scattered,
}

impl Mapping {
    /// Both: every page shows both.
    pub const ALL: [Self; 2] = [Self::FirstTouch, Self::Scattered];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::FirstTouch => "frames by first touch",
            Self::Scattered => "frames scattered",
        }
    }
}

/// The frames of one program.
pub struct Frames {
    mapping: Mapping,
    page_lines: u64,
    frames: HashMap<u64, u64>,
    last: (u64, u64),
}

impl Frames {
    /// No page has one yet. Lines have this many bytes.
    pub fn new(mapping: Mapping, line_bytes: u32) -> Self {
        let page_lines = PAGE_BYTES / u64::from(line_bytes);
        Self { mapping, page_lines, frames: HashMap::new(), last: (u64::MAX, 0) }
    }

    /// The physical line of a virtual one. Beyond 4 GiB frames are given out again.
    pub fn line(&mut self, line: u64) -> u64 {
        let page = line / self.page_lines;
        if self.last.0 != page {
            let next = self.frames.len() as u64 % (1 << FRAME_BITS);
            let frame = match self.mapping {
                Mapping::FirstTouch => next,
                Mapping::Scattered => scatter(next),
            };
            self.last = (page, *self.frames.entry(page).or_insert(frame));
        }
        self.last.1 * self.page_lines + line % self.page_lines
    }
}

/// A permutation of the frames: each step can be undone.
fn scatter(frame: u64) -> u64 {
    let mask = (1 << FRAME_BITS) - 1;
    [0x9_e375, 0x7_feb3, 0xc_2b2b].into_iter().fold(frame, |at, odd| {
        let mixed = at.wrapping_mul(odd | 1) & mask;
        mixed ^ mixed >> (FRAME_BITS / 2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_given_once() {
        let mut given = vec![false; 1 << FRAME_BITS];
        for frame in 0..1 << FRAME_BITS {
            assert!(!std::mem::replace(&mut given[scatter(frame) as usize], true), "{frame}");
        }
        let far = (1..1000).filter(|&at| scatter(at).abs_diff(scatter(at - 1)) > 1000).count();
        assert!(far > 900, "{far}");
    }

    #[test]
    fn a_page_keeps_its_frame() {
        for (mapping, bytes, lines) in [
            (Mapping::FirstTouch, 64, 64),
            (Mapping::Scattered, 64, 64),
            (Mapping::Scattered, 128, 32),
        ] {
            let mut frames = Frames::new(mapping, bytes);
            let first = frames.line(1000 * lines + 7);
            assert_ne!(frames.line(5), first);
            assert_eq!(frames.line(1000 * lines + 8), first + 1);
            assert_ne!(frames.line(1001 * lines), first - 7 + lines, "the third frame");
        }
    }
}
