//! A disk over clients, and who holds it.

use super::World;
use oblivio_client::Client;
use oblivio_client::disk::{Claim, SharedDisk, is_in, make};
use oblivio_engine::Action;
use oblivio_engine::pyramid::share::{Ask, Session};
use oblivio_engine::pyramid::{Name, Operation};
use oblivio_splitmix::SplitMix64;
use oblivio_volume::Error;
use oblivio_volume::disk::{Disk, DiskExtent};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: u64 = 150 * 256;

fn world() -> World {
    let world = World::in_memory();
    make(world.client().0, SIZE).unwrap();
    world
}

fn open(world: &World, computer: u8, take_over: bool) -> oblivio_volume::Result<SharedDisk> {
    let claim = Claim { computer: [computer; 16], take_over };
    SharedDisk::open(world.client().0, claim, Arc::default())
}

fn read(disk: &mut Disk, at: u64, len: usize) -> Vec<u8> {
    disk.read_many(&[(at, len)]).unwrap().remove(0)
}

/// What a scribe does with a session that is silent.
fn end(client: &Client, session: Session) {
    let block = Name { owner: *b"oblivio sessions", index: session.0 };
    let remove = Operation { action: Action::Remove, and_read: false };
    client.carry_out(&[Ask::new(block, remove)]).unwrap();
    client.end(session).unwrap();
}

/// The session that the block of the holder names.
fn holder(client: &Client) -> Session {
    let name = Name { owner: *b"oblivio disk\0\0\0\0", index: 1 };
    let read = Operation { action: Action::Read, and_read: true };
    let found = client.carry_out(&[Ask::new(name, read)]).unwrap().remove(0);
    let block = found.content.expect("somebody holds it");
    Session(u64::from_le_bytes(*block.first_chunk().unwrap()))
}

#[test]
fn a_volume_holds_files_or_a_disk() {
    let world = world();
    let client = world.client().0;
    assert!(is_in(&client).unwrap());
    assert!(matches!(make(client, SIZE), Err(Error::Exists(_))));
    let empty = World::in_memory();
    assert!(!is_in(&empty.client().0).unwrap());
    assert!(matches!(open(&empty, 1, false), Err(Error::Unsupported(_))));
    assert!(matches!(make(empty.client().0, 1 << 30), Err(Error::Full(_))));
    assert!(matches!(make(empty.client().0, 100), Err(Error::Invalid(_))));
}

/// As a disk in memory, whatever is written, discarded and flushed, across holders.
#[test]
fn it_is_a_disk() {
    let world = world();
    let (mut model, mut dice) = (vec![0; SIZE as usize], SplitMix64::new(7));
    for round in 0..6_u8 {
        // Every other time without an end, as after a crash of the same computer.
        let shared = open(&world, 1, false).unwrap();
        let mut disk = shared.disk().unwrap();
        assert_eq!(read(&mut disk, 0, SIZE as usize), model, "round {round}");
        let reader = disk.reader().expect("reads go beside");
        for step in 0..60 {
            let at = dice.next_u64() % SIZE;
            let len = (dice.next_u64() % 1500).min(SIZE - at);
            let part = at as usize..(at + len) as usize;
            match dice.next_u64() % 8 {
                0..=3 => {
                    let bytes: Vec<u8> = (0..len).map(|_| dice.next_u64() as u8).collect();
                    disk.write(at, &bytes).unwrap();
                    model[part].copy_from_slice(&bytes);
                }
                4 => {
                    disk.write_zeroes(at, len, false).unwrap();
                    model[part].fill(0);
                }
                5 => {
                    let (at, len) = (at / 256 * 256, len / 256 * 256);
                    disk.trim(at, len).unwrap();
                    model[at as usize..(at + len) as usize].fill(0);
                }
                6 => disk.flush().unwrap(),
                _ => {
                    let found = reader.read_many(&[(at, len as usize)]).unwrap().remove(0);
                    assert_eq!(found, model[part], "round {round}, step {step}");
                }
            }
        }
        disk.flush().unwrap();
        if round % 2 == 0 {
            shared.close().unwrap();
        }
    }
}

#[test]
fn one_computer_at_a_time_has_it() {
    let world = world();
    let one = open(&world, 1, false).unwrap();
    let mut disk = one.disk().unwrap();
    disk.write(0, b"first").unwrap();
    disk.flush().unwrap();
    assert!(matches!(open(&world, 2, false), Err(Error::Busy)));
    disk.write(300, b"not flushed").unwrap();
    let two = open(&world, 2, true).unwrap();
    let mut taken = two.disk().unwrap();
    assert_eq!(read(&mut taken, 0, 5), b"first");
    taken.write(0, b"other").unwrap();
    taken.flush().unwrap();
    for _ in 0..2 {
        assert!(matches!(disk.flush(), Err(Error::Closed(_))), "it was taken");
        assert!(matches!(disk.read_many(&[(0, 5)]), Err(Error::Closed(_))));
    }
    assert_eq!(read(&mut taken, 0, 5), b"other");
    assert_eq!(read(&mut taken, 300, 11), [0; 11], "nothing of the old holder comes later");
    one.close().unwrap();
    two.close().unwrap();
    // It is free.
    open(&world, 3, false).unwrap().close().unwrap();
}

#[test]
fn a_computer_that_slept_goes_on_unless_another_one_took_the_disk() {
    let world = world();
    let other = world.client().0;
    let one = open(&world, 1, false).unwrap();
    let mut disk = one.disk().unwrap();
    disk.write(0, b"before").unwrap();
    let old = holder(&other);
    end(&other, old);
    disk.flush().unwrap();
    assert_ne!(holder(&other), old, "in a new session");
    assert_eq!(read(&mut disk, 0, 6), b"before");
    assert!(matches!(open(&world, 2, false), Err(Error::Busy)), "which lives");
    // Now it sleeps for so long that another one needs no force.
    end(&other, holder(&other));
    let two = open(&world, 2, false).unwrap();
    disk.write(0, b"behind").unwrap();
    assert!(matches!(disk.flush(), Err(Error::Closed(_))));
    assert_eq!(read(&mut two.disk().unwrap(), 0, 6), b"before");
    two.close().unwrap();
}

#[test]
fn to_discard_what_was_never_written_asks_nothing() {
    let (world, calls) = (world(), Arc::new(AtomicU64::new(0)));
    let claim = Claim { computer: [1; 16], take_over: false };
    let one = SharedDisk::open(world.client().0, claim, Arc::clone(&calls)).unwrap();
    let mut disk = one.disk().unwrap();
    let before = calls.load(Ordering::Relaxed);
    disk.trim(0, SIZE).unwrap();
    disk.flush().unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), before);
    let whole = |exists| [DiskExtent { len: SIZE, exists }];
    assert_eq!(disk.extents(0, SIZE, 9).unwrap(), whole(false));
    disk.write(0, &[1; SIZE as usize]).unwrap();
    disk.flush().unwrap();
    assert_eq!(disk.extents(0, SIZE, 9).unwrap(), whole(true));
    let before = calls.load(Ordering::Relaxed);
    disk.trim(0, SIZE).unwrap();
    disk.flush().unwrap();
    assert!(calls.load(Ordering::Relaxed) > before);
    assert_eq!(read(&mut disk, 0, SIZE as usize), vec![0; SIZE as usize]);
    one.close().unwrap();
}
