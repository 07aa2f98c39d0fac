//! An outage while a volume opens is no damage: the opening fails, or gives the newest commit and
//! says of nothing that it is damaged.

use crate::damage::world::{SAMPLE, World};
use crate::sequential::{MemoryKeeper, create, open};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{
    Layer, MemoryStore, Result as StoreResult, StoreAnswer, StoreCall, StoreError,
};
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::{BlockSpace, EngineVolume, Error, OpenOptions, Volume};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A disk that answers no read of some.
struct Outage {
    disk: MemoryStore,
    reads: AtomicU64,
    fails: Range<u64>,
}

impl Outage {
    fn new(disk: &MemoryStore, fails: Range<u64>) -> Arc<Self> {
        Arc::new(Self { disk: disk.snapshot(), reads: AtomicU64::new(0), fails })
    }
}

impl Layer for Outage {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> StoreResult<StoreAnswer> {
        if let StoreCall::Read(reads) = call
            && self.fails.contains(&self.reads.fetch_add(1, Ordering::Relaxed))
        {
            return Err(StoreError::io(reads[0].object, std::io::Error::from_raw_os_error(5)));
        }
        call.on(&self.disk)
    }
}

/// Opens a volume in outages of any begin and length. How many openings succeeded, and how many did
/// not.
fn in_outages<T>(disk: &MemoryStore, opens: impl Fn(Arc<Outage>) -> Result<T, Error>) -> [u64; 2] {
    let whole = Outage::new(disk, 0..0);
    assert!(opens(whole.clone()).is_ok(), "it is whole");
    let mut ends = [0; 2];
    for begin in 0..whole.reads.load(Ordering::Relaxed) {
        for len in [1, 2, 3, 4, 5, 6, 8, 10, 13, 20, 50] {
            match opens(Outage::new(disk, begin..begin + len)) {
                Ok(_) => ends[0] += 1,
                Err(Error::Store(_)) => ends[1] += 1,
                Err(error) => panic!("reads {begin} and {len} more: {error}"),
            }
        }
    }
    ends
}

#[test]
fn a_tree_is_as_new_as_it_was_and_nothing_is_damaged() {
    let world = World::make(SAMPLE);
    let ends = in_outages(&world.disk, |store| {
        let memory_bytes = world.scale.memory_bytes;
        let options = OpenOptions { memory_bytes, ..OpenOptions::default() };
        let passphrase = crate::damage::world::passphrase();
        let volume = Volume::open(store, &passphrase, options)?;
        assert_eq!(volume.known().epoch, world.known.epoch, "an older one");
        assert_eq!(volume.damaged(), []);
        Ok(())
    });
    println!("{} openings of a tree, {} failed", ends[0], ends[1]);
    assert!(ends[0] > 0);
}

#[test]
fn a_sequential_volume_is_as_new_as_it_was_and_nothing_is_damaged() {
    let (store, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
    let options = SequentialOptions::new(512, 100 << 10);
    let mut volume = create(store.clone(), options, &memory).expect("a volume");
    for round in 0..8 {
        let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![round; 512]) };
        volume.access((0..100).map(write).collect()).expect("works");
        if round < 7 { volume.finish() } else { volume.commit() }.expect("works");
    }
    let known = volume.known();
    drop(volume);
    let ends = in_outages(&store, |store| {
        let mut volume = open(store, &MemoryKeeper::default())?;
        assert!(volume.known().epoch >= known.epoch, "an older one");
        assert_eq!(volume.damaged(), []);
        let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
        let found = volume.access((0..100).map(read).collect())?;
        assert!(found.iter().all(|block| *block == Some(vec![7; 512])), "an older block");
        Ok(())
    });
    println!("{} openings of a sequential volume, {} failed", ends[0], ends[1]);
    assert!(ends[0] > 0);
}
