//! A store that fails, hangs or is full under load: errors come once the time of a request is over,
//! and afterwards everything goes on and nothing acknowledged is lost. The test tells when the time
//! is over; how long that is stands with the queue. `just mount-kills` makes the outages longer.
//! `Objects::put` has tests of its own: a mount never calls it, only a change of passphrases.

use super::flaky::{Call, Flaky, Trouble};
use super::*;
use crate::fuse::Statfs;
use crate::judge;
use crate::request_count::PulseStore;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::{Held, Patience, RetryStore, Store};
use oblivio_testkit::campaign::scaled;
use oblivio_volume::{CreateOptions, OpenOptions, Volume, change_passphrase};
use std::collections::BTreeMap;
use std::time::Instant;

/// How long an answer is waited for before the time of its request is over, if the store is away.
const PAUSE: Duration = Duration::from_millis(20);
const ENOSPC: i32 = 28;
const PIECE: usize = 100_000;

fn content(n: u64) -> Vec<u8> {
    (0..PIECE as u64).map(|at| (at.wrapping_mul(n + 3) >> 3) as u8).collect()
}

fn open_options() -> OpenOptions {
    // Small, to make the volume read from the store, too.
    OpenOptions { memory_bytes: 4 << 20, ..OpenOptions::default() }
}

/// A server over a volume over a flaky store.
struct Storm {
    store: Flaky,
    queue: Arc<MountQueue>,
    server: JoinHandle<Result<()>>,
    next: u64,
    /// The writes since the last sync, and those that a sync acknowledged; by number.
    written: BTreeMap<u64, bool>,
    sure: BTreeMap<u64, bool>,
}

impl Storm {
    fn new(tells: bool) -> Self {
        let (store, pulse) = (Flaky::new(tells), Pulse::default());
        let layers = PulseStore::new(Arc::new(store.clone()), Arc::clone(&pulse));
        let layers = RetryStore::new(Arc::new(layers), Patience::default(), Box::new(|_| ()));
        let create = CreateOptions { block_bytes: 4096, capacity_bytes: 1 << 30, kdf: KDF };
        let secret = Passphrase::new("storm");
        let volume = Volume::create(Arc::new(layers), &secret, create, open_options());
        let fs = FileSystem::format(Box::new(volume.expect("made"))).expect("an empty one");
        let queue = Arc::new(MountQueue::new(LIMIT, pulse));
        let settings =
            MountSettings { commit_every: Duration::from_millis(200), ..MountSettings::default() };
        let scarce = LowSpace::new(channel().0);
        let tells = ServerTells { late: channel().0, unlearn: channel().0, scarce };
        let server = MountServer::new(fs, Arc::clone(&queue), settings, tells);
        let server = thread::spawn(move || server.run());
        let (written, sure) = (BTreeMap::new(), BTreeMap::new());
        Storm { store, queue, server, next: 0, written, sure }
    }

    fn ask(&mut self, op: FileOp) -> std::result::Result<FileAnswer, i32> {
        let answer = send(&self.queue, op);
        eventually("an answer", || {
            let answer = answer.recv_timeout(PAUSE).ok();
            if answer.is_none() && self.store.is_away() {
                self.queue.run_out();
            }
            answer
        })
        .map_err(Errno::code)
    }

    fn usage(&mut self) -> Statfs {
        match self.ask(FileOp::StatFs { ino: ROOT_INO }) {
            Ok(FileAnswer::Statfs(usage)) => usage,
            other => panic!("{other:?}"),
        }
    }

    /// Bytes that may be added, as programs are told.
    fn free(&mut self) -> u64 {
        let usage = self.usage();
        usage.available * u64::from(usage.block_bytes)
    }

    /// Works until the store is back.
    fn comes_back(&mut self) {
        let begun = Instant::now();
        while let Err(error) = self.load() {
            assert!(begun.elapsed() < LONG, "it does not come back: {error}");
        }
    }

