//! Links, renames and special files, as in POSIX.

use super::*;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

fn rename(fs: &FileSystem, from: &str, to: &str) -> oblivio_volume::Result<()> {
    fs.rename(ROOT_INO, from.as_bytes(), ROOT_INO, to.as_bytes(), RenameMode::Replace)
}

fn mkdir(fs: &FileSystem, parent: Ino, name: &str) -> Ino {
    fs.mkdir(parent, name.as_bytes(), NewNode::default()).unwrap().ino
}

#[test]
fn a_rename_between_names_of_one_file_does_nothing() {
    let (_disk, fs) = fresh(2_000);
    let ino = put(&fs, ROOT_INO, "a", b"1").unwrap();
    fs.link(ino, ROOT_INO, b"b").unwrap();
    rename(&fs, "a", "b").unwrap();
    rename(&fs, "a", "a").unwrap();
    assert_eq!(fs.attr(ino).unwrap().nlink, 2);
    assert_eq!(fs.read_dir(ROOT_INO, None, 9).unwrap().len(), 2);
}

#[test]
fn a_replaced_file_that_is_open_keeps_its_data() {
    let (_disk, fs) = fresh(2_000);
    let (old, handle) = open_new(&fs, "target");
    fs.write(handle, 0, &[1; 9_000]).unwrap();
    put(&fs, ROOT_INO, "source", b"new").unwrap();
    rename(&fs, "source", "target").unwrap();
    assert_eq!(fs.attr(old).unwrap().nlink, 0);
    fs.write(handle, 9_000, &[2; 10]).unwrap();
    fs.allocate(handle, 0, 50_000, true).unwrap();
    fs.set_xattr(old, b"user.x", b"y", XattrMode::Set).unwrap();
    fs.commit().unwrap();
    assert_eq!(fs.read(handle, 8_999, 20).unwrap(), [&[1][..], &[2; 10]].concat());
    let mode = SetAttr { mode: Some(0o600), size: Some(5), ..SetAttr::default() };
    assert_eq!(fs.set_attr(old, mode).unwrap().size, 5);
    assert!(matches!(fs.link(old, ROOT_INO, b"back"), Err(Error::NotFound(_))));
    assert_clean(&fs);
    fs.close(handle).unwrap();
    assert!(matches!(fs.attr(old), Err(Error::NotFound(_))));
    assert_eq!(get(&fs, fs.lookup(ROOT_INO, b"target").unwrap().ino), b"new");
    assert_clean(&fs);
}

#[test]
fn what_cannot_be_replaced_or_removed_says_why() {
    let (_disk, fs) = fresh(2_000);
    let full = mkdir(&fs, ROOT_INO, "full");
    mkdir(&fs, ROOT_INO, "empty");
    put(&fs, ROOT_INO, "file", b"").unwrap();
    put(&fs, full, "inside", b"").unwrap();
    assert!(matches!(rename(&fs, "empty", "full"), Err(Error::NotEmpty(_))));
    assert!(matches!(rename(&fs, "file", "full"), Err(Error::IsADirectory(_))));
    assert!(matches!(rename(&fs, "empty", "file"), Err(Error::NotADirectory(_))));
    assert!(matches!(rename(&fs, "none", "file"), Err(Error::NotFound(_))));
    assert!(matches!(rename(&fs, "file", &"x".repeat(256)), Err(Error::NameTooLong(_))));
    assert!(matches!(rename(&fs, "file", ".."), Err(Error::Invalid(_))));
    let below = fs.rename(ROOT_INO, b"full", full, b"x", RenameMode::Replace);
    assert!(matches!(below, Err(Error::Invalid(_))));
    let above = fs.rename(full, b"inside", ROOT_INO, b"file", RenameMode::NoReplace);
    assert!(matches!(above, Err(Error::Exists(_))));
    assert!(matches!(fs.rmdir(ROOT_INO, b"full"), Err(Error::NotEmpty(_))));
    assert!(matches!(fs.rmdir(ROOT_INO, b"file"), Err(Error::NotADirectory(_))));
    assert!(matches!(fs.unlink(ROOT_INO, b"empty"), Err(Error::IsADirectory(_))));
    let file = fs.lookup(ROOT_INO, b"file").unwrap().ino;
    assert!(matches!(fs.lookup(file, b"x"), Err(Error::NotADirectory(_))));
    assert!(matches!(fs.link(full, ROOT_INO, b"l"), Err(Error::IsADirectory(_))));
    let size = SetAttr { size: Some(0), ..SetAttr::default() };
    assert!(matches!(fs.set_attr(full, size), Err(Error::IsADirectory(_))));
    assert_clean(&fs);
}

