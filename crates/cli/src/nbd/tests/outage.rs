//! A store that fails or hangs: errors instead of waiting for ever, and when it is back everything
//! goes on, with nothing lost that was acknowledged.

use super::super::request::{Answer, Op, Queue};
use super::super::wire::Errno;
use super::serving::{ask, done, write};
use super::{BLOCK, SIZE, Server, settings};
use crate::mount::{layers, tests::flaky::*};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::Store;
use oblivio_volume::disk::Disk;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// So little that most of what is read comes from the store.
const MEMORY: usize = 256 << 10;

fn open(store: Arc<dyn Store>) -> Disk {
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

    let (layered, pulse) = layers(Arc::new(store.clone()));
    let queue = Arc::new(Queue::new(Duration::from_millis(300), pulse));
    let watched = Arc::clone(&queue);
    let watch = thread::spawn(move || watched.watch(|_| ()));
    let server = Server::new(open(layered), Arc::clone(&queue), settings());
    let server = thread::spawn(move || server.run());

    let all: Vec<u8> = (0..SIZE).map(|at| (at / 13) as u8).collect();
    for (at, part) in (0..).zip(all.chunks(SIZE as usize / 4)) {
        done(&ask(&queue, write(at * SIZE / 4, part, true)));
    }
    store.set(Some((call, trouble)));
    let late = ask(&queue, write(5000, b"late", true));
    assert_eq!(late.recv().expect("an answer"), Err(Errno::Io), "{call:?} {trouble:?}");
    // Whoever comes meanwhile is not kept waiting either.
    let meanwhile = ask(&queue, Op::Flush);
    assert_eq!(meanwhile.recv().expect("an answer"), Err(Errno::Io), "{call:?} {trouble:?}");
    store.set(None);

    // The same server goes on, as soon as it has tried the store again; a repeated write holds.
    let again = |op: &Op| loop {
        if let Ok(answer) = ask(&queue, op.clone()).recv().expect("an answer") {
            return answer;
        }
    };
    again(&write(5000, b"late", false));
    again(&Op::Flush);
    let mut model = all;
    model[5000..5004].copy_from_slice(b"late");
    let read = ask(&queue, Op::Read { offset: 0, len: SIZE as u32 });
    assert!(done(&read) == Answer::Data(model.clone()), "{call:?} {trouble:?}");
    queue.close();
    server.join().expect("no panic").expect("everything is committed");
    watch.join().expect("no panic");
    let stored = open(Arc::new(store)).read_many(&[(0, SIZE as usize)]).expect("inside");
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
