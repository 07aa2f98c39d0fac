//! Figure 6: several segments of a file at a time. The paper's groups, groups with our schedule,
//! and our batches, side by side; and what the store can distinguish.

use super::figure6_report::{self, Row, Shown};
use super::groups::{Groups, Rewrites, trace};
use super::ranks;
use super::sizes::{draw, shuffle};
use super::space::far;
use crate::buckets::LabBuckets;
use crate::clock::CpuClock;
use crate::defaults;
use crate::growth::fill;
use anyhow::Result;
use oblivio_audit::{AuditOptions, compare};
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram};
use oblivio_testkit::SplitMix64;

const SEGMENT: u64 = 64 << 10;
/// The stash size at which the paper starts to evict.
const PAPER_STASH: usize = 100;
/// Segments in each file of the test whether the store can distinguish re-reading from reading.
const EQUAL: usize = 24;
/// Group accesses of a workload, about, over which extra paths are counted.
const ACCESSES: usize = 1000;
/// Separate stores for each workload: enough for an exact test at the rate below.
const STORES: usize = 16;
/// The false-alarm rate of all comparisons together.
const FALSE_ALARMS: f64 = 1e-6;

/// The ways to access a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Paper,
    Padded,
    Grouped,
    Batched,
}

impl Way {
    const ALL: [Way; 4] = [Way::Paper, Way::Padded, Way::Grouped, Way::Batched];

    fn name(self) -> &'static str {
        match self {
            Way::Paper => "a: groups, on demand",
            Way::Padded => "b: groups, schedule",
            Way::Grouped => "b': not padded",
            Way::Batched => "c: batches",
        }
    }

    fn slots(self) -> usize {
        if self == Way::Paper { 3 } else { 4 }
    }

    fn rewrites(self) -> Rewrites {
        match self {
            Way::Paper => Rewrites::OnDemand { stash: PAPER_STASH },
            _ => Rewrites::Scheduled { every: 3, padded: self == Way::Padded },
        }
    }
}

/// Files as groups: the groups of each file, and the blocks of each group.
struct Files {
    groups: Vec<Vec<u32>>,
    sizes: Vec<usize>,
}

impl Files {
    fn new(segments: &[usize], group: usize) -> Self {
        let (mut groups, mut sizes) = (Vec::new(), Vec::new());
        for &segments in segments {
            let first = sizes.len() as u32;
            let parts = segments.div_ceil(group);
            sizes.extend((0..parts).map(|part| group.min(segments - part * group)));
            groups.push((first..sizes.len() as u32).collect());
        }
        Self { groups, sizes }
    }
}

/// The cost of reading files.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    read: u64,
    written: u64,
    calls: u64,
    stash: usize,
    extra: f64,
    gave_up: bool,
}

/// One way at one group size.
#[derive(Default)]
struct Point {
    group: usize,
    paper_files: Cost,
    equal: Cost,
    equal_segments: usize,
    /// Extra paths for 1,000 group accesses: one file again and again, and many files.
    extra: (f64, f64),
    p_value: f64,
    leaks: bool,
    /// The stash peak of both runs, in blocks.
    stash: usize,
}

/// Either of the counted stores.
enum Tree {
    Model(Box<Groups>),
    Engine(Box<Batched>),
}

/// The engine itself with tiny blocks: buckets are counted, not their bytes.
struct Batched {
    engine: TreeOram,
    store: LabBuckets,
    /// The first block of each group.
    first: Vec<u64>,
    sizes: Vec<usize>,
    calls: u64,
    stash: usize,
}

impl Batched {
    fn new(files: &Files, depth: u32) -> Result<Self> {
        let blocks = files.sizes.iter().sum::<usize>() as u64;
        let class = (2u64 << depth).max(blocks);
        let config = TreeConfig {
            eviction: Eviction::Scheduled { every: 3 },
            cache_bytes: 0,
            ..TreeConfig::new(64, class)
        };
        let mut engine = TreeOram::new(config, class, TreeKeys::from_seed(9))?;
        let mut store = LabBuckets::showing();
        fill(&mut engine, &mut store, blocks)?;
        let mut next = 0;
        let first = files.sizes.iter().map(|&size| {
            next += size as u64;
            next - size as u64
        });
        let first = first.collect();
        Ok(Self { engine, store, first, sizes: files.sizes.clone(), calls: 0, stash: 0 })
    }

    /// One batch: the blocks of a group, each on its own path.
    fn access(&mut self, group: u32) -> Result<Vec<u64>> {
        let (first, size) = (self.first[group as usize], self.sizes[group as usize]);
        self.store.shown.clear();
        let calls = self.store.read_calls + self.store.write_calls;
        let ops = (first..first + size as u64).map(defaults::read).collect();
        self.store.access(&mut self.engine, ops)?;
        self.calls += self.store.read_calls + self.store.write_calls - calls;
        let mut drawn: Vec<_> = self.store.shown.iter().map(|leaf| leaf.0).collect();
        self.engine.committed();
        self.stash = self.stash.max(self.engine.stash_blocks());
        drawn.truncate(size);
        Ok(drawn)
    }
}

