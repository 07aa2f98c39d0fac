//! Every bucket is where the counter of the windows says, while the tree grows and shrinks.

use super::{Rig, read, write};
use oblivio_engine::tree::Windows;
use oblivio_engine::{BlockId, BucketId, Carrier, EngineError, Level, Read, Write};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::scaled;
use std::collections::{BTreeMap, HashMap};

/// A store of whole objects. Beside it, the window that wrote each bucket last, by a table: the
/// counter's arithmetic must agree with it.
struct Objects {
    rule: Windows,
    /// Windows written.
    done: u64,
    objects: HashMap<(u32, u64), Vec<u8>>,
    /// One more than the window that wrote the bucket of this number; 0 for none.
    table: Vec<u32>,
    deepest: u32,
    reads: u64,
    written: u64,
}

impl Objects {
    fn new(rule: Windows) -> Self {
        let (objects, table) = (HashMap::new(), Vec::new());
        Self { rule, done: 0, objects, table, deepest: 0, reads: 0, written: 0 }
    }

    /// The bucket of a level that a turn goes through: the turn's low bits, reversed.
    fn bucket(turn: u64, level: u32) -> u64 {
        let low = turn & ((1 << level) - 1);
        1 << level | (0..level).fold(0, |place, bit| place << 1 | (low >> bit & 1))
    }
}

impl Carrier for Objects {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<(), EngineError> {
        for (extent, buf) in read.parts() {
            let bucket = BucketId(extent.offset);
            let spot = self.rule.spot(bucket, self.done).expect("only stored buckets are read");
            let last = self.table.get(extent.offset as usize).copied().unwrap_or(0);
            assert_eq!(spot.window + 1, u64::from(last), "{bucket:?} after {} windows", self.done);
            let object = &self.objects[&(spot.level.0, spot.window)];
            let len = object.len() / self.rule.turns() as usize;
            assert_eq!(len, buf.len(), "{bucket:?} has another length");
            let at = spot.index as usize * len;
            buf.copy_from_slice(&object[at..at + len]);
            self.reads += 1;
        }
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<(), EngineError> {
        let (window, turns) = (self.done, self.rule.turns());
        let mut levels: BTreeMap<u32, BTreeMap<u64, &[u8]>> = BTreeMap::new();
        for piece in write.parts() {
            let bucket = piece.extent.offset;
            assert!(levels.entry(bucket.ilog2()).or_default().insert(bucket, piece.data).is_none());
        }
        for (level, buckets) in levels {
            assert!(level >= self.rule.pool_levels, "the pool is not stored");
            let mut object = Vec::new();
            for turn in window * turns..(window + 1) * turns {
                let bucket = Self::bucket(turn, level);
                let data = buckets.get(&bucket).expect("whole objects only");
                object.extend_from_slice(data);
                self.table.resize(self.table.len().max(bucket as usize + 1), 0);
                self.table[bucket as usize] = window as u32 + 1;
            }
            assert_eq!(buckets.len() as u64, turns, "nothing else at level {level}");
            assert_eq!(object.len() % turns as usize, 0, "buckets of one length");
            self.written += turns;
            self.objects.insert((level, window), object);
        }
        Ok(())
    }
}

/// A run: blocks come until there are as many as a goal says, or go. Then there is another goal.
struct Run {
    rig: Rig<Objects>,
    dice: SplitMix64,
    live: Vec<u64>,
    absent: Vec<u64>,
    goal: usize,
    turned: u64,
}

impl Run {
    fn new(rule: Windows, blocks: u64, seed: u64) -> Self {
        let rig = Rig::new(rule, blocks, Objects::new(rule));
        let absent = (0..blocks).rev().collect();
        let goal = blocks as usize;
        Self { rig, dice: SplitMix64::new(seed), live: Vec::new(), absent, goal, turned: 0 }
    }

    /// Draws a goal once the last one is reached and the tree has its size.
    fn aim(&mut self) {
        if self.live.len() == self.goal && !self.rig.engine.is_shrinking() {
            let all = self.live.len() + self.absent.len();
            // Often small: that is where levels come and go.
            let most = all as u64 >> self.dice.below(8);
            self.goal = self.dice.below(most) as usize + 1;
            self.turned += 1;
        }
    }