#[test]
fn directories_know_where_they_are() {
    let (_disk, fs) = fresh(2_000);
    let (a, b) = (mkdir(&fs, ROOT_INO, "a"), mkdir(&fs, ROOT_INO, "b"));
    let inner = mkdir(&fs, a, "inner");
    assert_eq!((fs.parent(inner).unwrap(), fs.parent(ROOT_INO).unwrap()), (a, ROOT_INO));
    fs.rename(a, b"inner", b, b"moved", RenameMode::Replace).unwrap();
    assert_eq!(fs.parent(inner).unwrap(), b);
    assert_eq!((fs.attr(a).unwrap().nlink, fs.attr(b).unwrap().nlink), (2, 3));
    let file = put(&fs, a, "f", b"").unwrap();
    assert!(matches!(fs.parent(file), Err(Error::NotADirectory(_))));
    assert_clean(&fs);
}

#[test]
fn special_files_are_names_with_attributes() {
    let (disk, fs) = fresh(2_000);
    let node = NewNode { mode: 0o640, uid: 3, gid: 4, ..NewNode::default() };
    let made = |name: &str, kind| fs.mknod(ROOT_INO, name.as_bytes(), kind, 0x0103, node);
    for (name, kind, rdev) in [
        ("fifo", FileKind::Fifo, 0),
        ("socket", FileKind::Socket, 0),
        ("char", FileKind::CharDevice, 0x0103),
        ("block", FileKind::BlockDevice, 0x0103),
        ("file", FileKind::File, 0),
    ] {
        let attr = made(name, kind).unwrap();
        assert_eq!((attr.kind, attr.rdev, attr.mode, attr.uid), (kind, rdev, 0o640, 3));
        fs.link(attr.ino, ROOT_INO, format!("{name}2").as_bytes()).unwrap();
        rename(&fs, name, &format!("{name}3")).unwrap();
    }
    assert!(matches!(made("char2", FileKind::Fifo), Err(Error::Exists(_))));
    assert!(matches!(made("d", FileKind::Directory), Err(Error::Invalid(_))));
    fs.commit().unwrap();
    let fs = crashed(&disk, fs);
    assert_eq!(fs.usage().unwrap().files, 5);
    let char = fs.lookup(ROOT_INO, b"char3").unwrap();
    assert_eq!((char.kind, char.rdev, char.nlink), (FileKind::CharDevice, 0x0103, 2));
    assert!(matches!(fs.open_file(char.ino), Err(Error::Invalid(_))));
    let size = SetAttr { size: Some(0), ..SetAttr::default() };
    assert!(matches!(fs.set_attr(char.ino, size), Err(Error::Invalid(_))));
    fs.unlink(ROOT_INO, b"char2").unwrap();
    fs.unlink(ROOT_INO, b"char3").unwrap();
    assert!(matches!(fs.attr(char.ino), Err(Error::NotFound(_))));
    assert_clean(&fs);
}

#[test]
fn symbolic_links_can_have_more_names() {
    let (_disk, fs) = fresh(2_000);
    let attr = fs.symlink(ROOT_INO, b"l", b"target", NewNode::default()).unwrap();
    assert_eq!(fs.link(attr.ino, ROOT_INO, b"m").unwrap().nlink, 2);
    fs.unlink(ROOT_INO, b"l").unwrap();
    let ino = fs.lookup(ROOT_INO, b"m").unwrap().ino;
    assert_eq!(fs.read_link(ino).unwrap(), b"target");
    let long = fs.symlink(ROOT_INO, b"n", &[b't'; 4_096], NewNode::default());
    assert!(matches!(long, Err(Error::NameTooLong(_))));
    assert_clean(&fs);
}

/// An open directory outlives its name, empty and without links, until it is closed or the volume
/// is opened after a crash.
#[test]
fn an_open_directory_outlives_its_name() {
    for crash in [false, true] {
        let (disk, fs) = fresh(2_000);
        let rooms = ["removed", "replaced"].map(|name| {
            let ino = fs.mkdir(ROOT_INO, name.as_bytes(), NewNode::default()).unwrap().ino;
            (ino, fs.open_directory(ino).unwrap())
        });
        fs.mkdir(ROOT_INO, b"other", NewNode::default()).unwrap();
        fs.rmdir(ROOT_INO, b"removed").unwrap();
        fs.rename(ROOT_INO, b"other", ROOT_INO, b"replaced", RenameMode::Replace).unwrap();
        for (ino, handle) in rooms {
            assert!(matches!(fs.write(handle, 0, b"no file"), Err(Error::IsADirectory(_))));
            assert_eq!(fs.attr(ino).unwrap().nlink, 0);
            assert_eq!(fs.read_dir(ino, None, 10).unwrap(), []);
            let made = fs.mkdir(ino, b"inside", NewNode::default());
            assert!(matches!(made, Err(Error::NotFound(_))), "{made:?}");
        }
        assert_clean(&fs);
        fs.commit().unwrap();
        let fs = match crash {
            true => crashed(&disk, fs),
            false => {
                rooms.iter().for_each(|&(_, handle)| fs.close(handle).unwrap());
                fs
            }
        };
        for (ino, _) in rooms {
            assert!(matches!(fs.attr(ino), Err(Error::NotFound(_))), "crash: {crash}");
        }
        assert_eq!(fs.usage().unwrap().directories, 2);
        assert_clean(&fs);
    }
}

