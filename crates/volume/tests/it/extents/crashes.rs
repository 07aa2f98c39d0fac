//! A crash at every operation of the folder and of what is beside it: nothing acknowledged is lost
//! on the computer that crashed, and on a new one the last epoch is there.

use super::common::{BLOCKS, options};
use super::{Computer, contents, write};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::campaign::every;
use oblivio_testkit::{CrashStore, SplitMix64};
use oblivio_volume::{BlockSpace, Result};
use std::sync::Arc;

type Model = Vec<Option<u8>>;

/// What a session did: all contents that there were, the last that was acknowledged, and the last
/// of which an epoch was.
struct Done {
    models: Vec<Model>,
    synced: usize,
    published: usize,
}

/// Writes, syncs and finishes.
fn work(computer: &mut Computer, folder: Arc<dyn Store>, done: &mut Done) -> Result<()> {
    let mut volume = computer.open(folder)?;
    let mut dice = SplitMix64::new(7);
    for step in 0..24 {
        let mut model = done.models[done.models.len() - 1].clone();
        let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
        model[id as usize] = Some(byte);
        done.models.push(model);
        volume.access(vec![write(id, byte)])?;
        if step % 4 == 3 {
            volume.commit()?;
            done.synced = done.models.len() - 1;
        }
        if step == 13 {
            volume.finish()?;
            (done.synced, done.published) = (done.models.len() - 1, done.models.len() - 1);
        }
    }
    volume.finish()?;
    (done.synced, done.published) = (done.models.len() - 1, done.models.len() - 1);
    Ok(())
}

/// Two disks that lose power together.
struct World {
    folder: Arc<CrashStore>,
    beside: Arc<CrashStore>,
    computer: Computer,
}

fn world(folder: &MemoryStore, beside: &MemoryStore, computer: &Computer) -> World {
    let folder = Arc::new(CrashStore::holding(folder));
    let beside = Arc::new(CrashStore::holding(beside));
    let computer =
        Computer { beside: beside.clone(), keeper: computer.keeper.twin(), ..computer.clone() };
    World { folder, beside, computer }
}

/// A volume with content: its folder, what is beside it, the computer, the content.
fn volume_with_content() -> (MemoryStore, MemoryStore, Computer, Model) {
    let (folder, beside) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let mut computer = Computer::with(beside.clone(), 1);
    let mut volume = computer.create(folder.clone());
    let mut model = vec![None; BLOCKS as usize];
    for id in 0..BLOCKS / 2 {
        volume.access(vec![write(id, id as u8)]).expect("works");
        model[id as usize] = Some(id as u8);
    }
    volume.finish().expect("works");
    drop(volume);
    (folder.snapshot(), beside.snapshot(), computer, model)
}

/// Opens what a crash left, on the same computer and on a new one.
fn look(left: (MemoryStore, MemoryStore), computer: &Computer, done: &Done, what: &str) {
    let (folder, beside) = left;
    let mut new = Computer::new(5000);
    let mut volume = new
        .open(Arc::new(folder.snapshot()))
        .unwrap_or_else(|error| panic!("{what}, new: {error}"));
    let found = contents(&mut volume);
    assert!(done.models[done.published..].contains(&found), "{what}, new: the epoch");
    drop(volume);
    let (keeper, seed) = (computer.keeper.twin(), computer.seed + 1000);
    let mut same =
        Computer { beside: Arc::new(beside), keeper, seed, clock: computer.clock.clone() };
    let folder = Arc::new(folder);
    for time in ["first", "second"] {
        let opened = same.open(folder.clone());
        let mut volume = opened.unwrap_or_else(|error| panic!("{what}, {time}: {error}"));
        let found = contents(&mut volume);
        assert!(done.models[done.synced..].contains(&found), "{what}, {time}");
        volume.finish().unwrap_or_else(|error| panic!("{what}, {time}: {error}"));
    }
}

/// With each of the two disks as the one in whose operation the power fails.
#[test]
fn no_crash_loses_what_was_acknowledged() {
    let (folder, beside, computer, model) = volume_with_content();
    let new = || Done { models: vec![model.clone()], synced: 0, published: 0 };
    let mut whole = world(&folder, &beside, &computer);
    work(&mut whole.computer, whole.folder.clone(), &mut new()).expect("works");
    let operations = [whole.folder.operations(), whole.beside.operations()];
    let mut states = 0;
    for (which, count) in operations.into_iter().enumerate() {
        assert!(count > 20, "there is something to cut");
        for cut in (0..count).step_by(every(4)) {
            let mut world = world(&folder, &beside, &computer);
            [&world.folder, &world.beside][which].crash_after(cut);
            let mut done = new();
            let ended = work(&mut world.computer, world.folder.clone(), &mut done);
            assert!(ended.is_err(), "the power failed");
            world.folder.crash();
            world.beside.crash();
            let what = format!("disk {which}, cut {cut}");
            let extremes = world.beside.extremes().into_iter().map(|it| it.1);
            let drawn = (0..2).map(|seed| world.beside.survivors(seed ^ cut));
            for (way, beside) in extremes.chain(drawn).enumerate() {
                let left = (world.folder.survivors(cut), beside);
                look(left, &world.computer, &done, &format!("{what}, way {way}"));
                states += 1;
            }
        }
    }
    assert!(states * every(4) > 400, "{states}");
    assert!(options().extent_bytes == 4096, "many extents");
}