    /// Some accesses: of new blocks below the goal, of any others.
    fn batch(&mut self) {
        let count = (1 + self.dice.below(64)).min(self.rig.left());
        let mut ops = Vec::new();
        for _ in 0..count {
            let grows = self.live.len() < self.goal && self.dice.below(8) > 0;
            if let Some(id) = if grows { self.absent.pop() } else { None } {
                self.live.push(id);
                ops.push(write(id));
            } else {
                ops.push(read(self.dice.below(self.rig.engine.capacity())));
            }
        }
        self.rig.serve(ops);
    }

    /// Blocks above the goal go, some at a time.
    fn discard(&mut self) {
        let some = (self.live.len() - self.goal).min(1 + self.live.len() / 8);
        let gone: Vec<u64> = (0..some)
            .map(|_| {
                let at = self.dice.below(self.live.len() as u64) as usize;
                self.live.swap_remove(at)
            })
            .collect();
        let ids: Vec<BlockId> = gone.iter().map(|id| BlockId(*id)).collect();
        self.rig.engine.discard(&ids).expect("addressable");
        self.absent.extend(gone);
        self.rig.fit(0);
    }

    /// A window, and what it replaced goes.
    fn window(&mut self) {
        let window = self.rig.store.done;
        self.rig.window();
        let store = &mut self.rig.store;
        store.done += 1;
        let shapes = self.rig.engine.shapes();
        let deepest = shapes.all().iter().map(|it| it.1.depth.0).max().expect("a window was");
        store.deepest = store.deepest.max(self.rig.engine.depth().0);
        for level in self.rig.rule.pool_levels..=deepest {
            if let Some(before) = self.rig.rule.before(Level(level), window) {
                let had = store.objects.remove(&(level, before)).is_some();
                let slots = shapes.slots(Level(level), before, 4);
                assert_eq!(had, slots > 0, "the shapes say what window {before} wrote at {level}");
            }
        }
    }

    /// Every object that is left is current.
    fn check(&self) {
        let (store, rule) = (&self.rig.store, self.rig.rule);
        let shapes = self.rig.engine.shapes();
        for (&(level, window), object) in &store.objects {
            let period = 1u64 << (level - rule.log_turns);
            assert!(window + period >= store.done, "level {level} of window {window} is left");
            let slots = shapes.slots(Level(level), window, 4);
            let bytes = self.rig.engine.config().geometry().bucket_bytes_with(slots) as u64;
            assert_eq!(object.len() as u64, bytes * rule.turns(), "level {level}, {window}");
        }
    }
}

#[test]
fn every_bucket_is_where_the_counter_says() {
    let windows = scaled(1000);
    // As many blocks as the run has time for: 3 * 2^20 of them make a tree with L = 20.
    let rule = Windows { every: 4, log_turns: 5, pool_levels: 6 };
    let blocks = (windows * rule.accesses() / 4).min(3 << 20);
    let mut run = Run::new(rule, blocks, 1);
    let (mut shrunk, mut depths) = (0, BTreeMap::<u32, u64>::new());
    while run.rig.store.done < windows {
        if run.live.len() > run.goal {
            run.discard();
        }
        run.batch();
        // A tree that shrinks does so ahead of its turn too, as an idle volume.
        let ahead = run.rig.engine.is_shrinking() && run.dice.below(2) == 0;
        if run.rig.is_due() || ahead {
            run.window();
            shrunk += u64::from(ahead);
            *depths.entry(run.rig.engine.depth().0).or_default() += 1;
        }
        while run.rig.is_due() {
            run.window();
        }
        run.aim();
        if run.rig.store.done.is_multiple_of(4096) {
            run.check();
        }
    }
    run.check();
    let Objects { done, deepest, reads, written, .. } = run.rig.store;
    eprintln!(
        "{done} windows, {shrunk} ahead, {} goals, up to L = {deepest}: {reads} buckets read, \
         {written} written; windows by L: {depths:?}",
        run.turned
    );
    assert!(run.turned > 3 && deepest >= 13 && depths.len() > 4, "it grows and shrinks");
}
