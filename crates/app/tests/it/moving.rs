//! Volumes that move to another place, interrupted again and again.

use oblivio_app::moving::{ClaimForm, FilesCopy, MARK, Moved, ObjectCopy, unfinished};
use oblivio_crypto::{KdfParams, Passphrase, VolumeId};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, Store};
use oblivio_testkit::Dice;
use oblivio_testkit::fault::{Fault, FaultPlan, FaultStore, Kind, Repeat, When};
use oblivio_volume::fs::{
    FileKind, FileSystem, Ino, NewNode, ROOT_INO, SetAttr, Timestamp, XattrMode,
};
use oblivio_volume::windows::{WindowOptions, WindowVolume};
use oblivio_volume::{Error, HEADER_OBJECT, NewVolume, OpenOptions, Result, SeenBy, Volume};
use std::collections::BTreeMap;
use std::sync::Arc;

const CAPACITY: u64 = 64 << 20;

fn passphrase() -> Passphrase {
    Passphrase::new("moving")
}

/// Makes a volume for files.
type Make = fn(Arc<dyn Store>) -> Result<FileSystem>;

/// Small objects, and a small part of the tree in memory: many objects of all kinds.
fn windows(store: Arc<dyn Store>, exclusive: bool) -> Result<FileSystem> {
    let create = WindowOptions {
        object_bytes: 128 << 10,
        pool_bytes: 256 << 10,
        ..WindowOptions::new(4096, CAPACITY, exclusive)
    };
    let open = OpenOptions::default();
    let volume = WindowVolume::create(store, &passphrase(), KdfParams::TEST, create, open)?;
    FileSystem::format(Box::new(volume))
}

fn created(store: Arc<dyn Store>) -> Result<FileSystem> {
    windows(store, true)
}

fn listed(store: Arc<dyn Store>) -> Result<FileSystem> {
    windows(store, false)
}

fn tree(store: Arc<dyn Store>) -> Result<FileSystem> {
    let new = NewVolume::new(SeenBy::Storage, 4096, CAPACITY, KdfParams::TEST);
    let volume = new.create(store, &passphrase(), OpenOptions::default(), &mut |_, _| {})?;
    FileSystem::format(Box::new(volume))
}

fn open(store: Arc<dyn Store>) -> Result<(FileSystem, VolumeId)> {
    let volume = Volume::open(store, &passphrase(), OpenOptions::default())?;
    let id = volume.known().volume;
    Ok((FileSystem::open(Box::new(volume))?, id))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 7 }
}

fn node(mode: u32) -> NewNode {
    NewNode { mode, uid: 7, gid: 8, mtime: at(1_000_000) }
}

fn store_file(fs: &FileSystem, parent: Ino, name: &[u8], content: &[u8]) -> Ino {
    let (attr, handle) = fs.create(parent, name, node(0o640)).expect("a file");
    fs.write(handle, 0, content).expect("room");
    fs.close(handle).expect("open");
    attr.ino
}

/// Files of all kinds, of several lengths, with names, links, holes and attributes.
fn fill(fs: &FileSystem) {
    let mut dice = Dice::new(3);
    let deep = fs.mkdir(ROOT_INO, b"deep", node(0o750)).expect("a directory").ino;
    let deeper = fs.mkdir(deep, b"er \xff", node(0o700)).expect("a directory").ino;
    for (name, len) in
        [("empty", 0), ("one", 1), ("page", 4096), ("odd", 70_001), ("long", 900_000)]
    {
        store_file(fs, deeper, name.as_bytes(), &dice.bytes(len));
    }
    for number in 0..40 {
        store_file(fs, deep, format!("small {number}").as_bytes(), &dice.bytes(number * 37));
    }
    let file = store_file(fs, ROOT_INO, b"named twice", b"content");
    fs.link(file, deep, b"other name").expect("a link");
    fs.set_xattr(file, b"user.note", b"a note", XattrMode::Set).expect("an attribute");
    fs.symlink(ROOT_INO, b"link", b"deep/small 3", node(0o777)).expect("a link");
    fs.mknod(ROOT_INO, b"pipe", FileKind::Fifo, 0, node(0o600)).expect("a pipe");
    let (holed, handle) = fs.create(ROOT_INO, b"holes", node(0o600)).expect("a file");
    fs.write(handle, 900_000, b"after a hole").expect("room");
    fs.close(handle).expect("open");
    let set = SetAttr { size: Some(1_500_000), mtime: Some(at(-5)), ..SetAttr::default() };
    fs.set_attr(holed.ino, set).expect("longer");
    fs.set_attr(deep, SetAttr { mtime: Some(at(77)), ..SetAttr::default() }).expect("a time");
    fs.commit().expect("memory");
}

