//! Leaks of labels alone, over enough accesses to show small ones: a bias of one block, late
//! repeats of paths, duplicates in a batch and absent blocks.
//!
//! The places of blocks are left out: a path is its label, and every request reads and writes whole
//! paths.

use super::case::{Case, PlantedTrace};
use crate::checks::union_of_paths;
use crate::trace::{Trace, TraceRequest};
use oblivio_splitmix::SplitMix64;

/// Blocks of the volume. Half of the accesses are to block 0.
const BLOCKS: u64 = 20_000;
/// Operations of a batch, and batches.
const BATCH: usize = 8;
const BATCHES: usize = 4000;

/// The planted flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    /// The hot block goes to the left half of the tree 52 times of 100.
    HotBias,
    /// Every block's last turn is to the left 52 times of 100.
    LastTurn,
    /// 2 % of the hot block's accesses repeat the path of an access at a distance between these
    /// two.
    Echo(usize, usize),
    /// Two operations on a block in a batch show its path once.
    NoDummy,
    /// The second operation's dummy is drawn from half of the tree.
    LeftDummy,
    /// An absent block shows no path.
    NoPathIfAbsent,
    /// An absent block shows a path that follows from its number.
    SamePathIfAbsent,
}

/// The blocks of a batch's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asks {
    Any,
    OneBlock,
    Absent,
}

/// Honest traces or leaky ones, as `leaks` selects.
pub(super) fn cases(leaks: bool) -> Vec<PlantedTrace> {
    let hot = |name, flaw, depth, accesses| PlantedTrace {
        name,
        leaks,
        case: Case::One(hot_trace(flaw, depth, accesses, 7)),
    };
    let batches = |name, flaw, asks| PlantedTrace {
        name,
        leaks,
        case: Case::Pair(batched(flaw, Asks::Any, 1), batched(flaw, asks, 2)),
    };
    let batch =
        |name, flaw, asks| PlantedTrace { name, leaks, case: Case::One(batched(flaw, asks, 3)) };
    if !leaks {
        return vec![
            hot("half of 300,000 accesses to one block", Flaw::None, 14, 300_000),
            batches("batches with duplicates and without", Flaw::None, Asks::OneBlock),
            batches("absent blocks and present ones", Flaw::None, Asks::Absent),
            batch("batches of one block", Flaw::None, Asks::OneBlock),
        ];
    }
    vec![
        hot("52/48 to the left for a block of half the accesses", Flaw::HotBias, 12, 200_000),
        hot("52/48 in the last turn of a path", Flaw::LastTurn, 12, 80_000),
        hot("2 % repeat a path from 5,000 to 8,000 before", Flaw::Echo(5000, 8000), 14, 300_000),
        hot("2 % repeat the path shown 6,000 before", Flaw::Echo(6000, 6001), 12, 100_000),
        hot(
            "2 % repeat a path from 30,000 to 60,000 before",
            Flaw::Echo(30_000, 60_000),
            20,
            200_000,
        ),
        batches("no dummy for a duplicate within a batch", Flaw::NoDummy, Asks::OneBlock),
        batch("a duplicate's dummy in the left half", Flaw::LeftDummy, Asks::OneBlock),
        batches("no path for an absent block", Flaw::NoPathIfAbsent, Asks::Absent),
        batch("an absent block's path is always the same", Flaw::SamePathIfAbsent, Asks::Absent),
    ]
}

fn request(leaves: Vec<u64>, depth: u32) -> TraceRequest {
    let buckets = union_of_paths(&leaves, depth);
    TraceRequest { leaves, depth, reads: buckets, writes: buckets, ..TraceRequest::default() }
}

/// Single accesses, every second one to the hot block.
fn hot_trace(flaw: Flaw, depth: u32, accesses: usize, seed: u64) -> Trace {
    let mut rng = SplitMix64::new(seed);
    let mut labels: Vec<u64> = (0..BLOCKS).map(|_| rng.below(1 << depth)).collect();
    let mut shown: Vec<u64> = Vec::with_capacity(accesses);
    for t in 0..accesses {
        let hot = rng.chance(0.5);
        let block = if hot { 0 } else { 1 + rng.below(BLOCKS - 1) as usize };
        let mut leaf = labels[block];
        if let Flaw::Echo(from, to) = flaw
            && hot
            && t > to
            && rng.chance(0.02)
        {
            leaf = shown[t - from - rng.below((to - from) as u64) as usize];
        }
        shown.push(leaf);
        let fresh = rng.below(1 << depth);
        labels[block] = match flaw {
            Flaw::HotBias if hot && rng.chance(0.04) => fresh >> 1,
            Flaw::LastTurn if rng.chance(0.04) => fresh & !1,
            _ => fresh,
        };
    }
    let requests = shown.into_iter().map(|leaf| request(vec![leaf], depth)).collect();
    Trace { depth, requests }
}

fn batched(flaw: Flaw, asks: Asks, seed: u64) -> Trace {
    const DEPTH: u32 = 12;
    let mut rng = SplitMix64::new(seed);
    let mut labels: Vec<u64> = (0..BLOCKS).map(|_| rng.below(1 << DEPTH)).collect();
    let mut requests = Vec::new();
    for _ in 0..BATCHES {
        let one = rng.below(BLOCKS);
        let (mut leaves, mut met) = (Vec::new(), Vec::new());
        for _ in 0..BATCH {
            let block = if asks == Asks::OneBlock { one } else { rng.below(BLOCKS) };
            let (again, fresh) = (met.contains(&block), rng.below(1 << DEPTH));
            met.push(block);
            match flaw {
                Flaw::NoDummy if again => continue,
                Flaw::LeftDummy if again => leaves.push(fresh >> 1),
                _ if again => leaves.push(fresh),
                Flaw::NoPathIfAbsent if asks == Asks::Absent => continue,
                // Few distinct absent blocks are accessed.
                Flaw::SamePathIfAbsent if asks == Asks::Absent => {
                    leaves.push(SplitMix64::new(block % 200).below(1 << DEPTH));
                }
                _ => leaves.push(std::mem::replace(&mut labels[block as usize], fresh)),
            }
        }
        requests.push(request(leaves, DEPTH));
    }
    Trace { depth: DEPTH, requests }
}
