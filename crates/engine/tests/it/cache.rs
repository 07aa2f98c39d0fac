//! The memory of the top of the tree.

use oblivio_engine::memory::MemoryBuckets;
use oblivio_engine::tree::{Eviction, MapFormat, TreeConfig, TreeKeys, TreeOram, buckets_in};
use oblivio_engine::{Action, BlockId, BlockOp, carry_out};

const BLOCKS: u64 = 1 << 12;
const BYTES: usize = 1024;

/// The cache reckons with fewer blocks than slots for a bucket above the leaves, and with no more
/// blocks than the tree is for. For any accesses, all of them together hold no more.
#[test]
fn the_cache_stays_within_its_bytes() {
    // A part of the upper levels; of those in which blocks wait; of the leaves; the whole tree.
    for (cache, leaf_steps, batch) in
        [(175 << 10, false, 1), (175 << 10, false, 64), (2 << 20, true, 16), (7 << 19, true, 16)]
    {
        stays_within(cache, leaf_steps, batch);
    }
    let whole = stays_within(5 << 20, true, 16);
    assert!(whole, "all existing blocks fit");
}

/// Says whether the cache held the whole tree once it was full.
fn stays_within(cache: usize, leaf_steps: bool, batch: usize) -> bool {
    let config = TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        cache_bytes: cache,
        leaf_steps,
        ..TreeConfig::new(BYTES, BLOCKS)
    };
    let mut engine = TreeOram::new(config, 1, TreeKeys::from_seed(1)).expect("a good config");
    let mut store = MemoryBuckets::default();
    let mut serve = |engine: &mut TreeOram, ids: Vec<u64>| {
        for ids in ids.chunks(batch) {
            let write = |&id: &u64| {
                let action = Action::Write(vec![7; BYTES]);
                BlockOp { id: BlockId(id), action }
            };
            let ops = ids.iter().map(write).collect();
            store.access(engine, ops).expect("nothing was tampered with");
            assert!(engine.cache_bytes() <= cache, "{} of {cache}", engine.cache_bytes());
        }
        let mut flush = engine.begin_flush().expect("idle");
        carry_out(&mut flush, engine, &mut store).expect("nothing was tampered with");
    };
    let mut filled = 0;
    for blocks in [BLOCKS / 8, BLOCKS / 4, BLOCKS / 8 * 3, BLOCKS / 2, BLOCKS / 8 * 5, BLOCKS] {
        engine.grow(blocks).expect("below the capacity");
        engine.set_size_class(blocks).expect("below the capacity");
        engine.set_cache_bytes(cache).expect("flushed");
        serve(&mut engine, (filled..blocks).collect());
        filled = blocks;
        // At its worst when the period of the blocks meets that of the schedule.
        serve(&mut engine, (0..blocks).collect());
    }
    let whole = engine.cached_buckets() == buckets_in(engine.depth());
    let full = engine.cached_buckets();
    // More than if each counted with all its slots: by half where blocks only pass.
    let more = if cache < 1 << 20 { 3 } else { 2 };
    assert!(whole || full > cache as u64 / (4 * BYTES as u64) * more / 2, "{full} buckets");
    serve(&mut engine, (0..BLOCKS).map(|i| i * 12_347 % BLOCKS).collect());
    serve(&mut engine, (0..BLOCKS / 4).collect());
    // And while the tree shrinks, to a quarter.
    for class in [BLOCKS / 2, BLOCKS / 4] {
        let gone: Vec<_> = (class / 4 * 3..class * 2).map(BlockId).collect();
        engine.discard(&gone).expect("addressable");
        engine.set_size_class(class).expect("below the capacity");
        engine.set_cache_bytes(cache).expect("flushed");
        while engine.shrink_left() > 0 {
            serve(&mut engine, (0..class / 4 * 3).map(|i| i * 12_347 % (class / 4 * 3)).collect());
        }
    }
    assert!(engine.depth().0 == 8, "{}", engine.depth().0);
    whole
}

/// A bucket without another turn before the next flush is written at once, at no cost. The total
/// number of writes is the same, and a flush on time has nothing left.
#[test]
fn what_a_flush_would_write_is_written_before_at_no_cost() {
    const EVICTIONS: u64 = 60;
    let config = TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        cache_bytes: 1 << 20,
        // No accesses beyond the requested ones.
        map_format: MapFormat::Flat { bytes: 8 },
        ..TreeConfig::new(64, 1 << 12)
    };
    let run = |batch: u64, expected| {
        let mut engine = TreeOram::new(config, 1 << 12, TreeKeys::from_seed(1)).expect("sound");
        let mut store = MemoryBuckets::default();
        let (mut flushed, mut id) = (0, 0);
        for _ in 0..40 {
            engine.expect_flush_after(expected).expect("flushed");
            for _ in 0..EVICTIONS * 3 / batch {
                let write = |_| {
                    id = (id + 1_234_567) % (1 << 12);
                    BlockOp { id: BlockId(id), action: Action::Write(vec![7; 64]) }
                };
                let ops = (0..batch).map(write).collect();
                store.access(&mut engine, ops).expect("nothing was tampered with");
            }
            let before = engine.meters().buckets_written;
            let mut flush = engine.begin_flush().expect("idle");
            carry_out(&mut flush, &mut engine, &mut store).expect("nothing was tampered with");
            flushed += engine.meters().buckets_written - before;
        }
        (engine.meters().buckets_written, flushed)
    };
    for batch in [1, 12, 60] {
        let (all, flushed) = run(batch, u64::MAX);
        assert_eq!(all, flushed, "the cache holds the whole tree");
        assert_eq!(run(batch, EVICTIONS), (all, 0));
        let (late, flushed) = run(batch, EVICTIONS / 2);
        assert!(late > all && flushed == 0);
        let (early, left) = run(batch, EVICTIONS * 3 / 2);
        assert!(early == all && left > 0 && left < all / 2, "{left} of {early}");
    }
}
