//! The file system over clients.

use super::{Line, World, clock, eventually, passphrase};
use oblivio_client::files::ClientFiles;
use oblivio_client::{ClientOptions as Hearing, NewShared, create, disk};
use oblivio_crypto::{Entropy, KdfParams, OsEntropy};
use oblivio_privatefs::{Action, Ask, Compare, Name, Transactions};
use oblivio_privatefs::{
    ClientEnvironment, Error, FsOptions, NewNode, PrivateFs, ROOT, RenameMode, Timestamp,
};
use oblivio_privatefs::{Lock, LockKind, LockOwner};
use oblivio_share::MemoryShare;
use oblivio_store::share::{Share, ShareCall};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const TIME: Timestamp = Timestamp { seconds: 1, nanos: 0 };
const NODE: NewNode = NewNode { mode: 0o644, uid: 1, gid: 1, mtime: TIME };

pub fn environment() -> ClientEnvironment {
    ClientEnvironment {
        now: Box::new(|| Timestamp { seconds: 1, nanos: 0 }),
        random: Box::new(|| {
            let mut bytes = [0; 16];
            OsEntropy.fill(&mut bytes);
            bytes
        }),
    }
}

/// A new file or directory.
pub fn node(mode: u32) -> NewNode {
    NewNode { mode, ..NODE }
}

fn strict() -> FsOptions {
    FsOptions { strict: true, ..FsOptions::default() }
}

fn world() -> World {
    let share: Arc<dyn Share> = Arc::new(MemoryShare::new(clock()));
    let new = NewShared { block_bytes: 1024, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
    let keyed = create(&*share, &new, &passphrase()).unwrap();
    World { line: Line::to(share), keyed }
}

fn mounted(world: &World) -> (Arc<ClientFiles>, PrivateFs) {
    let files = Arc::new(ClientFiles::new(world.client().0).unwrap());
    let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), strict()).unwrap();
    fs.create_root(NewNode { mode: 0o755, uid: 1, gid: 1, mtime: TIME }).unwrap();
    (files, fs)
}

#[test]
fn two_computers_use_one_directory() {
    let world = world();
    let ((one_files, one), (two_files, two)) = (mounted(&world), mounted(&world));
    let file = one.create(ROOT, b"letter", NODE).unwrap();
    one.open(file.id).unwrap();
    let text: Vec<u8> = (0..5000_u32).map(|at| at as u8).collect();
    one.write(file.id, 0, &text).unwrap();
    one.close(file.id).unwrap();
    let seen = two.lookup(ROOT, b"letter").unwrap();
    assert_eq!(two.read(seen.id, 0, 6000).unwrap(), text);
    assert!(matches!(two.create(ROOT, b"letter", NODE), Err(Error::Exists)));
    two.unlink(ROOT, b"letter").unwrap();
    assert!(matches!(one.lookup(ROOT, b"letter"), Err(Error::NotFound)));
    let findings = one.check().unwrap();
    assert!(findings.problems.is_empty(), "{findings:?}");
    one_files.close().unwrap();
    two_files.close().unwrap();
}

/// A volume holds files or a disk, by the root that is made first.
#[test]
fn a_volume_of_files_takes_no_disk_and_a_disk_no_files() {
    let node = NewNode { mode: 0o755, uid: 1, gid: 1, mtime: TIME };
    let with_files = world();
    let (files, _) = mounted(&with_files);
    let made = disk::make(with_files.client().0, 4096);
    assert!(matches!(made, Err(oblivio_volume::Error::HoldsFiles)), "{made:?}");
    files.close().unwrap();
    let with_disk = world();
    disk::make(with_disk.client().0, 4096).unwrap();
    let files = Arc::new(ClientFiles::new(with_disk.client().0).unwrap());
    let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), strict()).unwrap();
    assert!(!fs.create_root_unless(disk::ROOT, node).unwrap());
    assert!(matches!(fs.attr(ROOT), Err(Error::Stale)), "no root was made");
    files.close().unwrap();
    let empty = world();
    let files = Arc::new(ClientFiles::new(empty.client().0).unwrap());
    let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), strict()).unwrap();
    for _ in 0..2 {
        assert!(fs.create_root_unless(disk::ROOT, node).unwrap());
    }
    files.close().unwrap();
}

#[test]
fn whether_another_session_lives_is_known() {
    let world = world();
    let (one, two) = (mounted(&world).0, mounted(&world).0);
    let session = two.session();
    assert!(one.is_live(&session).unwrap() && one.is_live(&one.session()).unwrap());
    two.close().unwrap();
    assert!(!one.is_live(&session).unwrap());
    let (mut total, space) = (0, one.space().unwrap());
    total += space.total;
    assert!(total == 1024 && space.free < space.total, "{space:?}");
    one.close().unwrap();
}

