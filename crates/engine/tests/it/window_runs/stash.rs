//! What is left in the stash after each window.

use super::{Rig, read, write};
use oblivio_engine::memory::MemoryBuckets;
use oblivio_engine::tree::Windows;
use oblivio_engine::{BlockId, BlockOp};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::{at_least, scaled};

/// The most that a window may leave: in a tree of one size, and while it grows. Leaves that are to
/// have more slots get them at their next turn, so what comes meanwhile waits.
const MOST: usize = 32;
const MOST_GROWING: usize = 256;
/// Accesses after which a tree that grew is as it stays.
const SETTLED: u64 = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workload {
    /// Any block, read or written.
    Uniform,
    /// All blocks in order.
    Scan,
    /// Nine of ten accesses are to one block of 64.
    Hot,
    /// Only new blocks, until all exist; then all go, and it begins anew.
    Fill,
    /// Blocks go until the tree is much smaller, and come back, with reads in between.
    Breathe,
}

const WORKLOADS: [Workload; 5] =
    [Workload::Uniform, Workload::Scan, Workload::Hot, Workload::Fill, Workload::Breathe];

struct Life {
    rig: Rig<MemoryBuckets>,
    dice: SplitMix64,
    workload: Workload,
    blocks: u64,
    live: Vec<u64>,
    absent: Vec<u64>,
    next: u64,
    grows: bool,
    /// How many windows left each number of blocks.
    left: Vec<u64>,
}

impl Life {
    fn new(workload: Workload, log_blocks: u32, seed: u64) -> Self {
        // Those of the defaults: 511 buckets in memory, 16 turns.
        let rule = Windows { every: 4, log_turns: 4, pool_levels: 9 };
        let blocks = 1 << log_blocks;
        let mut life = Self {
            rig: Rig::new(rule, blocks, MemoryBuckets::default()),
            dice: SplitMix64::new(seed),
            workload,
            blocks,
            live: Vec::new(),
            absent: (0..blocks).rev().collect(),
            next: 0,
            grows: true,
            left: Vec::new(),
        };
        if workload != Workload::Fill {
            while !life.absent.is_empty() {
                let op = life.fresh();
                life.serve(vec![op]);
            }
        }
        if workload != Workload::Fill && workload != Workload::Breathe {
            // Every leaf has its turn.
            for _ in 0..SETTLED.min(4 * blocks) {
                let op = life.any();
                life.serve(vec![op]);
            }
        }
        life.left.clear();
        life
    }

    fn fresh(&mut self) -> BlockOp {
        let id = self.absent.pop().expect("some are absent");
        self.live.push(id);
        write(id)
    }

    /// All of `some` go, the last ones first.
    fn discard(&mut self, some: usize) {
        let gone = self.live.split_off(self.live.len() - some);
        let ids: Vec<BlockId> = gone.iter().map(|id| BlockId(*id)).collect();
        self.rig.engine.discard(&ids).expect("addressable");
        self.absent.extend(gone);
    }

    fn any(&mut self) -> BlockOp {
        let id = self.live[self.dice.below(self.live.len() as u64) as usize];
        if self.dice.below(2) == 0 { read(id) } else { write(id) }
    }

    fn op(&mut self) -> BlockOp {
        match self.workload {
            Workload::Uniform => self.any(),
            Workload::Scan => {
                self.next = (self.next + 1) % self.blocks;
                read(self.next)
            }
            Workload::Hot => {
                let hot = self.blocks >> 6;
                let among = if self.dice.below(10) > 0 { hot } else { self.blocks };
                write(self.dice.below(among))
            }
            Workload::Fill => {
                if self.absent.is_empty() {
                    self.discard(self.live.len());
                }
                self.fresh()
            }
            Workload::Breathe => self.breathe(),
        }
    }

    fn breathe(&mut self) -> BlockOp {
        let least = self.blocks as usize / 16;
        if self.absent.is_empty() {
            self.grows = false;
        } else if self.live.len() <= least {
            self.grows = true;
        }
        match (self.grows, self.dice.below(4)) {
            (true, 0..3) => self.fresh(),
            (false, 0) => {
                self.discard(4.min(self.live.len() - 1));
                self.any()
            }
            _ => self.any(),
        }
    }

    fn serve(&mut self, ops: Vec<BlockOp>) {
        self.rig.serve(ops);
        while self.rig.is_due() {
            self.rig.window();
            let left = self.rig.engine.stash_blocks();
            self.left.resize(self.left.len().max(left + 1), 0);
            self.left[left] += 1;
        }
    }

    fn go(&mut self, accesses: u64) {
        let mut done = 0;
        while done < accesses {
            let count = (1 + self.dice.below(16)).min(self.rig.left());
            let ops = (0..count).map(|_| self.op()).collect();
            self.serve(ops);
            done += count;
        }
    }
}

#[test]
fn a_window_leaves_few_blocks() {
    let accesses = scaled(20_000);
    let log_blocks = if at_least(10.0) { 16 } else { 12 };
    for (seed, workload) in (1..).zip(WORKLOADS) {
        let mut life = Life::new(workload, log_blocks, seed);
        life.go(accesses);
        let windows: u64 = life.left.iter().sum();
        let most = life.left.len() - 1;
        let mean: u64 = (0..).zip(&life.left).map(|(left, times)| left * times).sum();
        let engine = &life.rig.engine;
        eprintln!(
            "{workload:?}: {accesses} accesses, {windows} windows, L = {}, {} blocks: at most \
             {most} left, mean {:.4}, none after {:.3} % of windows; left how often: {:?}",
            engine.depth().0,
            engine.live_blocks(),
            mean as f64 / windows as f64,
            100.0 * life.left[0] as f64 / windows as f64,
            life.left,
        );
        let grows = matches!(workload, Workload::Fill | Workload::Breathe);
        let bound = if grows { MOST_GROWING } else { MOST };
        assert!(most <= bound, "{workload:?}: {most} blocks after a window");
        assert!(windows >= accesses / 64, "{windows} windows");
    }
}
