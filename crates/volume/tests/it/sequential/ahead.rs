//! Sequential reads announce the next blocks to the store; other reads do not.

use super::{MemoryKeeper, create};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp, Lost};
use oblivio_store::{Hint, Layer, MemoryStore, Result, StoreAnswer, StoreCall};
use oblivio_volume::BlockSpace;
use oblivio_volume::sequential::SequentialOptions;
use std::sync::{Arc, Mutex, MutexGuard};

const DISK_OBJECT: &str = "disk";
const BLOCKS: u64 = 4_000;
const BLOCK: usize = 4_096;
/// Blocks of a request of 1 MiB.
const MIB: u64 = 256;

type Ranges = Vec<(u64, u64)>;

/// The announced and the read ranges of the disk, as offset and length.
#[derive(Default)]
struct Heard {
    expected: Ranges,
    read: Ranges,
}

struct Hears(MemoryStore, Arc<Mutex<Heard>>);

impl Layer for Hears {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.0
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let mut heard = lock(&self.1);
        match call {
            StoreCall::Read(_) => call.ranges(&mut |object, offset, len| {
                if object == DISK_OBJECT {
                    heard.read.push((offset, len));
                }
            }),
            StoreCall::Hint(Hint::Reads(ranges)) => {
                assert!(ranges.iter().all(|range| range.0 == DISK_OBJECT));
                heard.expected.extend(ranges.iter().map(|range| (range.1, range.2)));
            }
            _ => {}
        }
        call.on(&self.0)
    }
}

fn lock(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().expect("nobody panicked")
}

/// Whether every byte of `read` is in one of `expected`.
fn covered(read: &Ranges, expected: &Ranges) -> bool {
    let blocks = |&(offset, len): &(u64, u64)| (offset..offset + len).step_by(512);
    read.iter()
        .flat_map(blocks)
        .all(|at| expected.iter().any(|it| (it.0..it.0 + it.1).contains(&at)))
}

#[test]
fn what_is_read_in_order_is_announced_before() {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let store = Arc::new(Hears(MemoryStore::new(), Arc::clone(&heard)));
    // Map leaves are shorter than a block, to tell them apart.
    let engine = SequentialConfig::new(BLOCK, BLOCKS);
    let options = SequentialOptions::of(SequentialConfig {
        bucket_blocks: 16,
        queue_buckets: 8,
        sector_bytes: 512,
        ..engine
    });
    let mut volume = create(store, options, &MemoryKeeper::default()).expect("a volume");
    for id in (0..3 * BLOCKS).map(|at| BlockId(at % BLOCKS)) {
        let action = Action::Write(vec![id.0 as u8; BLOCK]);
        volume.access(vec![BlockOp { id, action }]).expect("memory");
    }
    assert!(!lock(&heard).expected.is_empty(), "flushes announce what the next ones read");
    let reader = volume.reader().expect("it has readers");
    let read = |blocks: std::ops::Range<u64>| {
        let ids: Vec<_> = blocks.clone().map(BlockId).collect();
        let right = &mut |at: usize, block: std::result::Result<Option<&[u8]>, Lost>| {
            let block = block.expect("nothing is lost");
            assert_eq!(block, Some(&vec![ids[at].0 as u8; BLOCK][..]));
        };
        reader.read(&ids, right).expect("memory");
        std::mem::take(&mut *lock(&heard))
    };
    read(0..MIB);
    assert!(read(3_000..3_000 + MIB).expected.is_empty(), "elsewhere");
    let mut expected = read(MIB..2 * MIB).expected;
    assert!(!expected.is_empty());
    for at in 2..BLOCKS / MIB {
        let now = read(at * MIB..(at + 1) * MIB);
        let blocks: Ranges = now.read.into_iter().filter(|it| it.1 >= BLOCK as u64).collect();
        assert!(covered(&blocks, &expected), "request {at}");
        expected.extend(now.expected);
    }
    for at in [700, 40, 2_900] {
        assert!(read(at..at + 8).expected.is_empty(), "little");
    }
}
