//! What was read may be opened by several threads, all of it, some or none.

use oblivio_engine::memory::MemoryBuckets;
use oblivio_engine::tree::{Eviction, Opening, TreeConfig, TreeKeys, TreeOram};
use oblivio_engine::{Action, BlockAnswer, BlockId, BlockOp, Engine, EngineError, Result, Step};
use std::thread;

const BLOCKS: u64 = 1 << 10;
const BYTES: usize = 64;

/// How the openings that are given out are done.
#[derive(Clone, Copy, Debug)]
enum Hands {
    /// None are asked for.
    None,
    /// So many parts, all done at once.
    All(usize),
    /// So many parts, every other of which is done.
    Some(usize),
}

fn work(engine: &mut TreeOram, hands: Hands) {
    let (count, every) = match hands {
        Hands::None => return,
        Hands::All(count) => (count, 1),
        Hands::Some(count) => (count, 2),
    };
    thread::scope(|scope| {
        for part in engine.openings(count).into_iter().step_by(every) {
            scope.spawn(move || Opening::run(part));
        }
    });
    assert!(engine.openings(count).is_empty(), "they are given out once");
}

/// Runs a batch; `change` may do something to the buckets that a step has read.
fn serve(
    engine: &mut TreeOram,
    store: &mut MemoryBuckets,
    ops: Vec<BlockOp>,
    hands: Hands,
    change: &mut dyn FnMut(&[u64], &mut [u8]),
) -> Result<Vec<BlockAnswer>> {
    engine.submit(ops)?;
    loop {
        match engine.step()? {
            Step::Done => return Ok(engine.take_answers()),
            Step::Read { tree, buckets, into, .. } => {
                let stride = into.len() / buckets.len().max(1);
                for (bucket, part) in buckets.iter().zip(into.chunks_mut(stride.max(1))) {
                    let stored = &store.buckets[&(tree, *bucket)];
                    part[..stored.len()].copy_from_slice(stored);
                }
                change(&buckets.iter().map(|bucket| bucket.0).collect::<Vec<_>>(), into);
                work(engine, hands);
            }
            Step::Write { tree, buckets, lens, from } => {
                let stride = from.len() / buckets.len();
                for ((bucket, part), &len) in buckets.iter().zip(from.chunks(stride)).zip(lens) {
                    store.buckets.insert((tree, *bucket), part[..len as usize].to_vec());
                }
                assert!(engine.openings(2).is_empty(), "nothing was read");
            }
        }
    }
}

fn engine() -> TreeOram {
    let eviction = Eviction::Scheduled { every: 3 };
    let config = TreeConfig { eviction, cache_bytes: 4096, ..TreeConfig::new(BYTES, BLOCKS) };
    TreeOram::new(config, BLOCKS, TreeKeys::from_seed(1)).expect("a good config")
}

fn write(id: u64, byte: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![byte; BYTES]) }
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

const WAYS: [Hands; 6] = [
    Hands::None,
    Hands::All(1),
    Hands::All(2),
    Hands::All(1000),
    Hands::Some(3),
    Hands::Some(1000),
];

#[test]
fn who_opens_makes_no_difference() {
    let runs = WAYS.map(|hands| {
        let (mut engine, mut store, mut all) = (engine(), MemoryBuckets::default(), Vec::new());
        for round in 0..100_u64 {
            let id = |i: u64| (round * 37 + i * 101) % BLOCKS;
            let ops = (0..20).map(|i| if i % 3 == 0 { write(id(i), i as u8) } else { read(id(i)) });
            let ops = ops.collect();
            all.push(serve(&mut engine, &mut store, ops, hands, &mut |_, _| {}).expect("right"));
        }
        (all, store.buckets)
    });
    for (run, hands) in runs.iter().zip(WAYS) {
        assert_eq!(run.0, runs[0].0, "{hands:?}: the same answers");
        assert!(run.1 == runs[0].1, "{hands:?}: the same bytes");
    }
}

#[test]
fn what_was_changed_is_named_whoever_opens_it() {
    for hands in WAYS {
        for at in [0, 20, 40, 100, 399] {
            let (mut engine, mut store) = (engine(), MemoryBuckets::default());
            let fill = |ids: std::ops::Range<u64>| ids.map(|id| write(id, 1)).collect();
            for first in (0..BLOCKS).step_by(64) {
                let ops = fill(first..first + 64);
                serve(&mut engine, &mut store, ops, hands, &mut |_, _| {}).expect("right");
            }
            let mut changed = None;
            let mut change = |buckets: &[u64], into: &mut [u8]| {
                let stride = into.len() / buckets.len();
                let index = buckets.len() / 2;
                into[index * stride + at % stride] ^= 4;
                changed = Some(buckets[index]);
            };
            let ops = (0..30).map(|i| read(i * 31)).collect();
            match serve(&mut engine, &mut store, ops, hands, &mut change) {
                Err(EngineError::Tampered { bucket, .. }) => assert_eq!(Some(bucket.0), changed),
                other => panic!("{hands:?}, byte {at}: {other:?}"),
            }
        }
    }
}
