//! The slab by itself, and under an engine that shrinks.

use super::size_class::{MOST_CUT, MOST_HOLE};
use super::*;
use crate::tree::buckets::Buckets;
use oblivio_engine::tree::{Eviction, TreeConfig, TreeJob, TreeKeys, TreeOram, buckets_in};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp, Data, Extent, carry_out};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Store};

fn put(slab: &mut Slab, store: &dyn Store, bucket: BucketId, bytes: &[u8]) {
    let extents = [Extent { offset: bucket.0, bytes: bytes.len() as u64 }];
    let (extents, data) = (&extents[..], Data::Together(bytes));
    slab.write(store, &Write { extents, data }).expect("memory");
}

#[test]
fn committed_versions_are_not_written_over() {
    let store = MemoryStore::new();
    let mut slab = Slab::new(600, SECTOR);
    let bucket = BucketId(3);
    put(&mut slab, &store, bucket, &[1; 600]);
    slab.committed();
    assert!(slab.changes().is_empty());
    let first = slab.place(bucket).expect("stored").1;
    for version in 2..5 {
        put(&mut slab, &store, bucket, &[version; 600]);
        assert_ne!(slab.place(bucket), Some((SLAB_OBJECT, first)));
    }
    let mut old = [0; 600];
    store
        .read(&mut [ReadAt { object: SLAB_OBJECT, offset: first, buf: &mut old }])
        .expect("still there");
    assert_eq!(old, [1; 600]);
    let mut table = SlotTable::default();
    table.apply(&slab.changes(), 7).expect("sound");
    let mut again = Slab::new(600, SECTOR);
    again.restore(table, |_| 0, &[(SLAB_OBJECT.into(), 4 * 1024)]).expect("sound");
    assert_eq!(again.place(bucket), slab.place(bucket));
    assert_eq!(again.stored().collect::<Vec<_>>(), [bucket]);
}

/// Dropped buckets leave holes at once and a shorter slab in the end, the slots of the last commit
/// are never touched, and the table gives each bucket's slot.
#[test]
fn a_slab_shrinks_with_its_tree() {
    let store = RecordStore::new(MemoryStore::new());
    let mut slab = Slab::new(60_000, SECTOR);
    let commit = |slab: &mut Slab| {
        slab.committed();
        slab.reclaim(&store, 1024).expect("memory");
    };
    let rewrite = |slab: &mut Slab, buckets: std::ops::Range<u64>| {
        for bucket in buckets.map(BucketId) {
            put(slab, &store, bucket, &[bucket.0 as u8; 60_000]);
        }
    };
    rewrite(&mut slab, 1..256);
    commit(&mut slab);
    for _ in 0..40 {
        rewrite(&mut slab, 1..3);
        commit(&mut slab);
    }
    let before = store.len(SLAB_OBJECT).expect("memory");
    store.take();
    slab.forget(&(128..256).filter(|n| n % 3 > 0).map(BucketId).collect::<Vec<_>>());
    assert!(slab.changes().iter().all(|&(_, slot)| slot == NOWHERE));
    let stored: Vec<_> = slab.stored().collect();
    commit(&mut slab);
    let holes = store.take().into_iter().filter(|event| event.op == CallKind::Discard);
    let holes: Vec<_> = holes.map(|event| event.offset..event.offset + event.len).collect();
    assert!(holes.iter().map(|hole| hole.end - hole.start).sum::<u64>() > 60 * 60_000);
    for &bucket in &stored {
        let (_, place) = slab.place(bucket).expect("stored");
        assert!(holes.iter().all(|hole| !hole.contains(&place)));
    }
    slab.forget(&(64..256).map(BucketId).collect::<Vec<_>>());
    for first in (1..64).step_by(4) {
        rewrite(&mut slab, first..64.min(first + 4));
        commit(&mut slab);
    }
    let after = store.len(SLAB_OBJECT).expect("memory");
    assert!(after < before.map(|before| before / 9 * 5), "{after:?} of {before:?}");
    assert_eq!(slab.table().len(), 64);
    for bucket in 1..64 {
        let bytes = slab.fetch(&store, &[BucketId(bucket)]).expect("stored");
        assert_eq!(bytes, [vec![bucket as u8; 60_000]]);
    }
}

