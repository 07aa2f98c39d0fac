//! A crash, and a lost answer, at every call to the store.

use super::whole::Whole;
use super::{BLOCKS, contents, create, open, write};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::campaign::every;
use oblivio_testkit::fault::{Fault, FaultPlan, When};
use oblivio_testkit::{CrashStore, FaultStore, SplitMix64};
use oblivio_volume::{BlockSpace, Result};
use std::sync::Arc;

type Model = Vec<Option<u8>>;

/// Opens, writes and syncs; all contents that there were, and how many were acknowledged.
fn work(store: Arc<dyn Store>, models: &mut Vec<Model>, synced: &mut usize) -> Result<()> {
    let mut volume = open(store, 7)?;
    let mut dice = SplitMix64::new(7);
    for step in 0..40 {
        let mut model = models[models.len() - 1].clone();
        let (id, byte) = (dice.below(BLOCKS), dice.below(256) as u8);
        model[id as usize] = Some(byte);
        models.push(model);
        volume.defer(vec![write(id, byte)])?;
        if step % 5 == 4 {
            volume.commit()?;
            *synced = models.len() - 1;
        }
    }
    volume.finish()
}

fn volume_with_content() -> (MemoryStore, Model) {
    let disk = Arc::new(MemoryStore::new());
    let mut volume = create(disk.clone(), true, 1);
    let model = super::fill(&mut volume, &mut SplitMix64::new(3), 60);
    drop(volume);
    (disk.snapshot(), model)
}

/// Every third call, or each in a long run.
#[test]
fn a_crash_leaves_all_that_was_acknowledged() {
    let (disk, model) = volume_with_content();
    for cut in (0..).step_by(every(3)) {
        let store = Arc::new(CrashStore::holding(&disk));
        let (mut models, mut synced) = (vec![model.clone()], 0);
        store.crash_after(cut);
        let done = work(store.clone(), &mut models, &mut synced);
        store.crash();
        let left = Arc::new(store.survivors(cut));
        let mut volume = open(left, 8).unwrap_or_else(|error| panic!("cut {cut}: {error}"));
        let found = contents(&mut volume);
        assert!(models[synced..].contains(&found), "cut {cut}");
        if done.is_ok() {
            return;
        }
    }
}

/// Where objects are sent side by side while the volume goes on: of those on their way, any may
/// arrive. A checkpoint that lacks one is passed over.
#[test]
fn a_lost_computer_leaves_all_that_was_acknowledged() {
    let (disk, model) = volume_with_content();
    for cut in (0..).step_by(every(4)) {
        let store = Arc::new(Whole::new(disk.snapshot(), cut));
        let (mut models, mut synced) = (vec![model.clone()], 0);
        let done = work(store.clone(), &mut models, &mut synced);
        for seed in 0..3 {
            let left = Arc::new(store.later(cut * 3 + seed));
            let mut volume = open(left.clone(), 8)
                .unwrap_or_else(|error| panic!("cut {cut}, seed {seed}: {error}"));
            let found = contents(&mut volume);
            assert!(models[synced..].contains(&found), "cut {cut}, seed {seed}");
            // Lost at once, and once more.
            drop(volume);
            let mut volume = open(left, 9).expect("sound");
            assert_eq!(contents(&mut volume), found, "cut {cut}, seed {seed}");
            volume.verify(&mut |_, _| {}).expect("sound");
        }
        if done.is_ok() {
            return;
        }
    }
}

/// The call is done, and its answer is lost; the next session finds everything nevertheless.
#[test]
fn a_lost_answer_loses_nothing() {
    let (disk, model) = volume_with_content();
    for at in (0..).step_by(every(3)) {
        let plan = FaultPlan::new();
        let store = Arc::new(FaultStore::new(disk.snapshot(), plan.clone()));
        plan.fail_in(at, Fault { when: When::After, ..Fault::once() });
        let (mut models, mut synced) = (vec![model.clone()], 0);
        let done = work(store.clone(), &mut models, &mut synced);
        let fired = plan.fired() > 0;
        plan.clear();
        let mut volume = open(store, 8).unwrap_or_else(|error| panic!("fault {at}: {error}"));
        assert!(models[synced..].contains(&contents(&mut volume)), "fault {at}");
        if done.is_ok() && !fired {
            return;
        }
    }
}
