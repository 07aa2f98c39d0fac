//! Programs' operations on names.

use crate::mount::rig;
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

#[test]
#[ignore = "system: mounts through FUSE"]
fn every_kind_of_node() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let umask = Mode::from_raw_mode(0o644);
    let mknod =
        |name: &str, kind, device| rustix::fs::mknodat(CWD, rig.path(name), kind, umask, device);
    mknod("fifo", FileType::Fifo, 0).expect("a fifo");
    mknod("socket", FileType::Socket, 0).expect("a socket");
    mknod("file", FileType::RegularFile, 0).expect("a file");
    let device = rustix::fs::makedev(1, 3);
    if rustix::process::geteuid().is_root() {
        mknod("null", FileType::CharacterDevice, device).expect("a device");
    }
    symlink("nowhere", rig.path("link")).expect("a link");
    fs::hard_link(rig.path("file"), rig.path("twin")).expect("a twin");
    fs::create_dir(rig.path("dir")).expect("a directory");
    rig.umount();
    rig.mount(&[]);
    let meta = |name: &str| fs::symlink_metadata(rig.path(name)).expect("attributes");
    assert!(meta("fifo").file_type().is_fifo() && meta("socket").file_type().is_socket());
    if rustix::process::geteuid().is_root() {
        assert_eq!(meta("null").rdev(), device);
    }
    assert_eq!(fs::read_link(rig.path("link")).expect("a target").to_str(), Some("nowhere"));
    assert_eq!((meta("twin").nlink(), meta("twin").ino()), (2, meta("file").ino()));
    assert_eq!((meta("dir").nlink(), fs::metadata(&rig.dir).expect("root").nlink()), (2, 3));
    let linked = rustix::fs::linkat(CWD, rig.path("dir"), CWD, rig.path("d2"), AtFlags::empty());
    assert_eq!(linked, Err(Errno::PERM));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn renames_by_all_rules() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let write = |name: &str| fs::write(rig.path(name), name).expect("written");
    let text = |name: &str| fs::read_to_string(rig.path(name)).expect("read");
    let rename = |from: &str, to: &str, flags| {
        rustix::fs::renameat_with(CWD, rig.path(from), CWD, rig.path(to), flags)
    };
    write("a");
    write("b");
    assert_eq!(rename("a", "b", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename("a", "b", RenameFlags::EXCHANGE).expect("swapped");
    assert_eq!((text("a"), text("b")), ("b".into(), "a".into()));
    assert_eq!(rename("a", "c", RenameFlags::EXCHANGE), Err(Errno::NOENT));
    rename("a", "b", RenameFlags::empty()).expect("replaced");
    assert_eq!(text("b"), "b");
    fs::create_dir_all(rig.path("d/e")).expect("directories");
    assert_eq!(rename("d", "d/e/f", RenameFlags::empty()), Err(Errno::INVAL));
    assert_eq!(rename("b", "d", RenameFlags::empty()), Err(Errno::ISDIR));
    assert_eq!(rename("d", "b", RenameFlags::empty()), Err(Errno::NOTDIR));
    assert_eq!(rustix::fs::rmdir(rig.path("d")), Err(Errno::NOTEMPTY));
    let long = "x".repeat(256);
    assert_eq!(fs::write(rig.path(&long), "").map_err(|e| e.raw_os_error()), Err(Some(36)));
    fs::write(rig.path(&long[1..]), "").expect("a long name");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_directory_of_ten_thousand() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let dir = rig.path("many");
    fs::create_dir(&dir).expect("a directory");
    for n in 0..10_000 {
        fs::write(dir.join(format!("file-{n}")), "").expect("a file");
    }
    rig.umount();
    let trace = rig.scratch.path("list.jsonl");
    rig.mount(&["--trace-out", "list.jsonl"]);
    let names: BTreeSet<_> = fs::read_dir(&dir)
        .expect("a listing")
        .map(|entry| {
            let entry = entry.expect("an entry");
            assert!(entry.metadata().expect("attributes").is_file());
            entry.file_name()
        })
        .collect();
    assert_eq!(names.len(), 10_000);
    // Requests to the store: far fewer than names.
    let requests = fs::read_to_string(&trace).expect("recorded").lines().count();
    assert!((1..1000).contains(&requests), "{requests} requests for a listing");
    // Removal during a listing finds them all.
    for entry in fs::read_dir(&dir).expect("a listing") {
        fs::remove_file(entry.expect("an entry").path()).expect("removed");
    }
    fs::remove_dir(&dir).expect("empty");
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn modes_owners_and_space() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let before = rustix::fs::statvfs(&rig.dir).expect("the space");
    assert_eq!((before.f_bsize, before.f_namemax), (16 << 10, 255));
    // However little room this disk has for the volume's limit.
    let used = before.f_blocks - before.f_bfree;
    assert!(used <= 256, "{used} blocks of nothing");
    let data = crate::common::noise(4 << 20, 9);
    fs::write(rig.path("f"), data).expect("written");
    let file = fs::File::open(rig.path("f")).expect("opened");
    file.sync_all().expect("synced");
    let after = rustix::fs::statvfs(&rig.dir).expect("the space");
    assert!(before.f_bfree - after.f_bfree >= 256, "{} {}", before.f_bfree, after.f_bfree);
    assert!(after.f_files - after.f_ffree >= 2 && after.f_bavail <= after.f_bfree);
    let meta = file.metadata().expect("attributes");
    assert!(meta.blocks() >= (4 << 20) / 512, "{}", meta.blocks());

    fs::create_dir(rig.path("team")).expect("a directory");
    fs::set_permissions(rig.path("team"), fs::Permissions::from_mode(0o2775)).expect("a mode");
    fs::create_dir(rig.path("team/sub")).expect("a directory");
    assert_eq!(fs::metadata(rig.path("team/sub")).expect("it").mode() & 0o2000, 0o2000);
    assert_eq!(fs::metadata(&rig.dir).expect("root").uid(), rustix::process::geteuid().as_raw());
}