impl Tree {
    fn new(way: Way, group: usize, files: &Files, depth: u32, seed: u64) -> Result<Self> {
        Ok(match way {
            Way::Batched => Tree::Engine(Box::new(Batched::new(files, depth)?)),
            _ => {
                let (slots, rewrites) = (way.slots(), way.rewrites());
                let model = Groups::new(depth, slots, group, rewrites, &files.sizes, seed);
                Tree::Model(Box::new(model))
            }
        })
    }

    /// Reads a file; returns the leaves shown by each access.
    fn read(&mut self, file: &[u32]) -> Result<Vec<Vec<u64>>> {
        match self {
            Tree::Model(model) => Ok(file.iter().map(|&group| model.access(group)).collect()),
            Tree::Engine(engine) => file.iter().map(|&group| engine.access(group)).collect(),
        }
    }

    fn reset(&mut self) {
        match self {
            Tree::Model(model) => model.reset(),
            Tree::Engine(engine) => {
                engine.store.reset_counts();
                (engine.calls, engine.stash) = (0, 0);
            }
        }
    }

    fn cost(&self, accesses: usize) -> Cost {
        match self {
            Tree::Model(model) => Cost {
                read: model.read,
                written: model.written,
                calls: model.calls_read + model.calls_written,
                stash: model.stash_peak,
                extra: 1000.0 * model.extra as f64 / accesses.max(1) as f64,
                gave_up: model.gave_up,
            },
            Tree::Engine(engine) => Cost {
                read: engine.store.reads,
                written: engine.store.writes,
                calls: engine.calls,
                stash: engine.stash,
                ..Cost::default()
            },
        }
    }
}

/// The depth at which the tree is closest to half full.
fn half_full(blocks: usize, slots: usize) -> u32 {
    let off =
        |depth: u32| (blocks as f64 / (slots as f64 * f64::from((2 << depth) - 1)) - 0.5).abs();
    (1..24).min_by(|a, b| off(*a).total_cmp(&off(*b))).unwrap_or(1)
}

/// Reads all files in random order, once to warm up and once counted.
fn read_all(way: Way, group: usize, segments: &[usize]) -> Result<Cost> {
    let files = Files::new(segments, group);
    let depth = half_full(segments.iter().sum(), way.slots());
    let mut tree = Tree::new(way, group, &files, depth, 1)?;
    let mut order: Vec<usize> = (0..segments.len()).collect();
    for round in 0..2 {
        tree.reset();
        shuffle(&mut order, round);
        for &file in &order {
            tree.read(&files.groups[file])?;
        }
    }
    Ok(tree.cost(files.sizes.len()))
}

/// Tests whether the store can distinguish one file read again and again from many files of its
/// size.
fn tell(way: Way, point: &mut Point, depth: u32, looks: usize) -> Result<()> {
    let group = point.group;
    let blocks = way.slots() * ((2 << depth) - 1) / 2;
    let segments = vec![EQUAL; blocks / EQUAL];
    let files = Files::new(&segments, group);
    let requests = ACCESSES.div_ceil(EQUAL.div_ceil(group));
    let stores = if way == Way::Paper { STORES } else { 1 };
    let (mut one, mut many) = (Vec::new(), Vec::new());
    let mut traces = Vec::new();
    for store in 0..stores as u64 {
        for again in [true, false] {
            let mut rng = SplitMix64::new(2 * store + u64::from(again) + 100);
            let seed = 2 * store + u64::from(again);
            let mut tree = Tree::new(way, group, &files, depth, seed)?;
            let mut any = || &files.groups[rng.below(segments.len() as u64) as usize];
            // Until the stash has reached its long-run size.
            for _ in 0..segments.len() * 2 {
                tree.read(any())?;
                if tree.cost(1).gave_up {
                    break;
                }
            }
            tree.reset();
            let mut shown = Vec::new();
            for _ in 0..requests {
                let file = if again { &files.groups[0] } else { any() };
                shown.extend(tree.read(file)?);
            }
            let Cost { extra, stash, gave_up, .. } = tree.cost(shown.len());
            point.stash = point.stash.max(stash);
            point.equal.gave_up |= gave_up;
            if again {
                one.push(extra)
            } else {
                many.push(extra)
            }
            traces.push(shown);
        }
    }
    let mean = |extra: &[f64]| extra.iter().sum::<f64>() / extra.len() as f64;
    let rate = FALSE_ALARMS / looks as f64;
    point.p_value = ranks::p_value(&one, &many);
    point.extra = (mean(&one), mean(&many));
    point.leaks = match way {
        Way::Paper => point.p_value < rate,
        _ => {
            // The number of paths of each access, and the places of those outside the schedule.
            let lengths = |shown: &[Vec<u64>]| shown.iter().map(Vec::len).collect::<Vec<_>>();
            let drawn = |shown: &[Vec<u64>]| {
                let drawn = if way == Way::Batched { usize::MAX } else { 1 };
                let of = |leaves: &Vec<u64>| leaves.iter().copied().take(drawn).collect();
                trace(depth, shown.iter().map(of).collect::<Vec<_>>())
            };
            let options = AuditOptions { false_alarm_rate: rate, ..AuditOptions::default() };
            lengths(&traces[0]) != lengths(&traces[1])
                || !compare(&drawn(&traces[0]), &drawn(&traces[1]), &options).passed()
        }
    };
    Ok(())
}