    /// Adds a file of some blocks; recorded only when all of it was accepted.
    fn add(&mut self) -> std::result::Result<(), i32> {
        let n = self.next;
        self.next += 1;
        let made = match self.ask(create(&format!("f{n}")))? {
            FileAnswer::Created(attr, fh, _) => (attr.ino, fh),
            other => panic!("{other:?}"),
        };
        let done = self.ask(write(made, 0, &content(n)));
        let closed = self.ask(close(made.1));
        done.and(closed)?;
        self.written.insert(n, true);
        Ok(())
    }

    fn remove(&mut self) -> std::result::Result<(), i32> {
        let Some((&n, _)) = self.sure.iter().find(|(_, there)| **there) else { return Ok(()) };
        // From now on it may exist or not.
        self.sure.remove(&n);
        self.ask(FileOp::Unlink(place(&format!("f{n}"))))?;
        self.written.insert(n, false);
        Ok(())
    }

    fn sync(&mut self) -> std::result::Result<(), i32> {
        self.ask(FileOp::Sync { ino: ROOT_INO, fh: None })?;
        self.sure.append(&mut self.written);
        Ok(())
    }

    /// Reads an acknowledged file.
    fn look(&mut self) -> std::result::Result<(), i32> {
        let there: Vec<u64> = self.sure.iter().filter(|(_, is)| **is).map(|(n, _)| *n).collect();
        let Some(&n) = there.get(self.next as usize % there.len().max(1)) else { return Ok(()) };
        let FileAnswer::Entry(Some(attr)) = self.ask(FileOp::Lookup(place(&format!("f{n}"))))?
        else {
            panic!("f{n} is lost")
        };
        let caller = Caller::default();
        let FileAnswer::Opened(fh, _) =
            self.ask(FileOp::Open { ino: attr.ino, flags: 0, caller })?
        else {
            panic!("f{n} does not open")
        };
        let data = self.ask(read((attr.ino, fh), 0, PIECE as u32));
        let closed = self.ask(close(fh));
        match data? {
            FileAnswer::Data(data) => assert!(data == content(n), "f{n} is wrong"),
            other => panic!("{other:?}"),
        }
        closed.map(drop)
    }

    /// Some of every operation; returns the first error.
    fn load(&mut self) -> std::result::Result<(), i32> {
        let done =
            [Self::add, Self::add, Self::look, Self::remove, Self::sync].map(|do_it| do_it(self));
        done.into_iter().collect()
    }

    /// Ends the server and opens the stored volume without it.
    fn end(self) {
        self.queue.close();
        self.server.join().expect("no panic").expect("a last commit");
        Self::check(self.store.disk, self.sure);
    }

    /// Checks that everything acknowledged is stored.
    fn check(disk: Arc<dyn Store>, sure: BTreeMap<u64, bool>) {
        let volume = Volume::open(disk, &Passphrase::new("storm"), open_options()).expect("opens");
        let fs = FileSystem::open(Box::new(volume)).expect("the file system");
        assert_eq!(fs.check_with(true, &mut |_, _| ()).expect("checked").problems, [""; 0]);
        for (n, there) in sure {
            let found = fs.lookup(ROOT_INO, format!("f{n}").as_bytes());
            assert_eq!(found.is_ok(), there, "f{n}");
            if let Ok(attr) = found {
                let handle = fs.open_file(attr.ino).expect("opened");
                assert!(fs.read(handle, 0, PIECE).expect("read") == content(n), "f{n}");
            }
        }
    }
}

const KDF: KdfParams = KdfParams::TEST;

/// Looks until something is there.
fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < LONG, "{what}");
    }
}

/// Load, trouble for a while under load, load again.
fn weather(call: Call, trouble: Trouble) {
    let mut storm = Storm::new(true);
    while storm.next < 60 {
        storm.load().expect("good weather");
    }
    storm.store.set(Some((call, trouble)));
    // Some calls are rare: the outage begins with the first one hit.
    for _ in 0..scaled(3) {
        let error = eventually("a call meets the trouble", || storm.load().err());
        assert_eq!(error, EIO, "{call:?} {trouble:?}");
    }
    storm.store.set(None);
    storm.comes_back();
    for _ in 0..10 {
        storm.load().expect("good weather again");
    }
    storm.end();
}

