//! A commit that is cut off at its checkpoint leaves no damage, and loses nothing.

use super::around::reopened;
use super::world::{SAMPLE, World, content};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_testkit::CrashStore;
use oblivio_volume::{BlockSpace, Volume};
use std::sync::Arc;

/// The most commits until one is due to write a checkpoint.
const COMMITS: u64 = 200;

/// A session that syncs some writes.
fn began(world: &World, store: &Arc<CrashStore>, round: u64) -> Volume {
    let mut volume = reopened(world, Arc::clone(store).into(), world.known);
    let write = |id| {
        let bytes = content(id, round, world.scale.block_bytes);
        BlockOp { id: BlockId(id), action: Action::Write(bytes) }
    };
    volume.access((0..8).map(write).collect()).expect("sound");
    volume.commit().expect("sound");
    volume
}

/// Whether a commit wrote a checkpoint: one of the two is another one.
fn has_checkpoint(world: &World, next: &MemoryStore) -> bool {
    let differs = |object: &str| world.bytes(&world.disk, object) != world.bytes(next, object);
    differs("state-0") || differs("state-1")
}

/// A kill at each operation of the commit says of no disk that it fails.
#[test]
fn a_commit_that_is_cut_off_at_its_checkpoint_leaves_no_damage() {
    let mut world = World::make(SAMPLE);
    for round in 1_000..1_000 + COMMITS {
        let whole = Arc::new(CrashStore::holding(&world.disk));
        let mut volume = began(&world, &whole, round);
        let begun = whole.operations();
        volume.finish().expect("sound");
        let operations = whole.operations() - begun;
        let known = volume.known();
        drop(volume);
        let next = whole.survivors(round);
        world.versions.extend((0..8).map(|id| (id, round)));
        if !has_checkpoint(&world, &next) {
            (world.disk, world.known) = (next, known);
            continue;
        }
        let mut cut = 0;
        for operation in 0..operations {
            let store = Arc::new(CrashStore::holding(&world.disk));
            let mut volume = began(&world, &store, round);
            store.crash_after(store.operations() + operation);
            cut += u64::from(volume.finish().is_err());
            drop(volume);
            store.crash();
            for (how, left) in store.extremes() {
                let what = format!("{how}, cut off after {operation} of {operations}");
                let mut volume = reopened(&world, Arc::new(left).into(), world.known);
                assert_eq!(volume.damaged(), [], "{what}");
                let all = (0..world.scale.blocks).collect();
                world.compare(&mut volume, all).unwrap_or_else(|error| panic!("{what}: {error}"));
                volume.verify(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
        assert!(cut > 3, "{cut} of {operations} operations cut it off");
        return;
    }
    panic!("no commit wrote a checkpoint");
}