/// Processor seconds to read or write a sealed bucket, with segments of 64 KiB.
fn seconds_per_bucket(slots: usize, quick: bool) -> Result<f64> {
    let blocks = if quick { 32 } else { 512 };
    let eviction = match slots {
        3 => Eviction::ReadPaths { extra_every: 0 },
        _ => Eviction::Scheduled { every: 3 },
    };
    let config = TreeConfig {
        blocks_per_bucket: slots,
        eviction,
        cache_bytes: 0,
        ..TreeConfig::new(SEGMENT as usize, blocks)
    };
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(1))?;
    let mut store = LabBuckets::new();
    fill(&mut engine, &mut store, blocks)?;
    store.reset_counts();
    let (clock, mut rng) = (CpuClock::start(), SplitMix64::new(1));
    for _ in 0..if quick { 8 } else { 1500 } {
        store.access(&mut engine, vec![defaults::read(rng.below(blocks))])?;
        engine.committed();
    }
    Ok(clock.seconds() / (store.reads + store.writes) as f64)
}

/// Runs the experiment.
///
/// # Errors
/// Those of the engine and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let sizes = draw(if quick { 60 } else { 1000 }, 1);
    let segments: Vec<usize> = sizes.iter().map(|size| size.div_ceil(SEGMENT) as usize).collect();
    let depth = if quick { 7 } else { 11 };
    let groups: Vec<usize> = if quick { vec![1, 4] } else { (1..=8).collect() };
    let looks = Way::ALL.len() * groups.len();
    let mut ways = Vec::new();
    for way in Way::ALL {
        let mut points = Vec::new();
        for &group in &groups {
            let paper_files = read_all(way, group, &segments)?;
            let files = way.slots() * ((2 << depth) - 1) / 2 / EQUAL;
            let equal = read_all(way, group, &vec![EQUAL; files])?;
            let equal_segments = files * EQUAL;
            let mut point = Point { group, paper_files, equal, equal_segments, ..Point::default() };
            tell(way, &mut point, depth, looks)?;
            eprintln!("{} n = {group}: {:.0?} extra", way.name(), point.extra);
            points.push(point);
        }
        ways.push((way, points));
    }
    let costs = [seconds_per_bucket(3, quick)?, seconds_per_bucket(4, quick)?];
    let (equal, stores, false_alarms) = (EQUAL, STORES, FALSE_ALARMS);
    let shown = Shown { sizes: &sizes, depth, costs, equal, stores, false_alarms };
    figure6_report::write(&shown, &rows(&ways, &sizes, costs), write)
}

fn rows(ways: &[(Way, Vec<Point>)], sizes: &[u64], costs: [f64; 2]) -> Vec<Row> {
    let bytes = sizes.iter().sum::<u64>() as f64;
    let segments = sizes.iter().map(|size| size.div_ceil(SEGMENT)).sum::<u64>() as f64;
    let mut rows = Vec::new();
    for (way, points) in ways {
        let slots = way.slots() as f64;
        let cost = costs[way.slots() - 3];
        for point in points {
            let equal_segments = point.equal_segments as f64;
            let buckets = |cost: &Cost| (cost.read + cost.written) as f64;
            let (paper, equal) = (buckets(&point.paper_files), buckets(&point.equal));
            let seconds = paper * cost;
            let stored = (paper * slots) as u64 * SEGMENT;
            rows.push(Row {
                way: way.name(),
                group: point.group,
                moved: (slots * paper / segments, slots * equal / equal_segments),
                calls: point.paper_files.calls,
                rate: (
                    bytes / 1e6 / seconds,
                    equal_segments * SEGMENT as f64 / 1e6 / (equal * cost),
                ),
                far: bytes / 1e6 / (seconds + far(point.paper_files.calls, stored)),
                stash: point.stash.max(point.equal.stash).max(point.paper_files.stash),
                extra: point.extra,
                p_value: point.p_value,
                leaks: point.leaks,
                gave_up: point.equal.gave_up || point.paper_files.gave_up,
            });
        }
    }
    rows
}
