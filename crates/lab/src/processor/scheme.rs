//! The named configurations of Freecursive, and the time of their accesses.

use super::dram::{Dram, Shape, Timing, Way};
use super::front::Front;
use super::layout::Layout;
use super::machine::Machine;
use crate::papers;
use oblivio_engine::tree::TreeConfig;
use oblivio_testkit::SplitMix64;

/// Lines of 4 GiB.
pub const LINES: u64 = 1 << 26;
/// Levels of the tree for them: the paper's arithmetic. Half of the space in use would give one
/// less.
pub const LEVELS: u32 = 26;
/// The controller's cycles in each part of a path (Table 1).
pub const FRONTEND: f64 = 20.0;
const BACKEND: f64 = 30.0;
const AES: f64 = 21.0;
const SHA3: f64 = 18.0;
/// Memory cycles in the memory's controller before the first request and after the last answer of a
/// phase: the one constant that is fitted to Table 2.
pub const PIPELINE: u64 = 8;
/// Random leaves of a mean.
const LEAVES: u64 = 1000;

/// Levels, and lines of 64 bytes in a bucket.
pub type Tree = (u32, u64);

/// A configuration.
pub struct Scheme {
    /// Its name in the paper.
    pub name: &'static str,
    /// With a PLB: the tree that all blocks are in.
    pub unified: Option<TreeConfig>,
    trees: Vec<Tree>,
    has_mac: bool,
}

impl Scheme {
    /// A PLB and one tree. Buckets with MACs take one line more: our reading of the paper.
    pub fn unified(name: &'static str, config: TreeConfig) -> Self {
        let lines = if config.pmmac { 6 } else { 5 };
        let trees = vec![(LEVELS, lines)];
        Self { name, unified: Some(config), trees, has_mac: config.pmmac }
    }

    /// Without MACs, and with trees of these levels and lines of a bucket: one with a PLB, or one
    /// for the data and one for each level of recursion.
    pub fn of(name: &'static str, unified: Option<TreeConfig>, trees: Vec<Tree>) -> Self {
        Self { name, unified, trees, has_mac: false }
    }

    /// Those of Figure 6, in its order, at 4 GiB. The limits of the map on-chip are as in
    /// `figure7.rs`: H is the paper's.
    pub fn figure6() -> Vec<Self> {
        let wide = |it: TreeConfig| TreeConfig { on_chip_bytes: it.on_chip_bytes * 2, ..it };
        let less = |it: TreeConfig| TreeConfig { on_chip_bytes: it.on_chip_bytes - 1, ..it };
        // H = 4: a tree for the data, and three with blocks of 32 bytes.
        let recursive = vec![(LEVELS, 5), (LEVELS - 3, 3), (LEVELS - 6, 3), (LEVELS - 9, 3)];
        vec![
            Self::of("R_X8", None, recursive),
            Self::unified("P_X16", wide(papers::p_x16(64, LINES))),
            Self::unified("PC_X32", less(papers::pc_x32(64, LINES))),
            Self::unified("PI_X8", papers::pi_x8(64, LINES)),
            Self::unified("PIC_X32", less(papers::pic_x32(64, LINES))),
        ]
    }

    /// Processor cycles of a path of the unified tree; without one, of a path of each tree.
    pub fn path_cycles(&self, machine: Machine) -> f64 {
        let mac = if self.has_mac { SHA3 } else { 0.0 };
        let control = (FRONTEND + BACKEND + AES + mac) * machine.controller_cycle();
        self.trees.iter().map(|&tree| tree_cycles(tree, machine) + control).sum()
    }

    /// Lines of a path of the first tree, and of the others together.
    pub fn path_lines(&self) -> (u64, u64) {
        let lines = self.trees.iter().map(|&(levels, bucket)| u64::from(levels) * bucket);
        (lines.clone().take(1).sum(), lines.skip(1).sum())
    }

    /// The front end; none that has no PLB.
    pub fn front(&self) -> Option<Front> {
        self.unified.as_ref().map(Front::new)
    }
}

/// The mean time of a path that is read and written, in processor cycles.
fn tree_cycles((levels, bucket_lines): Tree, machine: Machine) -> f64 {
    let shape = Shape::paper(machine.channels);
    let layout = Layout::subtrees(levels, bucket_lines, &shape);
    mean_path(&layout, machine, LEAVES, PIPELINE)
}

/// The mean time of a path of any layout that is read and written, in processor cycles. The
/// pipeline, in memory cycles, comes on top of each of the two.
pub fn mean_path(layout: &Layout, machine: Machine, leaves: u64, pipeline: u64) -> f64 {
    let mut dram = Dram::new(Timing::DDR3_1333, Shape::paper(machine.channels));
    let mut dice = SplitMix64::new(1);
    let mut now = 0;
    for _ in 0..leaves {
        let leaf = dice.below(layout.leaves());
        let read = dram.serve(layout.path(leaf), Way::Read, now) + pipeline;
        now = dram.serve(layout.path(leaf), Way::Write, read) + pipeline;
    }
    now as f64 / leaves as f64 * machine.memory_cycle()
}