/// All that there is to see of the files: the digest of a tree, by path.
fn digest(fs: &FileSystem) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    let (mut todo, mut firsts) = (vec![(Vec::new(), ROOT_INO)], BTreeMap::new());
    while let Some((path, ino)) = todo.pop() {
        let attr = fs.attr(ino).expect("it is there");
        let content = match attr.kind {
            FileKind::Directory => {
                for entry in fs.read_dir(ino, None, 1000).expect("names") {
                    todo.push(([&path[..], b"/", &entry.name].concat(), entry.ino));
                }
                Vec::new()
            }
            FileKind::File => {
                let handle = fs.open_file(ino).expect("a file");
                let content = fs.read(handle, 0, attr.size as usize).expect("sound");
                fs.close(handle).expect("open");
                oblivio_crypto::digest(&content).to_vec()
            }
            FileKind::Symlink => fs.read_link(ino).expect("a link"),
            _ => Vec::new(),
        };
        let first = firsts.entry(ino).or_insert_with(|| path.clone()).clone();
        let xattrs: Vec<_> = fs
            .list_xattrs(ino)
            .expect("sound")
            .into_iter()
            .map(|name| {
                let value = fs.get_xattr(ino, &name).expect("sound");
                (name, value)
            })
            .collect();
        let size = if attr.kind == FileKind::Directory { 0 } else { attr.size };
        let line = format!(
            "{:?} {size} {:o} {} {} {} {:?} {content:?} {xattrs:?} {first:?}",
            attr.kind, attr.mode, attr.uid, attr.gid, attr.nlink, attr.mtime
        );
        found.insert(path, line);
    }
    found
}

/// Every run is cut off after ten more requests than the one before.
fn cut(plan: &FaultPlan, run: u64, when: When) {
    plan.fail_in(10 * run, Fault { when, repeat: Repeat::FromThenOn, kind: Kind::Eio });
}

fn unheard(_: Moved) {}

#[test]
fn objects_arrive_however_often_the_copy_is_cut_off() {
    for (exclusive, when) in [(true, When::Before), (false, When::After)] {
        let from = Arc::new(MemoryStore::new());
        let fs = windows(from.clone(), exclusive).expect("an empty store");
        fill(&fs);
        fs.into_blocks().expect("memory");
        // A session that ended badly left something, too.
        drop(open(from.clone()).expect("sound"));
        let claims = if exclusive { ClaimForm::Created } else { ClaimForm::Listed };
        assert_eq!(ObjectCopy::claims(&*from).expect("memory"), Some(claims));

        let plan = FaultPlan::new();
        let to = Arc::new(FaultStore::new(MemoryStore::new(), plan.clone()));
        let all = from.list().expect("memory").len() as u64 - 1;
        let (mut runs, mut written, mut kept) = (0, 0, 0);
        let counts = loop {
            runs += 1;
            cut(&plan, runs, when);
            let done = ObjectCopy::begin(&*from, &*to).and_then(|mut objects| {
                objects.copy(&mut unheard)?;
                objects.finish()
            });
            plan.clear();
            match done {
                Ok(counts) => break counts,
                Err(_) => assert_eq!(to.len(HEADER_OBJECT).expect("memory"), None, "run {runs}"),
            }
            kept = kept.max(to.list().expect("memory").len());
            written += 1;
            assert!(runs < 200, "it goes on where it was");
        };
        assert!(written > 3 && kept > 0, "{written} {kept}");
        assert!(counts.kept > 0 && counts.copied < all, "{counts:?}");
        let listed = |store: &dyn Objects| {
            let mut names = store.list().expect("memory");
            // The last run may have been cut off after the first copy of the header.
            names.retain(|(name, _)| name != "header-2");
            names
        };
        assert_eq!(listed(&*from), listed(&*to));
        let (one, _) = open(from).expect("the old one opens");
        let (other, _) = open(to).expect("the new one opens");
        assert_eq!(digest(&one), digest(&other));
    }
}

#[test]
fn what_is_wrong_at_the_new_place_is_made_right_or_refused() {
    let from = Arc::new(MemoryStore::new());
    created(from.clone()).expect("an empty store").into_blocks().expect("memory");
    let to = Arc::new(MemoryStore::new());
    // Half of an object, one with other bytes, and one that the old volume has no more.
    let all = from.list().expect("memory");
    let (torn, changed) = (&all.iter().find(|it| it.1 > 1000).expect("one").0, &all[1]);
    to.put(torn, b"half", PutMode::Replace).expect("memory");
    to.put(&changed.0, &vec![1; changed.1 as usize], PutMode::Replace).expect("memory");
    to.put("b-0123456789abcdef-01-000000000001", b"gone", PutMode::Replace).expect("memory");
    let mut objects = ObjectCopy::begin(&*from, &*to).expect("of a volume");
    objects.copy(&mut unheard).expect("memory");
    objects.finish().expect("memory");
    assert_eq!(from.list().expect("memory"), to.list().expect("memory"));
    assert_eq!(
        digest(&open(from.clone()).expect("old").0),
        digest(&open(to.clone()).expect("new").0)
    );
    // Now there is a volume; and elsewhere there is something else.
    let error = ObjectCopy::begin(&*from, &*to).map(drop).expect_err("refused");
    assert!(matches!(error, Error::Exists(_)), "{error}");
    let other = MemoryStore::new();
    other.put("letter.txt", b"mine", PutMode::Replace).expect("memory");
    let error = ObjectCopy::begin(&*from, &other).map(drop).expect_err("refused");
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(other.list().expect("memory").len(), 1);
}