/// A growing slab adds the slots that it needs early on, and no more.
#[test]
fn a_slab_grows_evenly() {
    let store = MemoryStore::new();
    let mut slab = Slab::new(600, SECTOR);
    let mut buckets = 1;
    let mut ends = Vec::new();
    for interval in 0..16u64 {
        // Ten new ones among forty; then no new ones.
        for n in 0..40 {
            let new = interval < 12 && n % 4 == 0;
            buckets += u64::from(new);
            let bucket = if new { buckets } else { 1 + n % buckets.min(30) };
            put(&mut slab, &store, BucketId(bucket), &[1; 600]);
            if n == 19 {
                ends.push(slab.shelves[0].end);
            }
        }
        ends.push(slab.shelves[0].end);
        slab.committed();
    }
    let grown: Vec<_> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(grown[14..24].iter().all(|by| (4..=6).contains(by)), "{grown:?}");
    // Old versions take room once more, as much as the writes without new buckets.
    assert!(grown[23..].iter().sum::<u32>() <= 20, "{grown:?}");
    assert!(grown[27..].iter().all(|by| *by == 0), "{grown:?}");
}

/// Commits at two rhythms: a short interval says nothing about what a long one needs.
#[test]
fn a_slab_grows_evenly_between_commits_of_any_distance() {
    let store = MemoryStore::new();
    let mut slab = Slab::new(600, SECTOR);
    let mut buckets = 30;
    for interval in 0..24u64 {
        let (mut ends, writes) =
            (vec![slab.shelves[0].end], if interval % 2 == 0 { 80 } else { 20 });
        for n in 0..writes {
            let new = n % 4 == 0;
            buckets += u64::from(new);
            let bucket = if new { buckets } else { 1 + n % 30 };
            put(&mut slab, &store, BucketId(bucket), &[1; 600]);
            if n % (writes / 4) == writes / 4 - 1 {
                ends.push(slab.shelves[0].end);
            }
        }
        slab.committed();
        let grown: Vec<_> = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(interval < 6 || grown.iter().all(|&by| by <= 8), "{interval}: {grown:?}");
    }
}

/// An interval with more writes than any before it, as when the tree changes size: its own first
/// part predicts the need.
#[test]
fn a_slab_grows_evenly_in_an_interval_like_none_before() {
    let store = MemoryStore::new();
    let mut slab = Slab::new(600, SECTOR);
    let mut buckets = 100;
    for writes in [40, 40, 40, 160, 400] {
        let mut ends = Vec::new();
        for done in 0..writes {
            slab.expect(Interval { done, planned: writes });
            let new = writes > 40 && done % 2 == 0;
            buckets += u64::from(new);
            let bucket = if new { buckets } else { 1 + done % 100 };
            put(&mut slab, &store, BucketId(bucket), &[1; 600]);
            ends.push(slab.shelves[0].end);
        }
        slab.committed();
        let parts: Vec<_> = ends.chunks(writes as usize / 8).collect();
        let grown: Vec<_> = parts.windows(2).map(|pair| pair[1][0] - pair[0][0]).collect();
        let (least, most) = (grown.iter().skip(1).min(), grown.iter().max());
        assert!(writes == 40 || most <= least.map(|by| by + by / 4 + 1).as_ref(), "{grown:?}");
        // All buckets, and an older version of each written one.
        assert!(u64::from(ends[ends.len() - 1]) <= buckets + writes);
    }
}

