//! Readers on threads of their own beside the writer. Every answer is the block's content at some
//! moment of the read, a failure of the store ends all handles without wrong data, and no write
//! follows from a read.

use super::model::{BLOCK, any_events};
use super::traces::{act, writes};
use super::{MemoryKeeper, any_options, create, open};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use oblivio_testkit::fault::{Fault, FaultPlan, FaultStore, Repeat};
use oblivio_volume::{BlockReader, BlockSpace, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;

const READERS: u64 = 3;

/// More writes than any of these tests needs before something happens.
const MOST: u64 = 1_000_000;

/// What readers may find in a block: any version from the last accepted one to the one being
/// written.
#[derive(Default)]
struct Version {
    accepted: AtomicU64,
    begun: AtomicU64,
}

fn content(block: u64, version: u64) -> Vec<u8> {
    let mut content = vec![block as u8; BLOCK];
    content[..8].copy_from_slice(&version.to_le_bytes());
    content[8..16].copy_from_slice(&block.to_le_bytes());
    content
}

/// Reads random blocks until it is over, and counts them; gives the error that ended it.
fn read_on(
    reader: &dyn BlockReader,
    versions: &[Version],
    (read, over): (&AtomicU64, &AtomicBool),
    mut dice: Dice,
) -> Result<(), Error> {
    while !over.load(Ordering::SeqCst) {
        let blocks: Vec<u64> =
            (0..1 + dice.below(12)).map(|_| dice.below(versions.len() as u64)).collect();
        let lowest: Vec<u64> = blocks
            .iter()
            .map(|&block| versions[block as usize].accepted.load(Ordering::SeqCst))
            .collect();
        let ids: Vec<BlockId> = blocks.iter().map(|&block| BlockId(block)).collect();
        let mut found = Vec::new();
        reader.read(&ids, &mut |at, block| {
            assert_eq!(at, found.len(), "in order");
            found.push(block.expect("nothing is lost").map(<[u8]>::to_vec));
        })?;
        assert_eq!(found.len(), blocks.len());
        for ((&block, lowest), found) in blocks.iter().zip(lowest).zip(found) {
            let highest = versions[block as usize].begun.load(Ordering::SeqCst);
            let version = found.as_ref().and_then(|it| it.first_chunk()).copied();
            let version = version.map_or(0, u64::from_le_bytes);
            assert!((lowest..=highest).contains(&version), "{lowest}..={highest}: {version}");
            assert_eq!(found, (version > 0).then(|| content(block, version)), "block {block}");
        }
        read.fetch_add(blocks.len() as u64, Ordering::SeqCst);
    }
    Ok(())
}

/// Writes, with readers beside, until that many blocks were written and read, or something
/// fails; gives how each thread ended.
fn side_by_side(
    volume: &mut dyn BlockSpace,
    dice: &mut Dice,
    enough: u64,
) -> (Result<(), Error>, Vec<Result<(), Error>>) {
    let blocks = volume.capacity_blocks();
    let versions: Vec<Version> = (0..blocks).map(|_| Version::default()).collect();
    let (read, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let reader = volume.reader().expect("it has readers");
    let mut written = 0;
    let ended = thread::scope(|scope| {
        let threads: Vec<_> = (0..READERS)
            .map(|_| {
                let (reader, versions, shared) = (&*reader, &versions[..], (&read, &over));
                let dice = Dice::new(dice.next_u64());
                scope.spawn(move || read_on(reader, versions, shared, dice))
            })
            .collect();
        let result = loop {
            if written >= MOST || written >= enough && read.load(Ordering::SeqCst) >= enough {
                break Ok(());
            }
            let ids: Vec<u64> = (0..1 + dice.below(6)).map(|_| dice.below(blocks)).collect();
            let op = |&id: &u64| {
                let version = versions[id as usize].begun.fetch_add(1, Ordering::SeqCst) + 1;
                BlockOp { id: BlockId(id), action: Action::Write(content(id, version)) }
            };
            let ops: Vec<_> = ids.iter().map(op).collect();
            written += ops.len() as u64;
            let done = volume.access(ops).map(drop);
            let done = done.and_then(|()| match dice.below(9) {
                0 => volume.commit(),
                1 if dice.below(30) == 0 => volume.finish(),
                _ => Ok(()),
            });
            if let Err(error) = done {
                break Err(error);
            }
            for id in ids {
                let version = &versions[id as usize];
                version.accepted.store(version.begun.load(Ordering::SeqCst), Ordering::SeqCst);
            }
        };
        over.store(true, Ordering::SeqCst);
        let ended = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        (result, ended)
    });
    assert!(written < MOST, "nobody reads, and nothing fails");
    ended
}

#[test]
fn readers_see_what_was_accepted_while_others_write() {
    for seed in 0..scaled(6) {
        let mut dice = Dice::new(seed ^ 0xbe51de);
        let (store, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
        let mut volume = create(store, any_options(&mut dice), &memory).expect("a volume");
        let (writer, threads) = side_by_side(&mut volume, &mut dice, 400);
        writer.expect("memory");
        for thread in threads {
            thread.expect("nothing was tampered with");
        }
    }
}

/// Whichever thread meets the failure, it ends all of them, none sees wrong data, and the volume
/// opens again.
#[test]
fn a_store_that_fails_ends_readers_and_the_writer() {
    let mut met = [0, 0];
    for seed in 0..60 {
        let mut dice = Dice::new(seed ^ 0xfa11);
        let (left, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
        let options = any_options(&mut dice);
        drop(create(left.clone(), options, &memory).expect("a volume"));
        let plan = FaultPlan::new();
        let store = Arc::new(FaultStore::new(left.clone(), plan.clone()));
        let mut volume = open(store, &memory).expect("nothing fails yet");
        plan.fail_in(dice.below(400), Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
        let (writer, threads) = side_by_side(&mut volume, &mut dice, MOST);
        let ended: Vec<Error> =
            threads.into_iter().chain([writer]).filter_map(Result::err).collect();
        let first = ended.iter().filter(|error| !matches!(error, Error::Closed(_)));
        let kinds: Vec<&Error> = first.collect();
        assert!(!kinds.is_empty());
        assert!(kinds.iter().all(|error| matches!(error, Error::Store(_))), "{kinds:?}");
        met[usize::from(ended.len() > 1)] += 1;
        let reader = volume.reader().expect("still");
        assert!(matches!(reader.read(&[BlockId(0)], &mut |_, _| ()), Err(Error::Closed(_))));
        assert!(matches!(volume.commit(), Err(Error::Closed(_))));
        drop((volume, reader));
        open(left, &memory).expect("nothing is lost");
    }
    assert!(met[1] > 0, "{met:?}");
}

#[test]
fn what_is_written_does_not_follow_from_what_is_read() {
    for seed in 0..scaled(8) {
        let mut dice = Dice::new(seed ^ 0x7ace);
        let options = any_options(&mut dice);
        let (start, memory) = (MemoryStore::new(), MemoryKeeper::default());
        let start = Arc::new(start);
        drop(create(start.clone(), options, &memory).expect("a volume"));
        let events = any_events(&mut dice, options.engine.blocks, 40);
        let [alone, beside] = [false, true].map(|with_readers| {
            let (memory, store) = (memory.twin(), Arc::new(RecordStore::new(start.snapshot())));
            let mut volume = open(store.clone(), &memory).expect("its own");
            let reader = volume.reader().expect("it has readers");
            let over = AtomicBool::new(false);
            let readers = if with_readers { READERS } else { 0 };
            // All of them read before the first event, and go on.
            let (begun, all_begun) = channel();
            thread::scope(|scope| {
                for id in 0..readers {
                    let (reader, over, begun) = (&*reader, &over, begun.clone());
                    scope.spawn(move || {
                        let id = BlockId(id % options.engine.blocks);
                        let read = || reader.read(&[id], &mut |_, _| ()).expect("memory");
                        read();
                        begun.send(()).expect("it is waited for");
                        drop(begun);
                        while !over.load(Ordering::SeqCst) {
                            read();
                        }
                    });
                }
                drop(begun);
                let all = all_begun.iter().count() as u64;
                let played = events.iter().try_for_each(|event| act(&mut volume, event));
                over.store(true, Ordering::SeqCst);
                assert_eq!(all, readers);
                played.expect("memory");
            });
            writes(store.take())
        });
        assert!(!alone.is_empty() && alone == beside, "seed {seed}");
    }
}

#[test]
fn a_reader_refuses_what_is_no_block_and_goes_on() {
    let (store, memory) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
    let options = any_options(&mut Dice::new(3));
    let volume = create(store as Arc<dyn Store>, options, &memory).expect("a volume");
    let reader = volume.reader().expect("it has readers");
    let beyond = BlockId(options.engine.blocks);
    assert!(matches!(reader.read(&[beyond], &mut |_, _| ()), Err(Error::Invalid(_))));
    let mut found = Vec::new();
    reader
        .read(&[BlockId(0)], &mut |_, block| found.push(block.map(|it| it.is_some())))
        .expect("a block");
    assert_eq!(found, [Ok(false)]);
}
