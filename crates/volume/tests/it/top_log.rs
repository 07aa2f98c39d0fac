//! The top of the tree in a log: once a session is busy, it writes less.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, Layer, MemoryStore, Result, StoreAnswer, StoreCall};
use oblivio_testkit::Dice;
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions, TopLogs, Volume};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LOG: &str = "top-log";
const BLOCK: usize = 4096;
const BLOCKS: u64 = 15_000;
/// Reads between two commits, about: 505 scheduled paths.
const INTERVAL: u64 = 1515;
/// More room than any session asks for.
const MUCH: u64 = 1 << 40;

/// A disk with this much room left. It counts the bytes that are written.
struct Disk {
    below: MemoryStore,
    free: AtomicU64,
    written: AtomicU64,
}

impl Layer for Disk {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.below
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::FreeBytes => {
                return Ok(StoreAnswer::Number(Some(self.free.load(Relaxed))));
            }
            StoreCall::Write(writes) => {
                let bytes: usize = writes.iter().map(|write| write.data.len()).sum();
                self.written.fetch_add(bytes as u64, Relaxed);
            }
            _ => {}
        }
        call.on(&self.below)
    }
}

impl Disk {
    fn log_bytes(&self) -> u64 {
        self.len(LOG).expect("memory").unwrap_or(0)
    }
}

/// A volume with some thousand blocks, in its second session.
fn filled(top_logs: TopLogs) -> (Arc<Disk>, Volume) {
    let below = MemoryStore::new();
    let (free, written) = (AtomicU64::new(MUCH), AtomicU64::new(0));
    let disk = Arc::new(Disk { below, free, written });
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 1 << 28, kdf: KdfParams::TEST };
    let passphrase = Passphrase::new("busy");
    let options =
        |top_logs| OpenOptions { memory_bytes: 96 << 20, top_logs, ..OpenOptions::default() };
    let made = Volume::create(disk.clone(), &passphrase, create, options(TopLogs::Never));
    let mut volume = made.expect("an empty store");
    volume.reserve(BLOCKS).expect("room");
    let write = |id: u64| BlockOp { id: BlockId(id), action: Action::Write(content(id)) };
    volume.access((0..BLOCKS).map(write).collect()).expect("room");
    volume.finish().expect("memory");
    drop(volume);
    disk.written.store(0, Relaxed);
    let volume = Volume::open(disk.clone(), &passphrase, options(top_logs)).expect("it ended well");
    (disk, volume)
}

fn content(id: u64) -> Vec<u8> {
    vec![id as u8; BLOCK]
}

/// This many reads, in batches of eight.
fn read(volume: &mut Volume, dice: &mut Dice, count: u64) {
    for _ in 0..count / 8 {
        let ids: Vec<u64> = (0..8).map(|_| dice.below(BLOCKS)).collect();
        let op = |id: &u64| BlockOp { id: BlockId(*id), action: Action::Read };
        let answers = volume.access(ids.iter().map(op).collect()).expect("memory");
        for (id, answer) in ids.into_iter().zip(answers) {
            assert_eq!(answer, Some(content(id)));
        }
    }
}

#[test]
fn a_busy_session_writes_less() {
    let written = |top_logs| {
        let (disk, mut volume) = filled(top_logs);
        let mut dice = Dice::new(1);
        read(&mut volume, &mut dice, INTERVAL / 2);
        assert_eq!(disk.log_bytes(), 0, "it is not busy yet");
        read(&mut volume, &mut dice, 2 * INTERVAL);
        disk.written.store(0, Relaxed);
        read(&mut volume, &mut dice, 6 * INTERVAL);
        let busy = disk.written.load(Relaxed);
        assert_eq!(disk.log_bytes() > 0, top_logs == TopLogs::Busy);
        volume.finish().expect("memory");
        assert_eq!(disk.log_bytes(), 0, "it ended");
        volume.verify(&mut |_, _| {}).expect("all is in buckets");
        busy
    };
    let (with, without) = (written(TopLogs::Busy), written(TopLogs::Never));
    assert!(with * 3 < without * 2, "{with} of {without} bytes");
}

/// The log begins only if there is room beside it, and gives its room back where there is none.
#[test]
fn a_log_takes_no_room_that_is_short() {
    let (disk, mut volume) = filled(TopLogs::Busy);
    let mut dice = Dice::new(2);
    read(&mut volume, &mut dice, 3 * INTERVAL);
    assert!(disk.log_bytes() > 0);
    disk.free.store(64 << 20, Relaxed);
    read(&mut volume, &mut dice, 3 * INTERVAL);
    assert_eq!(disk.log_bytes(), 0);
    read(&mut volume, &mut dice, 3 * INTERVAL);
    assert_eq!(disk.log_bytes(), 0, "it does not begin again");
    disk.free.store(MUCH, Relaxed);
    read(&mut volume, &mut dice, 3 * INTERVAL);
    assert!(disk.log_bytes() > 0);
}