#[test]
fn every_kind_of_call_may_fail_for_a_while() {
    for call in [Call::Read, Call::Write, Call::Sync, Call::Any] {
        weather(call, Trouble::Fails);
    }
}

#[test]
fn a_call_may_take_effect_and_fail() {
    for call in [Call::Write, Call::Sync] {
        weather(call, Trouble::FailsAfter);
    }
}

#[test]
fn every_kind_of_call_may_hang_for_a_while() {
    for call in [Call::Read, Call::Sync, Call::Any] {
        weather(call, Trouble::Hangs);
    }
}

/// Fills the volume and empties it; the server answers before and after.
#[test]
fn giving_space_back_may_fail_for_a_while() {
    for call in [Call::Truncate, Call::Discard] {
        let mut storm = Storm::new(true);
        while storm.next < 200 {
            storm.add().expect("good weather");
        }
        // Where there is much room, some twice as much as this, holes come last, and here all would
        // be cut off by then. With a third of it there is hardly enough to shrink.
        let used: u64 = storm.store.disk.list().expect("memory").iter().map(|(_, len)| len).sum();
        storm.store.size.store(used + (128 << 20), Ordering::Relaxed);
        storm.sync().expect("good weather");
        storm.store.set(Some((call, Trouble::Fails)));
        while storm.sure.values().any(|there| *there) {
            if storm.remove().is_err() {
                break;
            }
        }
        eventually("the call is made", || {
            let _ = storm.sync();
            (storm.store.hits.load(Ordering::Relaxed) > 0).then_some(())
        });
        assert_eq!(storm.sync(), Err(EIO));
        storm.store.set(None);
        storm.comes_back();
        storm.end();
    }
}

#[test]
fn a_disk_that_fills_up_is_told_in_advance() {
    let mut storm = Storm::new(true);
    storm.load().expect("room");
    let (empty, unused) = (storm.free(), storm.usage().free);
    storm.store.size.store(256 << 20, Ordering::Relaxed);
    let less = storm.free();
    assert_eq!(storm.usage().free, unused, "nothing more is in it");
    assert!(less > 0 && less < 200 << 20 && less < empty, "{less}");
    let error = loop {
        if let Err(error) = storm.add() {
            break error;
        }
        assert!(storm.next < 4000, "it never fills up");
    };
    assert_eq!(error, ENOSPC);
    assert!(storm.free() < (8 << 20) + 4 * PIECE as u64);
    // Accepted writes are kept, and there is room to remove something.
    storm.sync().expect("room for what was accepted");
    storm.look().expect("read");
    storm.remove().expect("removed");
    storm.sync().expect("committed");
    storm.store.size.store(u64::MAX, Ordering::Relaxed);
    storm.load().expect("room again");
    storm.end();
}

#[test]
fn a_disk_that_others_fill_gives_errors_until_there_is_room() {
    let mut storm = Storm::new(false);
    storm.load().expect("room");
    let used: u64 = storm.store.disk.list().expect("memory").iter().map(|(_, len)| len).sum();
    storm.store.size.store(used + (8 << 20), Ordering::Relaxed);
    let error = loop {
        if let Err(error) = storm.load() {
            break error;
        }
        assert!(storm.next < 4000, "it never fills up");
    };
    assert_eq!(error, EIO);
    storm.store.size.store(u64::MAX, Ordering::Relaxed);
    storm.comes_back();
    storm.end();
}

