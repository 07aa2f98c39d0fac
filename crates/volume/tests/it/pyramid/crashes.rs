//! Crashes: a moment between two writes is what is left, also where merges, commits and replays are
//! cut off.

use super::{BYTES, create, open, read};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::campaign::every;
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{BlockSpace, Result, Volume};
use std::sync::Arc;

/// Blocks that the workload uses.
const USED: u64 = 24;

type Model = Vec<Option<Vec<u8>>>;

fn any_op(dice: &mut Dice) -> BlockOp {
    let action = match dice.below(5) {
        0 | 1 => Action::Write(dice.bytes(BYTES)),
        2 => Action::Patch { offset: dice.index(BYTES - 8), bytes: dice.bytes(8) },
        3 => Action::Remove,
        _ => Action::Read,
    };
    BlockOp { id: BlockId(dice.below(USED)), action }
}

fn apply(model: &mut Model, op: &BlockOp) {
    let block = &mut model[op.id.0 as usize];
    match &op.action {
        Action::Read => {}
        Action::Remove => *block = None,
        writes => writes.write_to(block.get_or_insert_with(|| vec![0; BYTES])),
    }
}

fn read_all(volume: &mut Volume) -> Result<Model> {
    volume.access((0..USED).map(read).collect())
}

/// Batches with a commit after every third: enough for merges and two commits of the engine.
fn work(volume: &mut Volume, contents: &mut Vec<Model>, committed: &mut usize) -> Result<()> {
    let mut dice = Dice::new(8);
    for batch in 0..24 {
        let any = (0..5).map(|_| any_op(&mut dice)).collect::<Vec<_>>();
        // Reads are carried out at once, so merges and commits come.
        let ops: Vec<_> = any.into_iter().chain((0..4).map(|_| read(dice.below(USED)))).collect();
        for op in &ops {
            let mut model = contents[contents.len() - 1].clone();
            apply(&mut model, op);
            contents.push(model);
        }
        volume.access(ops)?;
        if batch % 3 == 2 {
            volume.commit()?;
            *committed = contents.len() - 1;
        }
    }
    volume.finish()?;
    *committed = contents.len() - 1;
    Ok(())
}

fn prepared() -> MemoryStore {
    let disk = Arc::new(MemoryStore::new());
    let mut volume = create(disk.clone(), 1);
    volume.finish().expect("memory");
    drop(volume);
    disk.snapshot()
}

#[test]
fn a_crash_at_any_call_leaves_a_moment_after_the_last_commit() {
    let disk = prepared();
    for cut in (0..).step_by(every(3)) {
        let store = Arc::new(CrashStore::holding(&disk));
        let (mut contents, mut committed) = (vec![vec![None; USED as usize]], 0);
        store.crash_after(cut);
        let done = open(store.clone(), cut)
            .and_then(|mut volume| work(&mut volume, &mut contents, &mut committed));
        store.crash();
        let left = Arc::new(store.survivors(cut));
        let mut volume = open(left, cut + 1).unwrap_or_else(|error| panic!("{cut}: {error}"));
        let found = read_all(&mut volume).expect("sound");
        assert!(contents[committed..].contains(&found), "cut {cut}");
        volume.verify(&mut |_, _| {}).expect("sound");
        if done.is_ok() {
            break;
        }
    }
}

#[test]
fn a_crash_while_a_crashed_session_is_replayed_loses_nothing_either() {
    let disk = prepared();
    let store = Arc::new(CrashStore::holding(&disk));
    let (mut contents, mut committed) = (vec![vec![None; USED as usize]], 0);
    store.crash_after(60);
    let cut_off = open(store.clone(), 1)
        .and_then(|mut volume| work(&mut volume, &mut contents, &mut committed));
    assert!(cut_off.is_err(), "the work takes more calls than that");
    store.crash();
    let left = store.survivors(3);
    for cut in 0.. {
        let store = Arc::new(CrashStore::holding(&left));
        store.crash_after(cut);
        let done = open(store.clone() as Arc<dyn Store>, cut).map(drop);
        store.crash();
        let again = Arc::new(store.survivors(cut));
        let mut volume = open(again, cut + 1).unwrap_or_else(|error| panic!("{cut}: {error}"));
        let found = read_all(&mut volume).expect("sound");
        assert!(contents[committed..].contains(&found), "cut {cut}");
        if done.is_ok() {
            break;
        }
    }
}
