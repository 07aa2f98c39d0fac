//! A tree with windows, on whole objects: where buckets are, and what parts restore.

use oblivio_engine::tree::{Eviction, TreeConfig, TreeJob, TreeKeys, TreeOram, Windows};
use oblivio_engine::{
    Action, BlockAnswer, BlockId, BlockOp, BucketId, Carrier, EngineError, Level, Read, Write,
    carry_out,
};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::scaled;
use std::collections::{BTreeMap, HashMap};

const BYTES: usize = 64;

/// A store of whole objects, beside a plain table of all buckets.
struct Objects {
    rule: Windows,
    /// Windows written.
    done: u64,
    objects: HashMap<(Level, u64), Vec<Vec<u8>>>,
    table: HashMap<BucketId, Vec<u8>>,
    /// The leaves shown, in order.
    shown: Vec<u64>,
}

impl Objects {
    fn new(rule: Windows) -> Self {
        let (objects, table) = (HashMap::new(), HashMap::new());
        Self { rule, done: 0, objects, table, shown: Vec::new() }
    }
}

impl Carrier for Objects {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<(), EngineError> {
        self.shown.extend(read.shown.iter().map(|leaf| leaf.0));
        for (extent, buf) in read.parts() {
            let bucket = BucketId(extent.offset);
            let spot = self.rule.spot(bucket, self.done).expect("only stored buckets are read");
            let object = &self.objects[&(spot.level, spot.window)];
            buf.copy_from_slice(&object[spot.index as usize]);
            assert_eq!(buf, &self.table[&bucket], "{bucket:?} is where the counter says");
        }
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<(), EngineError> {
        let window = self.done;
        self.done += 1;
        let mut objects: BTreeMap<Level, BTreeMap<u64, Vec<u8>>> = BTreeMap::new();
        for piece in write.parts() {
            let bucket = BucketId(piece.extent.offset);
            let spot = self.rule.spot(bucket, self.done).expect("written now");
            assert_eq!(spot.window, window, "every written bucket is of this window");
            let object = objects.entry(spot.level).or_default();
            assert!(object.insert(spot.index, piece.data.to_vec()).is_none());
            self.table.insert(bucket, piece.data.to_vec());
        }
        for (level, object) in objects {
            let indices: Vec<u64> = object.keys().copied().collect();
            assert_eq!(indices, (0..self.rule.turns()).collect::<Vec<_>>(), "a whole object");
            let buckets: Vec<_> = object.into_values().collect();
            assert!(buckets.iter().all(|bucket| bucket.len() == buckets[0].len()));
            if let Some(before) = self.rule.before(level, window) {
                self.objects.remove(&(level, before));
            }
            self.objects.insert((level, window), buckets);
        }
        Ok(())
    }
}

/// An engine over objects, and the parts of its commits.
struct Rig {
    config: TreeConfig,
    engine: TreeOram,
    store: Objects,
    parts: Vec<(u64, Vec<u8>)>,
    windows: u64,
}

fn config(rule: Windows, blocks: u64) -> TreeConfig {
    TreeConfig {
        eviction: Eviction::Windows(rule),
        leaf_steps: true,
        ..TreeConfig::new(BYTES, blocks)
    }
}

impl Rig {
    fn new(rule: Windows, blocks: u64) -> Self {
        let config = config(rule, blocks);
        let engine = TreeOram::new(config, 64, TreeKeys::from_seed(5)).expect("a good config");
        Self { config, engine, store: Objects::new(rule), parts: Vec::new(), windows: 0 }
    }

    fn run(&mut self, mut job: TreeJob) -> TreeJob {
        carry_out(&mut job, &mut self.engine, &mut self.store).expect("nobody tampered");
        job
    }

    fn serve(&mut self, ops: Vec<BlockOp>) -> Vec<BlockAnswer> {
        let job = self.engine.begin_batch(ops).expect("idle");
        let answers = self.run(job).into_answers().expect("nothing is lost");
        while self.engine.accesses_to_window() == Some(0) {
            self.window(false);
        }
        answers
    }

    fn window(&mut self, ahead: bool) {
        let turns = self.store.rule.turns();
        let job = match ahead {
            true => self.engine.begin_maintenance(turns),
            false => self.engine.begin_window(),
        };
        let before = self.store.done;
        self.run(job.expect("idle"));
        // A tree that is all in the pool writes nothing.
        self.store.done = before + 1;
        self.windows += 1;
        self.commit();
    }

    fn commit(&mut self) {
        let number = self.parts.last().map_or(1, |part| part.0 + 1);
        let mut part = Vec::new();
        self.engine.part(number, &mut part);
        self.engine.committed();
        self.parts.push((number, part));
        let kept = self.store.rule.kept(self.config.blocks_per_bucket) as usize;
        if self.parts.len() > kept {
            self.parts.remove(0);
        }
    }