/// It stays closed although the missing object is back: only the failed state knows the accepted
/// writes. Opened again, everything acknowledged is there.
#[test]
fn an_object_that_was_missing_takes_a_new_mount() {
    let mut storm = Storm::new(true);
    while storm.next < 100 {
        storm.load().expect("good weather");
    }
    let disk = Arc::clone(&storm.store.disk);
    storm.store.set(Some((Call::Any, Trouble::Missing)));
    let error = (0..1000).find_map(|_| {
        storm.next += 1;
        storm.look().err()
    });
    assert_eq!(error, Some(EIO));
    storm.store.set(None);
    assert_eq!((storm.look(), storm.sync()), (Err(EIO), Err(EIO)));
    storm.queue.close();
    let ended = storm.server.join().expect("no panic").expect_err("closed");
    assert!(judge::is_final(&ended), "it is told what to do: {ended}");
    Storm::check(disk, storm.sure);
}

#[test]
fn a_mount_replaces_no_object_whole() {
    let mut storm = Storm::new(true);
    storm.store.set(Some((Call::Put, Trouble::Fails)));
    while storm.next < 60 {
        storm.load().expect("good weather");
    }
    assert_eq!(storm.store.hits.load(Ordering::Relaxed), 0);
    storm.end();
}

/// Waits until this number of calls have met the trouble.
fn meets(store: &Flaky, calls: u64) {
    eventually("calls meet the trouble", || {
        thread::sleep(Duration::from_millis(1));
        (store.hits.load(Ordering::Relaxed) >= calls).then_some(())
    });
}

/// The header is replaced whole: whatever happens, one of the two passphrases opens the volume, and
/// it is the one that `change_passphrase` reported.
#[test]
fn a_passphrase_changes_or_does_not_during_an_outage() {
    let (old, new) = (Passphrase::new("storm"), Passphrase::new("new"));
    for trouble in [Trouble::Fails, Trouble::FailsAfter, Trouble::Hangs] {
        let mut storm = Storm::new(true);
        storm.load().expect("good weather");
        let store = storm.store.clone();
        storm.end();
        let opens = |with: &Passphrase| {
            let disk: Arc<dyn Store> = store.disk.clone();
            Volume::open(disk, with, open_options()).is_ok()
        };
        store.set(Some((Call::Put, trouble)));
        let changed = thread::scope(|scope| {
            let change = scope.spawn(|| change_passphrase(&store, &old, &new, KDF));
            meets(&store, 1);
            assert!(trouble != Trouble::Hangs || opens(&old), "nothing has happened yet");
            // What fails has failed for good before the store is back.
            let change = match trouble {
                Trouble::Hangs => Err(change),
                _ => Ok(change.join().expect("no panic")),
            };
            store.set(None);
            change.unwrap_or_else(|change| change.join().expect("no panic"))
        });
        assert_eq!(changed.is_ok(), trouble == Trouble::Hangs, "{trouble:?}");
        let took_effect = trouble != Trouble::Fails;
        assert_eq!((opens(&old), opens(&new)), (!took_effect, took_effect), "{trouble:?}");
        // The change may be tried again.
        let again = change_passphrase(&store, &old, &new, KDF);
        assert_eq!(again.is_ok(), !took_effect, "{trouble:?}");
        assert!(!opens(&old) && opens(&new), "{trouble:?}");
    }
}

/// A patient caller outlasts the outage.
#[test]
fn a_header_is_replaced_when_the_outage_is_over() {
    for trouble in [Trouble::Fails, Trouble::FailsAfter] {
        let mut storm = Storm::new(true);
        storm.load().expect("good weather");
        let store = storm.store.clone();
        storm.end();
        let layer = RetryStore::new(Arc::new(store.clone()), Patience::default(), Box::new(|_| ()));
        let (old, new) = (Passphrase::new("storm"), Passphrase::new("new"));
        store.set(Some((Call::Put, trouble)));
        thread::scope(|scope| {
            let change = scope.spawn(|| change_passphrase(&layer, &old, &new, KDF));
            meets(&store, 3);
            store.set(None);
            change.join().expect("no panic").expect("patient");
        });
        let disk: Arc<dyn Store> = store.disk;
        assert!(Volume::open(disk, &new, open_options()).is_ok(), "{trouble:?}");
    }
}
