//! The memory that the top of the tree takes.

use oblivio_engine::memory::MemoryBuckets;
use oblivio_engine::tree::{Eviction, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockId, BlockOp, Engine};

const BLOCKS: u64 = 1 << 15;
const BYTES: usize = 1024;
const CACHE: usize = 700 << 10;

/// The cache counts a bucket above the last levels with fewer blocks than it has slots; whatever is
/// accessed, all together they hold no more.
#[test]
fn the_cache_stays_within_its_bytes() {
    let config = TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        cache_bytes: CACHE,
        ..TreeConfig::new(BYTES, BLOCKS)
    };
    for batch in [1, 64] {
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
                assert!(engine.cache_bytes() <= CACHE);
            }
            engine.begin_flush().expect("idle");
            store.run(engine).expect("nothing was tampered with");
        };
        let mut filled = 0;
        for blocks in [BLOCKS / 8, BLOCKS / 4, BLOCKS / 2, BLOCKS] {
            engine.grow(blocks).expect("below the capacity");
            engine.set_size_class(blocks).expect("below the capacity");
            engine.set_cache_bytes(CACHE).expect("flushed");
            serve(&mut engine, (filled..blocks).collect());
            filled = blocks;
        }
        let full = engine.cached_buckets();
        assert!(full > CACHE as u64 / (4 * BYTES as u64) * 3 / 2, "{full} buckets");
        serve(&mut engine, (0..BLOCKS).map(|i| i * 12_347 % BLOCKS).collect());
        serve(&mut engine, (0..BLOCKS / 4).collect());
        // And while the tree shrinks, to a quarter.
        for class in [BLOCKS / 2, BLOCKS / 4] {
            let gone: Vec<_> = (class / 4 * 3..class * 2).map(BlockId).collect();
            engine.discard(&gone).expect("addressable");
            engine.set_size_class(class).expect("below the capacity");
            engine.set_cache_bytes(CACHE).expect("flushed");
            while engine.shrink_left() > 0 {
                serve(
                    &mut engine,
                    (0..class / 4 * 3).map(|i| i * 12_347 % (class / 4 * 3)).collect(),
                );
            }
        }
        assert!(engine.depth().0 == 11, "{}", engine.depth().0);
    }
}

/// Levels with more buckets than there are scheduled paths between two flushes are written through
/// at no cost: just as many buckets are written in all, and each flush has few left.
#[test]
fn writing_through_moves_no_bucket_more() {
    const EVICTIONS: u64 = 60;
    let config = TreeConfig {
        eviction: Eviction::Scheduled { every: 3 },
        cache_bytes: 1 << 20,
        ..TreeConfig::new(64, 1 << 12)
    };
    let run = |write_through| {
        let mut engine = TreeOram::new(config, 1 << 12, TreeKeys::from_seed(1)).expect("sound");
        engine.set_write_through(write_through).expect("flushed");
        let mut store = MemoryBuckets::default();
        let (mut flushed, mut id) = (0, 0);
        for _ in 0..40 {
            for _ in 0..EVICTIONS * 3 {
                id = (id + 1_234_567) % (1 << 12);
                let action = Action::Write(vec![7; 64]);
                let ops = vec![BlockOp { id: BlockId(id), action }];
                store.access(&mut engine, ops).expect("nothing was tampered with");
            }
            let before = engine.meters().buckets_written;
            engine.begin_flush().expect("idle");
            store.run(&mut engine).expect("nothing was tampered with");
            flushed += engine.meters().buckets_written - before;
        }
        (engine.meters().buckets_written, flushed)
    };
    let (all, flushed) = run(u64::MAX);
    assert_eq!(all, flushed, "the cache holds the whole tree");
    let (all_through, left) = run(EVICTIONS);
    assert_eq!(all_through, all);
    assert_eq!(left, 40 * 63, "the levels above");
}