    /// Goes on with another engine, restored from the parts.
    fn restore(&mut self) {
        let mut engine =
            TreeOram::new(self.config, 64, TreeKeys::from_seed(5)).expect("a good config");
        let parts: Vec<_> = self.parts.iter().map(|(number, part)| (*number, &part[..])).collect();
        engine.restore_parts(&parts).expect("as written");
        assert_eq!(engine.live_blocks(), self.engine.live_blocks());
        assert_eq!(engine.shapes(), self.engine.shapes());
        self.engine = engine;
    }
}

fn op(dice: &mut SplitMix64, blocks: u64) -> BlockOp {
    let id = BlockId(dice.below(blocks));
    let bytes = dice.next_u64().to_le_bytes().to_vec();
    let action = match dice.below(4) {
        0 => Action::Read,
        1 => Action::Remove,
        _ => Action::Write(bytes),
    };
    BlockOp { id, action }
}

/// Against a map, with growth and shrinking, with engines restored from parts at any commit.
#[test]
fn whatever_is_restored_has_every_block() {
    for (seed, log_turns, pool_levels, every) in
        [(1, 0, 1, 1), (2, 1, 2, 4), (3, 2, 3, 4), (4, 3, 4, 3)]
    {
        let rule = Windows { every, log_turns, pool_levels };
        let mut rig = Rig::new(rule, 2048);
        let mut dice = SplitMix64::new(seed);
        let mut model: HashMap<u64, Vec<u8>> = HashMap::new();
        for step in 0..700 {
            let blocks = rig.engine.capacity();
            let left = rig.engine.accesses_to_window().expect("windows");
            let count = (1 + dice.below(8)).min(left);
            let ops: Vec<_> = (0..count).map(|_| op(&mut dice, blocks)).collect();
            let answers = rig.serve(ops.clone());
            for (op, answer) in ops.into_iter().zip(answers) {
                match op.action {
                    Action::Read => assert_eq!(answer, model.get(&op.id.0).cloned(), "{step}"),
                    Action::Write(mut bytes) => {
                        bytes.resize(BYTES, 0);
                        model.insert(op.id.0, bytes);
                    }
                    _ => {
                        model.remove(&op.id.0);
                    }
                }
            }
            match dice.below(40) {
                0 => {
                    let more = (blocks * 2).min(2048);
                    rig.engine.grow(more).expect("below the capacity");
                }
                1 => {
                    let gone: Vec<u64> = model.keys().copied().filter(|id| id % 3 > 0).collect();
                    let ids: Vec<_> = gone.iter().map(|id| BlockId(*id)).collect();
                    rig.engine.discard(&ids).expect("addressable");
                    gone.iter().for_each(|id| {
                        model.remove(id);
                    });
                }
                2..6 => rig.commit(),
                6 => rig.window(true),
                7..10 => {
                    rig.commit();
                    rig.restore();
                }
                _ => {}
            }
            let (live, class) = (rig.engine.live_blocks(), rig.engine.size_class());
            let next = rig.engine.config().size_class_after(live + 8, class);
            if next != class {
                rig.engine.set_size_class(next).expect("below the capacity");
            }
            assert_eq!(live, model.len() as u64);
        }
        assert!(rig.windows > 50, "{} windows", rig.windows);
    }
}

/// Parts have one length, whatever was done.
#[test]
fn parts_do_not_show_what_was_done() {
    let lengths = |seed: u64, spread: u64| {
        let rule = Windows { every: 4, log_turns: 3, pool_levels: 5 };
        let mut rig = Rig::new(rule, 4096);
        rig.engine.grow(4096).expect("its capacity");
        rig.engine.set_size_class(4096).expect("its capacity");
        let mut dice = SplitMix64::new(seed);
        let mut lengths = Vec::new();
        for _ in 0..400 {
            let ids = (0..8).map(|_| BlockId(dice.below(spread)));
            let write = |id| BlockOp { id, action: Action::Write(vec![1; 9]) };
            rig.serve(ids.map(write).collect());
            lengths.push(rig.parts.last().map(|part| part.1.len()));
        }
        lengths
    };
    assert_eq!(lengths(1, 4096), lengths(2, 7));
}

/// No bytes make an engine panic, and a cut or altered part is refused or harmless.
#[test]
fn damaged_parts_are_refused() {
    let rule = Windows { every: 4, log_turns: 2, pool_levels: 5 };
    let mut rig = Rig::new(rule, 256);
    let mut dice = SplitMix64::new(9);
    for _ in 0..60 {
        let ops = (0..4).map(|_| op(&mut dice, 64)).collect();
        rig.serve(ops);
    }
    let restore = |parts: &[(u64, Vec<u8>)]| {
        let mut engine = TreeOram::new(rig.config, 64, TreeKeys::from_seed(5)).expect("a config");
        let parts: Vec<_> = parts.iter().map(|(number, part)| (*number, &part[..])).collect();
        engine.restore_parts(&parts)
    };
    restore(&rig.parts).expect("as written");
    let last = rig.parts.len() - 1;
    assert!(restore(&rig.parts[last..]).is_err(), "contents are in the others");
    for cut in [0, 7, 100, rig.parts[last].1.len() - 1] {
        let mut parts = rig.parts.clone();
        parts[last].1.truncate(cut);
        assert!(restore(&parts).is_err(), "cut at {cut}");
    }
    for _ in 0..scaled(500) {
        let mut parts = rig.parts.clone();
        let (part, bit) = (dice.below(parts.len() as u64) as usize, dice.below(8));
        let at = dice.below(parts[part].1.len() as u64) as usize;
        parts[part].1[at] ^= 1 << bit;
        let _ = restore(&parts);
    }
}
