//! A session that crashed left buckets that no commit names. The store keeps them, and puts them in
//! the places of current ones, whose parents it damages as well. What the session had not synced
//! never comes back.

use super::around::reopened;
use super::world::{SAMPLE, Scale, World, content, read};
use oblivio_engine::{Action, BlockId, BlockOp, Lost};
use oblivio_store::{Held, MemoryStore, ReadAt, Slots, WriteAt};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{BlockSpace, Known};
use std::sync::Arc;

const SMALL: Scale = Scale { blocks: 100, memory_bytes: 40 << 10, commits: 1, ..SAMPLE };
const SECTOR: u64 = 512;

/// The slots of a slab, each with its start. All of them have this length.
fn slots(disk: &MemoryStore, object: &str, bytes: u64) -> Vec<(u64, Vec<u8>)> {
    let len = disk.len(object).expect("memory").unwrap_or(0);
    let read = |start: u64| {
        let mut slot = vec![0; (len - start).min(bytes) as usize];
        disk.read(&mut [ReadAt { object, offset: start, buf: &mut slot }]).expect("memory");
        (start, slot)
    };
    (0..len / bytes).map(|slot| read(slot * bytes)).collect()
}

/// All that was written before a crash.
fn all_of(store: &CrashStore) -> MemoryStore {
    let mut extremes = store.extremes().into_iter();
    extremes.find(|(name, _)| *name == "everything pending survived").expect("one of them").1
}

/// A volume after a recovery, and what its store still has from before.
struct Recovered {
    disk: MemoryStore,
    known: Known,
    /// The slabs, the lengths of their slots, and slots of crashed sessions.
    kept: Vec<(String, u64, Vec<Vec<u8>>)>,
}

impl Recovered {
    /// After a session that wrote some blocks, and one or two that recover it.
    fn after(world: &World, dice: &mut Dice) -> Self {
        let store = Arc::new(CrashStore::holding(&world.disk));
        let mut volume = world.open(Arc::clone(&store)).expect("sound");
        let (blocks, bytes) = (world.scale.blocks, world.scale.block_bytes);
        let write =
            |id| BlockOp { id: BlockId(id), action: Action::Write(content(id, 1 << 40, bytes)) };
        let written = (0..16).map(|_| write(dice.below(blocks))).collect();
        volume.access(written).expect("sound");
        // So that they get deeper.
        for _ in 0..6 {
            volume.access((0..8).map(|_| read(dice.below(blocks))).collect()).expect("sound");
        }
        drop(volume);
        let mut disks = vec![all_of(&store)];
        if dice.below(2) == 0 {
            // The recovery crashes as well.
            let crashing = Arc::new(CrashStore::holding(&disks[0]));
            crashing.crash_after(dice.below(200));
            drop(world.open(Arc::clone(&crashing)));
            disks.push(all_of(&crashing));
        }
        let disk = Arc::new(disks[disks.len() - 1].snapshot());
        let mut volume = world.open(Arc::clone(&disk)).expect("it opens after a crash");
        let info = volume.tree().expect("a tree").tree_info();
        volume.finish().expect("it commits");
        let known = volume.known();
        drop(volume);
        let mut kept = Vec::new();
        for missing in 0..info.blocks_per_bucket as u64 {
            let object = if missing == 0 { "slab".into() } else { format!("slab-{missing}") };
            // Each block has a header of 16 bytes.
            let bucket = info.bucket_bytes as u64 - missing * (bytes as u64 + 16);
            let slot = bucket.next_multiple_of(SECTOR);
            let current = slots(&disk, &object, slot);
            let all = disks.iter().flat_map(|disk| slots(disk, &object, slot));
            let is_kept = |slot: &Vec<u8>| current.iter().all(|(_, now)| now != slot);
            let old: Vec<_> = all.map(|(_, slot)| slot).filter(is_kept).collect();
            if !old.is_empty() && !current.is_empty() {
                kept.push((object, slot, old));
            }
        }
        Self { disk: disk.snapshot(), known, kept }
    }

    /// The disk with kept slots in the places of all others; with another `shift`, others.
    fn put_back(&self, shift: usize) -> MemoryStore {
        let disk = self.disk.snapshot();
        for (object, bytes, old) in &self.kept {
            for (at, (start, _)) in slots(&disk, object, *bytes).into_iter().enumerate() {
                let slot = &old[(at + shift) % old.len()];
                disk.write(&[WriteAt::new(object, start, slot)]).expect("memory");
            }
        }
        disk
    }

    /// As many shifts put each kept slot in each place once.
    fn shifts(&self) -> usize {
        self.kept.iter().map(|(_, _, old)| old.len()).max().unwrap_or(0)
    }
}

#[test]
fn what_a_crashed_session_had_not_synced_never_comes_back() {
    let world = World::make(SMALL);
    let mut dice = Dice::new(seed(494));
    let (mut tries, mut right, mut lost) = (0, 0, 0);
    for _ in 0..scaled(2) {
        let recovered = Recovered::after(&world, &mut dice);
        for shift in 0..recovered.shifts() {
            let disk = Arc::new(recovered.put_back(shift));
            let mut volume = reopened(&world, disk.into(), recovered.known);
            if dice.below(4) == 0 {
                volume.repair(&mut |_, _| {}).expect("it goes on");
            }
            let ids: Vec<u64> = (0..world.scale.blocks).collect();
            let reads = ids.iter().map(|id| read(*id)).collect();
            for (id, outcome) in ids.iter().zip(volume.access_each(reads).expect("it goes on")) {
                let written = content(*id, world.versions[id], world.scale.block_bytes);
                match outcome {
                    Err(Lost) => lost += 1,
                    found => {
                        assert_eq!(found, Ok(Some(written)), "shift {shift}, block {id}");
                        right += 1;
                    }
                }
            }
            tries += 1;
        }
    }
    println!("{tries} disks: {right} blocks were right, {lost} lost");
    assert!(tries > 20 && lost > 0 && right > 0, "{tries} disks, {right} right, {lost} lost");
}
