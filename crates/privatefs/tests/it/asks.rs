//! What each operation asks: the store sees how many asks there are.

use super::common::{BLOCK, Client, NODE, client};
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{
    Action, Ask, Does, FileKind, Lock, LockKind, LockOwner, Operation, ROOT, RenameMode, SetAttr,
    XattrMode,
};

/// The asks of an operation, and how many transactions they are.
fn asked<R>(by: &Client, operation: impl FnOnce() -> R) -> (usize, usize) {
    by.line.take_log();
    operation();
    let log = by.line.take_log();
    (log.iter().map(Vec::len).sum(), log.len())
}

#[test]
fn the_table_of_asks_holds() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, false);
    let fs = &a.fs;
    fs.lookup(ROOT, b"nothing").unwrap_err();

    // Bucket, directory, inode.
    let mut file = None;
    assert_eq!(asked(&a, || file = fs.create(ROOT, b"f", NODE).ok()), (3, 1));
    let file = file.unwrap().id;
    assert_eq!(asked(&a, || fs.mkdir(ROOT, b"d", NODE).unwrap()), (3, 1));
    assert_eq!(asked(&a, || fs.mknod(ROOT, b"p", FileKind::Fifo, 0, NODE).unwrap()), (3, 1));
    assert_eq!(asked(&a, || fs.symlink(ROOT, b"s", b"target", NODE).unwrap()), (3, 1));
    assert_eq!(asked(&a, || fs.link(file, ROOT, b"g").unwrap()), (3, 1));
    assert_eq!(asked(&a, || fs.unlink(ROOT, b"g").unwrap()), (3, 1));

    // Each page and the inode; short files are in it.
    let many = vec![7; 40 * BLOCK];
    let written = || {
        fs.write(file, 0, &many).unwrap();
        fs.fsync(file).unwrap();
    };
    assert_eq!(asked(&a, written), (41, 41));
    assert_eq!(asked(&a, || fs.read(file, 0, 40 * BLOCK).unwrap()), (40, 40));
    assert_eq!(asked(&a, || fs.read(file, 100, 5000).unwrap()), (2, 2));
    // In a row: all that is left at once.
    assert_eq!(asked(&a, || fs.read(file, 2 * 4096, 4096).unwrap()), (33, 33));
    assert_eq!(asked(&a, || fs.read(file, 3 * 4096, 30 * 4096).unwrap()), (0, 0));
    assert_eq!(asked(&a, || fs.append(file, b"short").unwrap()), (2, 1));
    assert_eq!(asked(&a, || fs.close(file).unwrap()), (1, 1));
    assert_eq!(asked(&a, || fs.open(file).unwrap()), (1, 1));
    assert_eq!(asked(&a, || fs.open(file).unwrap()), (1, 1));
    assert_eq!(asked(&a, || fs.close(file).unwrap()), (0, 0));
    let mode = SetAttr { mode: Some(0o600), ..SetAttr::default() };
    assert_eq!(asked(&a, || fs.set_attr(file, mode).unwrap()), (1, 1));
    assert_eq!(asked(&a, || fs.set_xattr(file, b"u", b"v", XattrMode::Set).unwrap()), (1, 1));
    let cut = SetAttr { size: Some(5000), ..SetAttr::default() };
    assert_eq!(asked(&a, || fs.set_attr(file, cut).unwrap()), (3, 1));
    let owner = LockOwner { number: 1, whole_file: true };
    let lock = Lock { kind: LockKind::Exclusive, start: 0, end: u64::MAX, pid: 1 };
    fs.lock_in_the_way(file, owner, lock).unwrap();
    assert_eq!(asked(&a, || fs.lock(file, owner, lock).unwrap()), (1, 1));
    assert_eq!(asked(&a, || fs.attr_now(file).unwrap()), (1, 1));
    assert_eq!(asked(&a, || fs.unlock(file, owner, (0, u64::MAX)).unwrap()), (1, 1));

    let short = fs.create(ROOT, b"short", NODE).unwrap().id;
    let written = || {
        fs.write(short, 0, b"a few bytes").unwrap();
        fs.fsync(short).unwrap();
    };
    assert_eq!(asked(&a, written), (1, 1));
    assert_eq!(asked(&a, || fs.read(short, 0, 4096).unwrap()), (0, 0));
}