/// Small parts give back the same space as one large step.
#[test]
fn space_is_given_back_in_parts() {
    let reclaim = |most| {
        let store = RecordStore::new(MemoryStore::new());
        let mut slab = Slab::new(60_000, SECTOR);
        for bucket in (1..1024).map(BucketId) {
            put(&mut slab, &store, bucket, &[1; 60_000]);
            slab.committed();
        }
        let gone = |n: &u64| *n > 256 || n % 5 > 1;
        slab.forget(&(1..1024).filter(gone).map(BucketId).collect::<Vec<_>>());
        slab.committed();
        store.take();
        let mut before = store.len(SLAB_OBJECT).expect("memory").expect("written");
        let (mut left, mut parts) = (before, 0);
        let mut more = true;
        while more {
            more = slab.reclaim(&store, most).expect("memory");
            let len = store.len(SLAB_OBJECT).expect("memory").expect("written");
            let holes = store.take().into_iter().filter(|event| event.op == CallKind::Discard);
            let holes: Vec<_> = holes.map(|event| event.len).collect();
            assert!(holes.len() <= most);
            assert!(holes.iter().all(|len| *len < 2 * MOST_HOLE));
            assert!(before - len <= MOST_CUT);
            before = len;
            let shelf = &slab.shelves[0];
            left = len - shelf.holes.len() as u64 * shelf.slot_bytes;
            parts += 1;
        }
        (left, parts)
    };
    let (at_once, parts) = reclaim(1024);
    // Two cuts, all holes, and nothing.
    assert!(at_once < 140 * 60_416 && parts == 4, "{at_once} in {parts}");
    let (in_parts, parts) = reclaim(4);
    assert!(in_parts == at_once && parts > 10, "{in_parts} in {parts}");
}

#[test]
fn a_table_with_a_shared_slot_is_refused() {
    let mut table = SlotTable::default();
    table.apply(&[(1, 4), (2, 4)], 3).expect("in range");
    assert!(
        Slab::new(600, SECTOR).restore(table, |_| 0, &[(SLAB_OBJECT.into(), 1 << 20)]).is_err()
    );
}

#[test]
fn a_table_that_leads_out_of_the_tree_or_the_slab_is_refused() {
    let mut table = SlotTable::default();
    assert!(table.apply(&[(4, 0)], 3).is_err());
    table.apply(&[(3, NOWHERE - 1)], 3).expect("a bucket of the tree");
    assert!(
        Slab::new(600, SECTOR).restore(table, |_| 0, &[(SLAB_OBJECT.into(), 1 << 20)]).is_err()
    );
}

/// An engine over a slab, committed as in a volume.
struct Run {
    engine: TreeOram,
    slab: Slab,
    store: MemoryStore,
    table: SlotTable,
}

impl Run {
    fn access(&mut self, ops: Vec<BlockOp>) -> Vec<BlockAnswer> {
        let mut batch = self.engine.begin_batch(ops).expect("idle");
        self.run(&mut batch);
        batch.into_answers().expect("nothing is lost")
    }

    fn run(&mut self, job: &mut TreeJob) {
        let mut buckets = Buckets::new(&self.store, &mut self.slab, None);
        carry_out(job, &mut self.engine, &mut buckets).expect("nothing was tampered with");
    }

    fn maintain(&mut self) {
        let mut round = self.engine.begin_maintenance(8).expect("idle");
        self.run(&mut round);
    }

    /// Commits, checks that a slab made from the stored entries is the same, and reclaims.
    fn commit(&mut self) {
        let mut flush = self.engine.begin_flush().expect("idle");
        self.run(&mut flush);
        self.slab.forget(&self.engine.dropped());
        let buckets = buckets_in(self.engine.depth());
        self.table.apply(&self.slab.changes(), buckets).expect("in range");
        self.engine.committed();
        self.slab.committed();
        self.slab.reclaim(&self.store, 1024).expect("memory");
        let table = SlotTable(self.table.0.clone());
        let mut again = Slab::of(&self.engine, SECTOR);
        let missing = |bucket| self.engine.missing_slots(bucket);
        let there = self.store.list().expect("memory");
        again.restore(table, missing, &there).expect("sound");
        assert_eq!(again.slots, self.slab.slots);
        assert!(again.table().len() as u64 <= buckets + 1);
    }
}

#[test]
fn an_engine_that_shrinks_makes_the_slab_smaller() {
    shrink_under_an_engine(false);
    shrink_under_an_engine(true);
}