/// A computer that slept for long has another session. A lock of the old one would not count.
#[test]
fn locks_are_those_of_the_session_that_lives() {
    let world = world();
    let ((one_files, one), (two_files, two)) = (mounted(&world), mounted(&world));
    let file = one.create(ROOT, b"ledger", NODE).unwrap().id;
    let (owner, whole) = (LockOwner { number: 1, whole_file: true }, (0, u64::MAX));
    let lock = Lock { kind: LockKind::Exclusive, start: whole.0, end: whole.1, pid: 1 };
    one.open(file).unwrap();
    two.open(file).unwrap();
    one.lock(file, owner, lock).unwrap();
    assert!(matches!(two.lock(file, owner, lock), Err(Error::Locked)));
    let (before, first) = (one.handle(), "written under the lock");
    one.write(file, 0, first.as_bytes()).unwrap();
    // As a scribe does with a session that is silent.
    let old = one_files.client().session();
    let block = Name { owner: *b"oblivio sessions", index: old.0 };
    let remove = Ask::change(block, Action::Remove, Compare::Always);
    two_files.client().carry_out(&[remove]).unwrap();
    two_files.client().end(old).unwrap();
    // What it held is given up, and it does not know that its session is over.
    two.lock(file, owner, lock).unwrap();
    two.write(file, 0, b"WRITTEN").unwrap();
    two.unlock(file, owner, whole).unwrap();
    assert!(matches!(one.write(file, 0, b"late"), Err(Error::LockLost)));
    assert!(matches!(one.check_handle(file, before), Err(Error::LockLost)));
    assert_eq!(two.read(file, 0, 99).unwrap(), b"WRITTEN under the lock");
    // A handle that is opened now can lock it.
    one.open(file).unwrap();
    one.check_handle(file, one.handle()).unwrap();
    one.lock(file, owner, lock).unwrap();
    assert_ne!(one_files.client().session(), old);
    assert!(matches!(two.lock(file, owner, lock), Err(Error::Locked)));
    one.unlock(file, owner, whole).unwrap();
    two.lock(file, owner, lock).unwrap();
    one_files.close().unwrap();
    two_files.close().unwrap();
}

#[test]
fn a_transaction_of_the_file_system_is_whole_or_absent() {
    let world = world();
    let (files, _) = mounted(&world);
    let name = |index| Name { owner: [9; 16], index };
    let write = |index, compare| Ask::change(name(index), Action::Write(vec![7; 8]), compare);
    let asks = [write(0, Compare::Absent), write(1, Compare::Exists)];
    assert!(files.carry_out(&asks).unwrap().iter().all(|answer| !answer.done));
    assert_eq!(files.carry_out(&[Ask::read(name(0))]).unwrap()[0].content, None);
    let asks = [write(0, Compare::Absent), write(1, Compare::Absent)];
    assert!(files.carry_out(&asks).unwrap().iter().all(|answer| answer.done));
    files.close().unwrap();
}

/// Names are answered from memory until the moment at which they change.
#[test]
fn what_another_computer_changes_leaves_the_cache() {
    let world = world();
    let open = |scribe| {
        let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
        let options = Hearing { notices: true, scribe, ..World::options() };
        let files = Arc::new(ClientFiles::new(world.client_over(&line, options)).unwrap());
        let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), FsOptions::default());
        (files, fs.unwrap(), line)
    };
    // The asks of a scribe go another way, and would not be counted.
    let ((one_files, one, _), (two_files, two, line)) = (open(true), open(false));
    let folder = NewNode { mode: 0o755, uid: 1, gid: 1, mtime: TIME };
    one.create_root(folder).unwrap();
    let file = one.create(ROOT, b"letter", NODE).unwrap();
    let other = one.mkdir(ROOT, b"other", folder).unwrap();
    let kept = one.create(other.id, b"kept", NODE).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    line.lie(move |call, _| {
        if matches!(call, ShareCall::Ask(_)) {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    // How often it asks for both names.
    let asks = |name: &[u8]| {
        let before = asked.load(Ordering::SeqCst);
        assert_eq!(two.lookup(ROOT, name).unwrap().id, file.id);
        assert_eq!(two.lookup(other.id, b"kept").unwrap().id, kept.id);
        asked.load(Ordering::SeqCst) - before
    };
    let mut names: [&[u8]; 2] = [b"letter", b"answer"];
    eventually("a change makes it forget what was changed, and no more", || {
        let [old, new] = names;
        // The first notice that it hears of may be any of these.
        let mut quiet = 0;
        eventually("names stay in memory", || {
            quiet = if asks(old) == 0 { quiet + 1 } else { 0 };
            (quiet == 20).then_some(())
        });
        one.rename((ROOT, old), (ROOT, new), RenameMode::Replace).unwrap();
        eventually("the old name goes", || two.lookup(ROOT, old).err());
        names = [new, old];
        // It forgets all if it hears nothing for seconds, as it may on a busy computer.
        let before = asked.load(Ordering::SeqCst);
        assert_eq!(two.lookup(other.id, b"kept").unwrap().id, kept.id);
        let is_kept = asked.load(Ordering::SeqCst) == before;
        assert_eq!(two.lookup(ROOT, new).unwrap().id, file.id);
        is_kept.then_some(())
    });
    // Its last answer is the scribe's.
    two_files.close().unwrap();
    one_files.close().unwrap();
}
