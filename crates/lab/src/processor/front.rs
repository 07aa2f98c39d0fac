//! The front end of Freecursive, counted: which paths an access needs, without a tree.
//!
//! The same map blocks, PLB sets and schedule as in the engine (`tree/map_walk.rs`), which needs
//! minutes for what this counts in a second. A test holds the two together.

use oblivio_engine::tree::{MapFormat, TreeConfig};

/// Counts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses.
    pub accesses: u64,
    /// Paths for data, map blocks and group remaps.
    pub paths: u64,
    /// Those for map blocks.
    pub map_paths: u64,
    /// Lookups in the PLB that found their block.
    pub plb_hits: u64,
    /// Those that did not.
    pub plb_misses: u64,
}

/// A place of the PLB.
#[derive(Clone, Copy, Default)]
struct Way {
    /// A map block's level and number; level 0 for none.
    block: (u32, u64),
    used: u64,
}

/// The front end of a tree so configured.
pub struct Front {
    /// Levels of recursion: data and the map blocks in the tree.
    levels: u32,
    entry_bits: u32,
    /// Of an individual counter; `None` if no group is ever remapped.
    individual_bits: Option<u32>,
    ways: usize,
    plb: Vec<Way>,
    clock: u64,
    counts: Counts,
}

impl Front {
    /// With nothing in the PLB.
    pub fn new(config: &TreeConfig) -> Self {
        let blocks = config.plb_bytes / config.block_bytes;
        let ways = config.plb_ways.clamp(1, blocks.max(1));
        let sets = (blocks / ways).max(1);
        Self {
            levels: config.levels_of_recursion() as u32,
            entry_bits: config.map_entries_per_block().ilog2(),
            individual_bits: match config.map_format {
                MapFormat::Compressed { individual_bits } => Some(individual_bits),
                MapFormat::Flat { .. } => None,
            },
            ways,
            plb: vec![Way::default(); sets * ways],
            clock: 0,
            counts: Counts::default(),
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// An access to a data block. Its paths.
    pub fn access(&mut self, block: u64) -> u64 {
        let mut hit = 1;
        while hit < self.levels && !self.take(hit, block) {
            hit += 1;
        }
        let map_paths = u64::from(hit - 1);
        self.counts.plb_misses += map_paths;
        self.counts.plb_hits += u64::from(hit < self.levels);
        // Those that were fetched, and the one that was there.
        for level in 1..=hit.min(self.levels - 1) {
            self.insert(level, block >> (self.entry_bits * level));
        }
        let paths = map_paths + 1 + self.maintenance();
        self.counts.accesses += 1;
        self.counts.map_paths += map_paths;
        self.counts.paths += paths;
        paths
    }

    /// Paths for group remaps that this access owes, twice the need (section 5.2.2).
    fn maintenance(&self) -> u64 {
        let Some(bits) = self.individual_bits else { return 0 };
        let share = |accesses: u64| (accesses * 64) >> bits;
        share(self.counts.accesses + 1) - share(self.counts.accesses)
    }

    fn set(&mut self, level: u32, number: u64) -> &mut [Way] {
        let sets = (self.plb.len() / self.ways) as u64;
        let mixed = number.wrapping_add(u64::from(level).wrapping_mul(0x9e37_79b9));
        let first = (mixed % sets) as usize * self.ways;
        &mut self.plb[first..first + self.ways]
    }

    /// Takes the map block of a level out of the PLB, if it is there.
    fn take(&mut self, level: u32, block: u64) -> bool {
        let number = block >> (self.entry_bits * level);
        let found = self.set(level, number).iter_mut().find(|way| way.block == (level, number));
        found.map(|way| *way = Way::default()).is_some()
    }

    fn insert(&mut self, level: u32, number: u64) {
        self.clock += 1;
        let used = self.clock;
        // An empty way, or the one not used for longest.
        if let Some(way) = self.set(level, number).iter_mut().min_by_key(|way| way.used) {
            *way = Way { block: (level, number), used };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets::LabBuckets;
    use crate::processor::frames::{Frames, Mapping};
    use crate::processor::scheme::{LINES, Scheme};
    use crate::{defaults, papers};
    use oblivio_engine::tree::{TreeKeys, TreeOram};
    use oblivio_testkit::SplitMix64;
    use oblivio_tracer::record::Reader;
    use std::path::Path;

    /// Near and far lines of a gigabyte.
    fn lines(count: usize, seed: u64) -> Vec<u64> {
        let (mut dice, mut at) = (SplitMix64::new(seed), 0);
        let next = |_| {
            at = match dice.below(8) {
                0 => dice.below(1 << 24),
                1 => dice.below(1 << 14),
                _ => (at + 1) % (1 << 24),
            };
            at
        };
        (0..count).map(next).collect()
    }

    fn configurations() -> Vec<TreeConfig> {
        let blocks = 1 << 24;
        let few = |config: TreeConfig| TreeConfig { plb_bytes: 8 << 10, ..config };
        let often = MapFormat::Compressed { individual_bits: 8 };
        vec![
            papers::p_x16(64, blocks),
            papers::pi_x8(64, blocks),
            papers::pic_x32(64, blocks),
            few(papers::pc_x32(64, blocks)),
            TreeConfig { plb_ways: 4, on_chip_bytes: 4 << 10, ..few(papers::pc_x32(64, blocks)) },
            TreeConfig { map_format: often, ..papers::pc_x32(64, blocks) },
        ]
    }

    /// The engine itself reads as many paths, and finds as many map blocks in the PLB.
    fn compare(config: TreeConfig, lines: impl IntoIterator<Item = u64>) -> Counts {
        let mut engine =
            TreeOram::new(config, config.capacity, TreeKeys::from_seed(1)).expect("an engine");
        let (mut store, mut front) = (LabBuckets::new(), Front::new(&config));
        for line in lines {
            store.access(&mut engine, vec![defaults::write(line, 8)]).expect("an access");
            front.access(line);
        }
        let (found, meters) = (front.counts(), engine.meters());
        assert_eq!(found.paths, meters.paths, "{config:?}");
        assert_eq!(found.map_paths, meters.map_paths, "{config:?}");
        assert_eq!((found.plb_hits, found.plb_misses), (meters.plb_hits, meters.plb_misses));
        found
    }

    #[test]
    fn it_counts_what_the_engine_does() {
        for (seed, config) in configurations().into_iter().enumerate() {
            let found = compare(config, lines(2000, seed as u64));
            assert!(found.plb_hits > 100 && found.plb_misses > 100, "{found:?}");
        }
    }

    /// On programs' misses, in the configurations of the figures. All of a fixture's with
    /// `OBLIVIO_FRONT_RECORDS=100000`.
    #[test]
    fn it_counts_what_the_engine_does_for_programs() {
        let records = std::env::var("OBLIVIO_FRONT_RECORDS").ok();
        let records = records.map_or(3000, |it| it.parse().expect("a number of records"));
        let [p_x16, pc_x32, pi_x8, pic_x32] = ["P_X16", "PC_X32", "PI_X8", "PIC_X32"].map(|name| {
            let schemes = Scheme::figure6().into_iter();
            let found = schemes.filter(|it| it.name == name).find_map(|it| it.unified);
            found.expect("a scheme of Figure 6")
        });
        let configurations = [
            ("P_X16", 64, p_x16),
            ("PI_X8", 64, pi_x8),
            ("PC_X32, PLB of 8 KB", 64, TreeConfig { plb_bytes: 8 << 10, ..pc_x32 }),
            ("PC_X32, fully associative", 64, TreeConfig { plb_ways: 1024, ..pc_x32 }),
            ("PIC_X32", 64, pic_x32),
            ("PC_X64", 128, papers::pc_x32(128, LINES / 2)),
        ];
        for program in ["bzip2", "perltidy", "quantum"] {
            for (at, (name, block, config)) in configurations.into_iter().enumerate() {
                let mapping = Mapping::ALL[at % 2];
                let found = compare(config, fixture(program, mapping, block, records));
                eprintln!("{program}, {name}, {}: {found:?}", mapping.name());
                assert!(found.plb_hits > 0 && found.plb_misses > 0, "{program}, {name}: {found:?}");
            }
        }
    }

    /// The blocks of the beginning of a trace in the repository.
    fn fixture(program: &str, mapping: Mapping, block: u64, records: usize) -> Vec<u64> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/misses");
        let bytes = std::fs::read(folder.join(format!("{program}.trace"))).expect("a fixture");
        let reader = Reader::new(&bytes[..]).expect("a trace");
        let line_bytes = reader.header().about.geometry.line;
        let mut frames = Frames::new(mapping, line_bytes);
        let lines = reader.take(records).map(|it| frames.line(it.expect("a record").line));
        lines.map(|line| line * u64::from(line_bytes) / block).collect()
    }
}