#[test]
fn files_arrive_on_another_engine_however_often_the_copy_is_cut_off() {
    // Each with how many times ten requests a run has more than the one before.
    let ways: [(Make, Make, u64); 2] = [(created, tree, 1), (tree, listed, 5)];
    for (old, new, more) in ways {
        let from = Arc::new(MemoryStore::new());
        let fs = old(from.clone()).expect("an empty store");
        fill(&fs);
        let wanted = digest(&fs);
        fs.into_blocks().expect("memory");
        let plan = FaultPlan::new();
        let to = Arc::new(FaultStore::new(MemoryStore::new(), plan.clone()));
        new(to.clone()).expect("an empty store").into_blocks().expect("memory");
        let (mut runs, mut marked) = (0, 0);
        let counts = loop {
            runs += 1;
            cut(&plan, more * runs, When::Before);
            let (source, id) = open(from.clone()).expect("sound");
            let done = open(to.clone()).and_then(|(target, _)| {
                let mut heard = unheard;
                let files = FilesCopy::begin(&source, id, &target, &mut heard)?;
                let counts = files.committing_every(64 << 10).run()?;
                target.into_blocks()?;
                Ok(counts)
            });
            plan.clear();
            match done {
                Ok(counts) => break Some(counts),
                // What was cut off says so, or had not begun, or was over.
                Err(_) => {
                    let (target, _) = open(to.clone()).expect("a cut does no harm");
                    match unfinished(&target).expect("sound") {
                        Some(_) => marked += 1,
                        None if digest(&target) == wanted => break None,
                        None => {}
                    }
                }
            }
            assert!(runs < 400, "it goes on where it was");
        };
        assert!(marked > 3, "{marked} of {runs}");
        assert!(counts.as_ref().is_none_or(|counts| counts.kept > 0), "{counts:?}");
        let (target, _) = open(to).expect("sound");
        assert_eq!(unfinished(&target).expect("sound"), None);
        assert_eq!(digest(&target), wanted);
        assert_eq!(target.check().expect("sound").problems, Vec::<String>::new());
    }
}

#[test]
fn what_the_old_volume_lost_meanwhile_goes_and_other_volumes_are_refused() {
    let from = Arc::new(MemoryStore::new());
    let fs = tree(from.clone()).expect("an empty store");
    fill(&fs);
    let to = created(Arc::new(MemoryStore::new())).expect("an empty store");
    let id = VolumeId::generate(&mut oblivio_crypto::SeededEntropy::new(1));
    // The first run is cut off once it has copied something.
    drop(FilesCopy::begin(&fs, id, &to, &mut unheard).expect("empty"));
    let stale = to.mkdir(ROOT_INO, b"stale", node(0o700)).expect("room").ino;
    store_file(&to, stale, b"file", b"gone");
    store_file(&to, ROOT_INO, b"link", b"a file where a link belongs");
    store_file(&to, ROOT_INO, b"deep", b"a file where a directory belongs");
    let twin = store_file(&to, ROOT_INO, b"holes", b"other bytes");
    to.link(twin, ROOT_INO, b"pipe").expect("room");
    to.commit().expect("memory");
    FilesCopy::begin(&fs, id, &to, &mut unheard).expect("its own").run().expect("memory");
    assert_eq!(digest(&to), digest(&fs));
    // Finished, it is a volume as any other.
    let error = FilesCopy::begin(&fs, id, &to, &mut unheard).map(drop).expect_err("refused");
    assert!(matches!(error, Error::Exists(_)), "{error}");
    // Nor does one copy end in another one's place, or begin with an unfinished one.
    let other = tree(Arc::new(MemoryStore::new())).expect("an empty store");
    drop(FilesCopy::begin(&fs, id, &other, &mut unheard).expect("empty"));
    let another = VolumeId::generate(&mut oblivio_crypto::SeededEntropy::new(2));
    assert!(FilesCopy::begin(&to, another, &other, &mut unheard).is_err());
    assert!(other.lookup(ROOT_INO, MARK).is_ok());
    let empty = tree(Arc::new(MemoryStore::new())).expect("an empty store");
    assert!(FilesCopy::begin(&other, another, &empty, &mut unheard).is_err());
}
