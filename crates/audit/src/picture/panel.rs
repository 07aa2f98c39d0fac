//! One panel of the page: one run, as the storage saw it.

use crate::trace::{MAX_DEPTH, Trace};

/// The accent colour for runs that reveal something.
pub const EXPOSED: [u8; 3] = [200, 60, 40];

/// The accent colour for runs that do not.
pub const HIDDEN: [u8; 3] = [30, 95, 165];

/// One picture of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The text above it.
    pub title: String,
    /// The text below it, in one or two lines.
    pub caption: String,
    /// The colour of the dots.
    pub accent: [u8; 3],
    /// Time and place of each access.
    pub points: Vec<(u64, u64)>,
    /// The end of the time axis; the largest time is below it.
    pub times: u64,
    /// The end of the place axis; the largest place is below it.
    pub places: u64,
}

impl Panel {
    /// A panel of places in a store of `places`, given as (time, place).
    pub fn new(title: &str, caption: &str, points: Vec<(u64, u64)>, places: u64) -> Panel {
        let times = points.iter().map(|p| p.0.saturating_add(1)).max().unwrap_or(1);
        // XML cannot represent control characters.
        let plain = |text: &str| text.chars().filter(|c| !c.is_control()).collect();
        let (title, caption) = (plain(title), plain(caption));
        Panel { title, caption, accent: EXPOSED, points, times, places: places.max(1) }
    }

    /// A panel of a tree's trace. The place of an access is its leaf, from left to right, on a
    /// scale that stays the same while the tree grows.
    pub fn of_trace(title: &str, caption: &str, trace: &Trace) -> Panel {
        const SCALE: u32 = 32;
        let place = |leaf: u64, depth: u32| match depth.min(MAX_DEPTH) {
            // The middle of the leaf's share, so that a shallow tree is not on the edge.
            depth if depth < SCALE => ((2 * leaf + 1) << (SCALE - depth)) >> 1,
            depth => leaf >> (depth - SCALE),
        };
        let leaves = trace.requests.iter().flat_map(|r| r.leaves.iter().map(|&l| (l, r.depth)));
        let points = (0..).zip(leaves).map(|(t, (leaf, depth))| (t, place(leaf, depth)));
        Panel::new(title, caption, points.collect(), 1 << SCALE).accent(HIDDEN)
    }

    /// The same panel in another colour.
    pub fn accent(mut self, accent: [u8; 3]) -> Panel {
        self.accent = accent;
        self
    }

    /// The same panel with its time axis up to `times`, to put it beside another.
    pub fn until(mut self, times: u64) -> Panel {
        self.times = times.max(1);
        self
    }
}