#[test]
fn what_somebody_refers_to_outlives_its_name() {
    for crash in [false, true] {
        let (disk, fs) = fresh(2_000);
        let wanted = Arc::new(Mutex::new(HashSet::new()));
        let asked = Arc::clone(&wanted);
        fs.keep_while(Box::new(move |ino| asked.lock().unwrap().contains(&ino)));
        let file = put(&fs, ROOT_INO, "file", &[7; 5000]).unwrap();
        let other = put(&fs, ROOT_INO, "other", &[8; 9000]).unwrap();
        let room = fs.mkdir(ROOT_INO, b"room", NewNode::default()).unwrap().ino;
        wanted.lock().unwrap().extend([file, room]);
        fs.unlink(ROOT_INO, b"file").unwrap();
        fs.unlink(ROOT_INO, b"other").unwrap();
        fs.rmdir(ROOT_INO, b"room").unwrap();
        assert!(matches!(fs.attr(other), Err(Error::NotFound(_))), "nobody wants it");
        assert_eq!((fs.attr(file).unwrap().nlink, fs.attr(room).unwrap().nlink), (0, 0));
        assert_eq!((get(&fs, file), fs.parent(room).unwrap()), (vec![7; 5000], ROOT_INO));
        assert_eq!(fs.read_dir(room, None, 10).unwrap(), []);
        assert!(matches!(fs.link(file, ROOT_INO, b"again"), Err(Error::NotFound(_))));
        let handle = fs.open_file(file).unwrap();
        wanted.lock().unwrap().clear();
        fs.forget(file).unwrap();
        assert_eq!(fs.read(handle, 0, 9000).unwrap(), vec![7; 5000], "it is open");
        assert_clean(&fs);
        fs.commit().unwrap();
        let fs = match crash {
            true => crashed(&disk, fs),
            false => {
                fs.close(handle).unwrap();
                assert!(matches!(fs.attr(file), Err(Error::NotFound(_))));
                // The end of the session forgets the other one.
                FileSystem::open(fs.into_blocks().unwrap()).unwrap()
            }
        };
        for ino in [file, room] {
            assert!(matches!(fs.attr(ino), Err(Error::NotFound(_))), "crash: {crash}");
        }
        assert_clean(&fs);
    }
}

/// The character device of number 0 that marks "removed below" for an overlay.
#[test]
fn a_whiteout_takes_the_old_name_in_the_same_step() {
    let (disk, fs) = fresh(2_000);
    let node = NewNode { uid: 7, gid: 8, ..NewNode::default() };
    let leave = |from: &[u8], to: &[u8], mode| {
        fs.rename_with_whiteout((ROOT_INO, from), (ROOT_INO, to), mode, node)
    };
    let moved = put(&fs, ROOT_INO, "a", b"moved").unwrap();
    put(&fs, ROOT_INO, "b", b"replaced").unwrap();
    fs.commit().unwrap();
    assert!(matches!(leave(b"a", b"b", RenameMode::NoReplace), Err(Error::Exists(_))));
    assert!(matches!(leave(b"a", b"b", RenameMode::Exchange), Err(Error::Invalid(_))));
    assert!(matches!(leave(b"z", b"b", RenameMode::Replace), Err(Error::NotFound(_))));
    let files = fs.usage().unwrap().files;
    leave(b"a", b"b", RenameMode::Replace).unwrap();
    // One was replaced, and the whiteout was added.
    assert_eq!(fs.usage().unwrap().files, files);
    leave(b"b", b"c", RenameMode::NoReplace).unwrap();
    fs.commit().unwrap();
    let fs = crashed(&disk, fs);
    for name in [b"a", b"b"] {
        let attr = fs.lookup(ROOT_INO, name).unwrap();
        assert_eq!((attr.kind, attr.rdev, attr.mode), (FileKind::CharDevice, 0, 0));
        assert_eq!((attr.uid, attr.gid, attr.nlink), (7, 8, 1));
    }
    assert_eq!(fs.lookup(ROOT_INO, b"c").unwrap().ino, moved);
    assert_clean(&fs);
}