fn shrink_under_an_engine(leaf_steps: bool) {
    const BLOCKS: u64 = 1 << 10;
    let eviction = Eviction::Scheduled { every: 3 };
    let cache_bytes = 100 << 10;
    let config = TreeConfig { eviction, leaf_steps, cache_bytes, ..TreeConfig::new(4096, BLOCKS) };
    let engine = TreeOram::new(config, BLOCKS, TreeKeys::from_seed(1)).expect("sound");
    let slab = Slab::of(&engine, SECTOR);
    let table = SlotTable::default();
    let mut run = Run { engine, slab, store: MemoryStore::new(), table };
    let op = |id, action| BlockOp { id: BlockId(id), action };
    for id in 0..BLOCKS {
        run.access(vec![op(id, Action::Write(vec![id as u8; 4096]))]);
        if id % 16 == 0 {
            run.commit();
        }
    }
    run.commit();
    let full = run.store.len(SLAB_OBJECT).expect("memory").expect("written");
    let left = BLOCKS / 16;
    run.engine.discard(&(left..BLOCKS).map(BlockId).collect::<Vec<_>>()).expect("addressable");
    run.engine.set_size_class(2 * left).expect("below the capacity");
    while run.engine.shrink_left() > 0 {
        run.maintain();
        run.commit();
    }
    // Every remaining bucket is rewritten, and so moves to the front.
    for _ in 0..16 {
        run.maintain();
        run.commit();
    }
    let small = run.store.len(SLAB_OBJECT).expect("memory").expect("written");
    assert!(small < full / 4, "{small} of {full} bytes");
    for id in 0..BLOCKS {
        let expected = (id < left).then(|| vec![id as u8; 4096]);
        assert_eq!(run.access(vec![op(id, Action::Read)]), [expected]);
    }
}

/// Each length has an object of its own. A version of another length leaves the old one's slot, and
/// an object without buckets takes no space.
#[test]
fn buckets_of_each_length_have_their_own_object() {
    let eviction = Eviction::Scheduled { every: 3 };
    let config = TreeConfig { eviction, leaf_steps: true, ..TreeConfig::new(16 << 10, 1 << 10) };
    let engine = TreeOram::new(config, 1 << 10, TreeKeys::from_seed(1)).expect("sound");
    let len = |slots: usize| config.geometry().bucket_bytes_with(slots);
    let (store, mut slab) = (MemoryStore::new(), Slab::of(&engine, PAGE));
    for bucket in 1..256 {
        let slots = 1 + bucket as usize % 4;
        put(&mut slab, &store, BucketId(bucket), &vec![bucket as u8; len(slots)]);
    }
    slab.committed();
    for bucket in 1..256 {
        let slots = 1 + bucket as usize % 4;
        let object = if slots == 4 { "slab".into() } else { format!("slab-{slots}") };
        assert_eq!(slab.place(BucketId(bucket)).expect("stored").0, object);
        let bytes = slab.fetch(&store, &[BucketId(bucket)]).expect("stored");
        assert_eq!(bytes, [vec![bucket as u8; len(slots)]]);
    }
    let missing = |bucket: BucketId| 3 - bucket.0 as usize % 4;
    let mut table = SlotTable(slab.table().collect());
    let there = store.list().expect("memory");
    let mut again = Slab::of(&engine, PAGE);
    again.restore(SlotTable(table.0.clone()), missing, &there).expect("sound");
    assert_eq!(again.slots, slab.slots);
    assert!(Slab::of(&engine, PAGE).restore(SlotTable(table.0.clone()), |_| 0, &there).is_err());
    table.0[5] = 1 << 30;
    assert!(Slab::of(&engine, PAGE).restore(table, missing, &there).is_err());
    for bucket in (1..256).filter(|bucket| bucket % 4 == 1) {
        put(&mut slab, &store, BucketId(bucket), &vec![1; len(3)]);
    }
    slab.committed();
    while slab.reclaim(&store, 64).expect("memory") {}
    assert_eq!(store.len("slab-2").expect("memory"), Some(0));
    assert_eq!(slab.stored_slots(4), 63 + 64 * 3 + 64 * 3 + 64 * 4);
}
