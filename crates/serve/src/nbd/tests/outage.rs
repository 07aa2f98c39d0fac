//! A store that fails or hangs: requests get errors instead of waiting for ever. When the store is
//! back, everything goes on and nothing acknowledged is lost.

use super::super::request::{DiskAnswer, DiskOp, DiskQueue};
use super::super::wire::Errno;
use super::serving::{ask, done, write};
use super::{BLOCK, DiskServer, DiskSettings, SIZE, settings};
use crate::layers::Layers;
use crate::mount::tests::flaky::*;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::AnyStore;
use oblivio_volume::disk::Disk;
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// How long a request waits for the store. The test tells when it has passed.
const LIMIT: Duration = Duration::from_secs(3600);
/// Small, to make most reads go to the store.
const MEMORY: usize = 256 << 10;

fn open(store: AnyStore) -> Disk {
    let options = OpenOptions { memory_bytes: MEMORY, ..OpenOptions::default() };
    let volume = Volume::open(store, &Passphrase::new("x"), options).expect("the volume");
    Disk::open(Box::new(volume)).expect("the disk")
}

fn weathers(call: Call, trouble: Trouble) {
    let store = Flaky::new(false);
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes: SIZE, kdf: KdfParams::TEST };
    let options = OpenOptions { memory_bytes: MEMORY, ..OpenOptions::default() };
    let secret = Passphrase::new("x");
    let volume = Volume::create(Arc::new(store.clone()), &secret, create, options);
    drop(Disk::format(Box::new(volume.expect("made")), SIZE).expect("a disk"));

    let Layers { store: layered, pulse, .. } = Layers::over(Arc::new(store.clone()));
    let queue = Arc::new(DiskQueue::new(LIMIT, pulse));
    let server = DiskServer::new(open(layered), Arc::clone(&queue), settings());
    let server = thread::spawn(move || server.run());

    let all: Vec<u8> = (0..SIZE).map(|at| (at / 13) as u8).collect();
    for (at, part) in (0..).zip(all.chunks(SIZE as usize / 4)) {
        done(&ask(&queue, write(at * SIZE / 4, part, true)));
    }
    store.set(Some((call, trouble)));
    let late = ask(&queue, write(5000, b"late", true));
    while store.hits.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    // A request that comes during the outage does not hang either.
    let meanwhile = ask(&queue, DiskOp::Flush);
    assert!(late.try_recv().is_err() && meanwhile.try_recv().is_err(), "they have time");
    queue.run_out();
    for late in [late, meanwhile] {
        assert_eq!(late.recv().expect("an answer"), Err(Errno::Io), "{call:?} {trouble:?}");
    }
    store.set(None);

    // The same server goes on once it has tried the store again; a repeated write holds.
    let again = |op: &DiskOp| loop {
        if let Ok(answer) = ask(&queue, op.clone()).recv().expect("an answer") {
            return answer;
        }
    };
    again(&write(5000, b"late", false));
    again(&DiskOp::Flush);
    let mut model = all;
    model[5000..5004].copy_from_slice(b"late");
    let read = ask(&queue, DiskOp::Read { offset: 0, len: SIZE as u32 });
    assert!(done(&read) == DiskAnswer::Data(model.clone()), "{call:?} {trouble:?}");
    queue.close();
    server.join().expect("no panic").expect("everything is committed");
    let stored = open(Arc::new(store).into()).read_many(&[(0, SIZE as usize)]).expect("inside");
    assert!(stored[0] == model, "{call:?} {trouble:?}");
}

#[test]
fn a_store_that_fails_or_hangs_is_taken_up_again() {
    for (call, trouble) in [
        (Call::Any, Trouble::Hangs),
        (Call::Any, Trouble::Fails),
        (Call::Write, Trouble::FailsAfter),
        (Call::Sync, Trouble::Fails),
    ] {
        weathers(call, trouble);
    }
}

/// Where reads are no accesses, a read waits for no write: neither for one that hangs in the store,
/// nor for a flush.
#[test]
fn reads_are_answered_while_a_write_hangs() {
    let (store, secret) = (Flaky::new(false), Passphrase::new("x"));
    let options = SequentialOptions::new(4096, SIZE);
    let (kdf, open) = (KdfParams::TEST, OpenOptions::default());
    let made = Arc::new(store.clone());
    let volume = SequentialVolume::create(made, &secret, kdf, options, open, &mut |_, _| {});
    let disk = Disk::format(Box::new(volume.expect("made")), SIZE).expect("a disk");
    let queue = Arc::new(DiskQueue::new(LIMIT, Arc::default()));
    let told: Arc<AtomicU64> = Arc::default();
    let hook = Arc::clone(&told);
    let on_request = Arc::new(move |_| {
        hook.fetch_add(1, Ordering::SeqCst);
    });
    let server_settings = DiskSettings { on_request: Some(on_request), ..settings() };
    let server = DiskServer::new(disk, Arc::clone(&queue), server_settings);
    let server = thread::spawn(move || server.run());

    let all: Vec<u8> = (0..SIZE).map(|at| (at / 13) as u8).collect();
    for (at, part) in (0..).zip(all.chunks(SIZE as usize / 4)) {
        done(&ask(&queue, write(at * SIZE / 4, part, true)));
    }
    store.set(Some((Call::Write, Trouble::Hangs)));
    let before = store.hits.load(Ordering::Relaxed);
    // Enough to cause flushes, and a flush that waits behind it.
    let changed = ask(&queue, write(0, &vec![7; SIZE as usize / 2], false));
    let flushed = ask(&queue, DiskOp::Flush);
    while store.hits.load(Ordering::Relaxed) == before {
        thread::yield_now();
    }
    let (second, len) = (SIZE / 2, SIZE as usize / 2);
    let reads: Vec<_> = (0..64)
        .map(|part| {
            let offset = second + part * (len as u64 / 64) + part;
            (offset, ask(&queue, DiskOp::Read { offset, len: 5000 }))
        })
        .collect();
    for (offset, read) in reads {
        let at = offset as usize;
        assert!(done(&read) == DiskAnswer::Data(all[at..at + 5000].to_vec()), "from {offset} on");
    }
    assert!(changed.try_recv().is_err() && flushed.try_recv().is_err(), "they hang");
    assert_eq!(told.load(Ordering::SeqCst), 4 + 1 + 64, "the hook hears of each");
    store.set(None);
    assert_eq!((done(&changed), done(&flushed)), (DiskAnswer::Done, DiskAnswer::Done));
    let late = ask(&queue, DiskOp::Read { offset: 0, len: len as u32 });
    queue.close();
    assert!(done(&late) == DiskAnswer::Data(vec![7; len]), "what was asked for before the end");
    server.join().expect("no panic").expect("everything is committed");
    let refused = ask(&queue, DiskOp::Read { offset: 0, len: 1 });
    queue.kill();
    assert_eq!(refused.recv().expect("an answer"), Err(Errno::Io));
}
