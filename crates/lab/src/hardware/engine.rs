//! The model beside the engine: the same leaves in the same order.

use super::frontend::{Controller, Request};
use super::secrets::{Keys, Labels};
use super::shape::Shape;
use crate::buckets::LabBuckets;
use crate::{defaults, papers};
use oblivio_crypto::{Entropy, Prf, SeededEntropy};
use oblivio_engine::Address;
use oblivio_engine::tree::{MapFormat, TreeConfig, TreeKeys, TreeOram};
use oblivio_testkit::SplitMix64;

/// The engine's own labels.
struct EngineLabels {
    prf: Prf,
    entropy: SeededEntropy,
    seed: u64,
    draws: u64,
}

impl EngineLabels {
    fn new(seed: u64) -> Self {
        let entropy = SeededEntropy::new(seed);
        Self { prf: Prf::from_seed(seed), entropy, seed: 0, draws: 0 }
    }
}

impl Labels for EngineLabels {
    fn label(&self, id: Address, count: u64) -> u64 {
        self.prf.label(id.0, count)
    }

    fn first_count(&self, group: Address) -> u64 {
        self.prf.draw(1, group.0)
    }

    fn idle(&mut self) -> u64 {
        self.draws += 1;
        self.prf.label(Address::new(0xff, self.draws).0, self.seed)
    }

    fn begin(&mut self) {
        let mut seed = [0; 8];
        self.entropy.fill(&mut seed);
        (self.seed, self.draws) = (u64::from_le_bytes(seed), 0);
    }
}

/// Of the engine's configuration, with the same map on-chip and the same PLB.
fn shape(config: &TreeConfig) -> Shape {
    Shape {
        depth: config.depth(config.capacity).0,
        subtree: 4,
        recursion: config.levels_of_recursion(),
        map: config.map_format,
        macs: config.pmmac,
        plb_rows: config.plb_bytes / 64,
        map_rows: config.on_chip_bytes / 64,
        stash: 308,
        backlog: 16,
        interval: 0,
    }
}

fn configuration(
    config: fn(usize, u64) -> TreeConfig,
    rows: usize,
    levels: u32,
    plb_rows: usize,
) -> TreeConfig {
    let entries = config(64, 1).map_entries_per_block().ilog2();
    let capacity = (rows as u64) << (entries * levels);
    TreeConfig { on_chip_bytes: 64 * rows, plb_bytes: 64 * plb_rows, ..config(64, capacity) }
}

/// Blocks near each other, and far away.
fn blocks(capacity: u64, seed: u64) -> impl FnMut() -> u64 {
    let (mut dice, mut at) = (SplitMix64::new(seed), 0);
    move || {
        at = match dice.below(8) {
            0..3 => dice.below(capacity),
            3 => dice.below(capacity.min(64)),
            _ => (at + 1) % capacity,
        };
        at
    }
}

fn compare(config: TreeConfig, requests: usize) {
    let shape = shape(&config);
    assert_eq!(shape.blocks(), config.capacity, "the model's map leads to all blocks");
    let keys = Keys { label: [1; 16], mac: [2; 16], pad: [3; 16] };
    let mut model = Controller::new(shape, &keys, EngineLabels::new(7));
    model.leaves = Some(Vec::new());
    let mut engine =
        TreeOram::new(config, config.capacity, TreeKeys::from_seed(7)).expect("an engine");
    let (mut store, mut next) = (LabBuckets::showing(), blocks(config.capacity, 1));
    let mut dice = SplitMix64::new(2);
    for number in 0..requests {
        let block = next();
        let write = dice.below(2) == 0;
        let op = if write { defaults::write(block, 64) } else { defaults::read(block) };
        let answers = store.access(&mut engine, vec![op]).expect("an access");
        let request = Request { block, write: write.then_some([block as u8; 64]) };
        let before = model.serve(request).expect("nothing was tampered with");
        if !write {
            let wanted = answers[0].clone().unwrap_or_else(|| vec![0; 64]);
            assert_eq!(before[..], wanted[..], "request {number}");
        }
        let leaves = model.leaves.as_mut().map(std::mem::take).expect("kept");
        let shown: Vec<u32> = store.shown.drain(..).map(|leaf| leaf.0 as u32).collect();
        assert_eq!(leaves, shown, "request {number} of {config:?}");
    }
    let (counts, meters) = (model.counts, engine.meters());
    assert_eq!((counts.hits, counts.misses), (meters.plb_hits, meters.plb_misses));
    assert_eq!(counts.map_paths, meters.map_paths);
    assert_eq!((counts.roll_overs, counts.forced), (meters.group_remaps, 0));
    assert_eq!(model.backend.paths, meters.paths);
    assert!(counts.hits > 100 && counts.misses > 100, "{counts:?}");
    let compressed = matches!(config.map_format, MapFormat::Compressed { individual_bits: ..14 });
    assert!(!compressed || counts.roll_overs > 3, "{counts:?}");
}

/// How many requests: `OBLIVIO_HARDWARE_REQUESTS`, or few.
fn requests() -> usize {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no secret")]
    let asked = std::env::var("OBLIVIO_HARDWARE_REQUESTS");
    asked.ok().and_then(|it| it.parse().ok()).unwrap_or(2000)
}

#[test]
fn the_model_shows_the_engines_leaves() {
    compare(configuration(papers::pi_x8, 4, 4, 128), requests());
    compare(configuration(papers::pic_x32, 2, 3, 16), requests());
    compare(configuration(papers::pc_x32, 2, 3, 32), requests());
    let often = MapFormat::Compressed { individual_bits: 6 };
    let config = configuration(papers::pic_x32, 2, 2, 4);
    compare(TreeConfig { map_format: often, ..config }, requests());
}
