//! Which operation sets which time.

use super::*;

#[test]
fn times_come_from_the_clock_or_the_caller() {
    let disk = MemoryBlocks::new(4096, 2_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let at = |seconds| Timestamp { seconds, nanos: 5 };
    let node = NewNode { mtime: at(3), ..NewNode::default() };
    let (attr, handle) = fs.create(ROOT_INO, b"f", node).unwrap();
    assert_eq!((attr.mtime, attr.ctime, attr.crtime), (at(3), at(3), at(3)));
    fs.set_clock(Box::new(move || at(9)));
    fs.write(handle, 0, b"x").unwrap();
    assert_eq!(fs.attr(attr.ino).unwrap().mtime, at(9));
    let set = SetAttr { mtime: Some(at(4)), mode: Some(0o100_644), ..SetAttr::default() };
    let attr = fs.set_attr(attr.ino, set).unwrap();
    assert_eq!((attr.mtime, attr.ctime, attr.mode), (at(4), at(9), 0o644));
}

/// A clock that tests set.
fn clock(fs: &FileSystem) -> impl Fn(i64) + use<> {
    let now = std::sync::Arc::new(std::sync::atomic::AtomicI64::new(0));
    let seen = now.clone();
    let read = move || seen.load(std::sync::atomic::Ordering::SeqCst);
    fs.set_clock(Box::new(move || Timestamp { seconds: read(), nanos: 0 }));
    move |seconds| now.store(seconds, std::sync::atomic::Ordering::SeqCst)
}

#[test]
fn each_operation_sets_the_times_that_posix_names() {
    let (_disk, fs) = fresh(2_000);
    let set_time = clock(&fs);
    let (ino, handle) = open_new(&fs, "f");
    let mut now = 0;
    let mut check = |what: &str, run: &dyn Fn(), ino: Ino, mtime: bool, ctime: bool| {
        now += 1;
        set_time(now);
        let before = fs.attr(ino).unwrap();
        run();
        let after = fs.attr(ino).unwrap();
        assert_eq!(after.mtime.seconds == now, mtime, "mtime after {what}");
        assert_eq!(after.ctime.seconds == now, ctime, "ctime after {what}");
        assert_eq!(before.atime, after.atime, "atime after {what}");
    };
    let set = |set: SetAttr| fs.set_attr(ino, set).map(drop).unwrap();
    let none = SetAttr::default();
    let link = |name: &[u8]| fs.link(ino, ROOT_INO, name).map(drop).unwrap();
    check("write", &|| fs.write(handle, 0, &[1; 9_000]).unwrap(), ino, true, true);
    check("read", &|| drop(fs.read(handle, 0, 9).unwrap()), ino, false, false);
    check("truncate", &|| set(SetAttr { size: Some(8_000), ..none }), ino, true, true);
    check("punch", &|| fs.punch(handle, 0, 5_000).unwrap(), ino, true, true);
    check("zero", &|| fs.zero_range(handle, 0, 9, true).unwrap(), ino, true, true);
    check("allocate", &|| fs.allocate(handle, 0, 9, true).unwrap(), ino, false, true);
    check("extend", &|| fs.allocate(handle, 0, 9_000, false).unwrap(), ino, true, true);
    check("chmod", &|| set(SetAttr { mode: Some(0), ..none }), ino, false, true);
    check("chown", &|| set(SetAttr { uid: Some(1), ..none }), ino, false, true);
    check("link", &|| link(b"g"), ino, false, true);
    check("link", &|| link(b"h"), ROOT_INO, true, true);
    check("unlink", &|| fs.unlink(ROOT_INO, b"h").unwrap(), ino, false, true);
    check("unlink", &|| fs.unlink(ROOT_INO, b"g").unwrap(), ROOT_INO, true, true);
    let rename = |from, to| fs.rename(ROOT_INO, from, ROOT_INO, to, RenameMode::Replace).unwrap();
    check("rename", &|| rename(b"f", b"g"), ino, false, true);
    check("rename", &|| rename(b"g", b"f"), ROOT_INO, true, true);
    let xattr = || fs.set_xattr(ino, b"user.x", b"", XattrMode::Set).unwrap();
    check("set_xattr", &xattr, ino, false, true);
    check("remove_xattr", &|| fs.remove_xattr(ino, b"user.x").unwrap(), ino, false, true);
    check("failed create", &|| drop(open_exists(&fs)), ROOT_INO, false, false);
}

fn open_exists(fs: &FileSystem) -> Error {
    fs.create(ROOT_INO, b"f", NewNode::default()).unwrap_err()
}

#[test]
fn access_and_change_time_can_be_set() {
    let (disk, fs) = fresh(2_000);
    let at = |seconds| Timestamp { seconds, nanos: 999_999_999 };
    clock(&fs)(50);
    let (ino, _) = open_new(&fs, "f");
    let set = SetAttr {
        atime: Some(at(-5)),
        mtime: Some(at(6)),
        ctime: Some(at(7)),
        ..SetAttr::default()
    };
    fs.set_attr(ino, set).unwrap();
    fs.commit().unwrap();
    let fs = crashed(&disk, fs);
    let attr = fs.attr(ino).unwrap();
    assert_eq!((attr.atime, attr.mtime, attr.ctime), (at(-5), at(6), at(7)));
    assert_eq!(attr.crtime.seconds, 50);
}
