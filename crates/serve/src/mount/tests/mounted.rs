//! A real mount over a store that stalls; skipped where nothing can be mounted.

use super::*;
use crate::mount::attach;
use crate::mount::session::{MountOptions, Mounted, serve};
use crate::mount::stop;
use oblivio_store::{LocalStore, Slots, WriteAt};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

struct Stalling {
    gate: Gate,
    blocks: MemoryBlocks,
    dir: PathBuf,
    mounted: Mounted,
    pulse: Pulse,
    _parent: tempfile::TempDir,
}

fn stalling() -> Option<Stalling> {
    let parent = tempfile::tempdir().expect("a folder");
    let dir = parent.path().join("m");
    fs::create_dir(&dir).expect("a directory");
    let gate = Gate::default();
    let blocks = MemoryBlocks::new(4096, 1 << 16, 4 << 20);
    let space = Blocks { inner: blocks.boxed(), gate: gate.clone(), counts: Arc::default() };
    let fs = FileSystem::format(Box::new(space)).expect("an empty file system");
    let pulse = Pulse::default();
    let options =
        MountOptions { timeout: LIMIT, pulse: Arc::clone(&pulse), ..MountOptions::default() };
    match serve(fs, Vec::new(), &dir, options) {
        Ok(mounted) => Some(Stalling { gate, blocks, dir, mounted, pulse, _parent: parent }),
        Err(error) => {
            eprintln!("skipped: {}", error.line());
            None
        }
    }
}

impl Stalling {
    /// Does some work, while the time of all requests is over that wait at the gate.
    fn in_vain<T>(&self, work: impl FnOnce() -> T) -> T {
        let (queue, over) = (&self.mounted.queues.own, AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if self.gate.is_met() {
                        queue.run_out();
                    }
                    thread::sleep(Duration::from_millis(5));
                }
            });
            let done = work();
            over.store(true, Ordering::SeqCst);
            done
        })
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_stalled_mount_gives_errors_and_comes_back() {
    let Some(rig) = stalling() else { return };
    let mut file = fs::File::create(rig.dir.join("f")).expect("made");
    rig.gate.shut(true);
    file.write_all(b"first").expect("into the kernel's cache");
    let stalled = rig.in_vain(|| file.sync_all());
    assert_eq!(stalled.expect_err("stalled").raw_os_error(), Some(EIO));
    rig.gate.shut(false);
    file.write_all(b" second").expect("written");
    // The kernel reports a failed write once, to each process that has the file open.
    let _ = file.sync_all();
    file.sync_all().expect("the store is back");
    fs::write(rig.dir.join("g"), "new").expect("written");
    assert_eq!(fs::read(rig.dir.join("g")).expect("read"), b"new");
    drop(file);
    attach::detach(&rig.dir, false).expect("unmounted");
    rig.mounted.wait().expect("a last commit");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_stalled_mount_can_be_ended() {
    let Some(rig) = stalling() else { return };
    fs::write(rig.dir.join("f"), "never committed").expect("written");
    rig.gate.shut(true);
    let dir = rig.dir.clone();
    let (tell, ended) = channel();
    // Two signals, without sending any to the test process.
    thread::spawn(move || {
        let result = stop::until_ended(rig.mounted, &dir, |ask| {
            (0..2).for_each(|_| ask());
            Ok(())
        });
        let _ = tell.send(result.map_err(|error| error.to_string()));
    });
    // The store gives signs of life, so that it is not given up for its silence.
    let begun = Instant::now();
    let result = loop {
        rig.pulse.fetch_add(1, Ordering::Relaxed);
        if let Ok(result) = ended.recv_timeout(Duration::from_millis(100)) {
            break result;
        }
        assert!(begun.elapsed() < LONG, "the second signal ends it");
    };
    assert!(result.expect_err("lost").contains("lost"));
    rig.gate.shut(false);
}

/// A process that sends a request to its own mount and is killed before it answers waits for
/// itself: not even `kill -9` ends it.
#[test]
#[ignore = "system: mounts through FUSE"]
fn what_follows_the_mounting_asks_nothing_of_the_mount() {
    let dir = tempfile::tempdir().expect("a directory");
    let (tell, ended) = channel();
    let at = dir.path().to_owned();
    // Nobody answers: closing the connection to the kernel ends waiting requests too.
    let nobody = match attach::attach(&at, &MountOptions::default().look) {
        Ok(device) => device,
        Err(error) => return eprintln!("skipped: {}", error.line()),
    };
    thread::spawn(move || {
        attach::tune(&at);
        let _ = tell.send(());
    });
    let asked_nothing = ended.recv_timeout(LONG).is_ok();
    drop(nobody);
    attach::detach(dir.path(), true).expect("unmounted");
    assert!(asked_nothing);
}

/// Here the mount is the failing disk below a folder: the kernel drops data that it could not
/// write, and the next sync would succeed without it.
#[test]
#[ignore = "system: mounts through FUSE"]
fn a_folder_on_a_disk_that_failed_has_everything_after_the_next_good_sync() {
    let Some(rig) = stalling() else { return };
    let store = LocalStore::create(rig.dir.join("folder")).expect("made");
    let [old, new] = [1, 2].map(|seed| -> Vec<u8> {
        (0..8u64 << 20).map(|at| (at.wrapping_mul(seed) >> 5) as u8).collect()
    });
    let write = |data: &[u8]| store.write(&[WriteAt::new("a", 0, data)]);
    write(&old).and_then(|()| store.sync(&["a"])).expect("a disk that works");
    rig.gate.shut(true);
    write(&new).expect("into the kernel's cache");
    assert!(rig.in_vain(|| store.sync(&["a"])).is_err(), "the disk does not answer");
    rig.gate.shut(false);
    let back = Instant::now();
    while store.sync(&["a"]).is_err() {
        assert!(back.elapsed() < LONG, "it does not come back");
    }
    drop(store);
    attach::detach(&rig.dir, false).expect("unmounted");
    rig.mounted.wait().expect("a last commit");
    let fs = FileSystem::open(rig.blocks.boxed()).expect("the file system");
    let file = fs.open_file(fs.resolve("/folder/a").expect("there").ino).expect("opened");
    assert!(fs.read(file, 0, new.len()).expect("read") == new, "something was lost");
}