#[test]
fn cold_reads_and_renames_ask_as_the_table_says() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, false);
    let d = a.fs.mkdir(ROOT, b"d", NODE).unwrap().id;
    for name in [b"f", b"g", b"h", b"i"] {
        a.fs.close(a.fs.create(ROOT, name, NODE).unwrap().id).unwrap();
    }
    a.fs.mkdir(ROOT, b"sub", NODE).unwrap();
    let b = client(&memory, 2, false);
    b.fs.attr(ROOT).unwrap();
    // Bucket and inode.
    assert_eq!(asked(&b, || b.fs.lookup(ROOT, b"f").unwrap()), (2, 2));
    b.fs.list(d, 0, 1).unwrap();
    b.fs.lookup(ROOT, b"g").unwrap();
    let replace = RenameMode::Replace;
    let rename = |from: &[u8], to, name: &[u8]| {
        asked(&b, || b.fs.rename((ROOT, from), (to, name), replace).unwrap())
    };
    // Both names are in one bucket here: at most 3.
    assert_eq!(rename(b"f", ROOT, b"f2"), (2, 1));
    // Two buckets, two directories.
    assert_eq!(rename(b"f2", d, b"f"), (4, 1));
    // And the inode that goes.
    assert_eq!(rename(b"g", d, b"f"), (5, 1));
    // And the directory, the counter of moves; before that it asks for counter, directories on the
    // way up and the moved one.
    assert_eq!(rename(b"sub", d, b"sub"), (6 + 3, 4));
}

#[test]
fn a_listing_asks_for_each_bucket_once_and_a_split_for_three_blocks() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, false);
    a.line.take_log();
    let d = a.fs.mkdir(ROOT, b"d", NODE).unwrap().id;
    for number in 0..2000 {
        a.fs.mknod(d, format!("file {number:05}").as_bytes(), FileKind::File, 0, NODE).unwrap();
    }
    let guards = |ask: &Ask| match &ask.does {
        Does::Block(Operation { action: Action::Patch { bytes, .. }, .. }) => {
            bytes.len() > 200 && ask.name.owner == d
        }
        _ => false,
    };
    let log = a.line.take_log();
    let splits: Vec<_> = log.iter().filter(|asks| asks.iter().any(guards)).collect();
    assert!((12..120).contains(&splits.len()), "{} splits", splits.len());
    assert!(splits.iter().all(|asks| (3..=5).contains(&asks.len())));
    let least = splits.iter().filter(|asks| asks.len() == 3).count();
    assert!(least > 0);

    let b = client(&memory, 2, false);
    b.fs.attr(d).unwrap();
    let buckets = splits.len() + 1;
    let mut listed = 0;
    let (asks, _) = asked(&b, || listed = b.fs.list(d, 0, usize::MAX).unwrap().len());
    assert_eq!(listed, 2000);
    assert!((buckets..buckets + buckets / 2).contains(&asks), "{asks} asks, {buckets} buckets");
    assert_eq!(asked(&b, || b.fs.list(d, 0, usize::MAX).unwrap()), (0, 0));
    let mut names = std::collections::BTreeSet::new();
    let mut after = 0;
    loop {
        let part = b.fs.list(d, after, 10).unwrap();
        let Some(last) = part.last() else { break };
        after = last.cookie;
        names.extend(part.into_iter().map(|entry| entry.name));
    }
    assert_eq!(names.len(), 2000);
}

#[test]
fn a_strict_client_answers_nothing_from_memory() {
    let memory = Memory::new(BLOCK);
    let a = client(&memory, 1, true);
    let file = a.fs.create(ROOT, b"f", NODE).unwrap().id;
    assert_eq!(asked(&a, || a.fs.write(file, 0, b"text").unwrap()), (2, 2));
    // The inode, and the pages in the same transaction.
    assert_eq!(asked(&a, || a.fs.read(file, 0, 4).unwrap()), (2, 1));
    assert_eq!(asked(&a, || a.fs.attr(file).unwrap()), (1, 1));
}
