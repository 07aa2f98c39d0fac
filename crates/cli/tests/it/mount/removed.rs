//! Removed files and directories that a process refers to without having them open: as on a local
//! file system.

use crate::common::until;
use crate::mount::rig;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;

/// Refers to a path; to the file system this is no open file.
fn refer(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("it is there")
}

/// Kind, mode, links and size as the file system reports them now, whatever the kernel has cached.
fn attributes(at: &OwnedFd) -> String {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    let wanted = StatxFlags::BASIC_STATS;
    match rustix::fs::statx(at, "", flags, wanted) {
        Ok(found) => {
            let size = if found.stx_mode & 0o170_000 == 0o100_000 { found.stx_size } else { 0 };
            format!("{:o}, {} links, {size} bytes", found.stx_mode, found.stx_nlink)
        }
        Err(error) => error.to_string(),
    }
}

fn told<T>(result: rustix::io::Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "fine".into())
}

fn list(at: &OwnedFd) -> String {
    let open = rustix::fs::openat(at, ".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let names = open.and_then(Dir::new).map(|dir| {
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| {
            entry.map_or_else(|error| error.to_string(), |e| format!("{:?}", e.file_name()))
        };
        dir.map(name).collect::<Vec<_>>()
    });
    format!("{names:?}")
}

/// Operations on a removed directory and on removed files, in `dir`.
fn doings(dir: &Path) -> Vec<String> {
    let room = dir.join("room");
    fs::create_dir(&room).expect("made");
    fs::create_dir(dir.join("other")).expect("made");
    let files = ["unlinked", "replaced"].map(|name| dir.join(name));
    files.iter().for_each(|file| fs::write(file, "some text").expect("written"));
    let at = refer(&room);
    let other = refer(&dir.join("other"));
    let [unlinked, replaced] = files.each_ref().map(|file| refer(file));
    fs::remove_dir(&room).expect("empty");
    fs::create_dir(&room).expect("another of that name");
    fs::rename(&room, dir.join("other")).expect("replaced");
    fs::remove_file(&files[0]).expect("removed");
    fs::write(dir.join("new"), "").expect("written");
    fs::rename(dir.join("new"), &files[1]).expect("replaced");

    let mut said = Vec::new();
    for at in [&at, &other] {
        let fd = format!("/proc/self/fd/{}", at.as_raw_fd());
        said.push(attributes(at));
        said.push(list(at));
        said.push(told(rustix::fs::chmod(&fd, Mode::RWXU)));
        said.push(attributes(at));
        let create = OFlags::CREATE | OFlags::WRONLY;
        said.push(told(rustix::fs::openat(at, "file", create, Mode::RWXU)));
        said.push(told(rustix::fs::mkdirat(at, "dir", Mode::RWXU)));
        said.push(told(rustix::fs::symlinkat("target", at, "link")));
        said.push(told(rustix::fs::openat(at, "nothing", OFlags::PATH, Mode::empty())));
        let above = rustix::fs::openat(at, "..", OFlags::PATH, Mode::empty());
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_ino);
        said.push(format!("{}", above.and_then(|above| inode(&above)) == inode(&refer(dir))));
    }
    for at in [&unlinked, &replaced] {
        let fd = format!("/proc/self/fd/{}", at.as_raw_fd());
        said.push(attributes(at));
        said.push(format!("{:?}", fs::read_to_string(&fd)));
        said.push(format!("{:?}", fs::write(&fd, "something longer")));
        said.push(format!("{:?}", fs::read_to_string(&fd)));
        said.push(attributes(at));
        let again = dir.join("again");
        said.push(told(rustix::fs::linkat(CWD, &fd, CWD, &again, AtFlags::SYMLINK_FOLLOW)));
    }
    said.push(told(rustix::fs::syncfs(refer_open(dir).as_fd())));
    said
}

fn refer_open(dir: &Path) -> OwnedFd {
    rustix::fs::open(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("there")
}

/// A shell in a removed working directory.
fn in_a_removed_directory(dir: &Path) -> String {
    fs::create_dir(dir.join("working")).expect("made");
    let script = "rmdir ../working; stat -c '%h %F' .; ls -a; echo $?; touch f 2>/dev/null; echo $?; \
                  mkdir d 2>/dev/null; echo $?; chmod 711 .; stat -c %a .; cd ..; ls; echo $?";
    let output = Command::new("sh").args(["-c", script]).current_dir(dir.join("working")).output();
    String::from_utf8(output.expect("a shell").stdout).expect("text")
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn what_is_removed_stays_as_long_as_somebody_refers_to_it() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let local = rig.scratch.path("local");
    fs::create_dir(&local).expect("made");
    let before = rustix::fs::statvfs(&rig.dir).expect("the space");
    let (here, there) = (doings(&rig.dir), doings(&local));
    assert_eq!(here, there);
    assert_eq!(in_a_removed_directory(&rig.dir), in_a_removed_directory(&local));
    for name in ["other", "replaced"] {
        let path = rig.path(name);
        fs::remove_dir(&path).or_else(|_| fs::remove_file(&path)).expect("removed");
    }
    // It goes with its last reference.
    let files = || {
        let now = rustix::fs::statvfs(&rig.dir).expect("the space");
        now.f_files - now.f_ffree
    };
    until(|| files() == before.f_files - before.f_ffree);
    // A reference that outlasts the mount ends with it.
    fs::write(rig.path("last"), "last").expect("written");
    let last = refer(&rig.path("last"));
    fs::remove_file(rig.path("last")).expect("removed");
    assert_eq!(fs::read_dir(&rig.dir).expect("a listing").count(), 0);
    drop(last);
    rig.umount();
    rig.scratch.good(["check", "v"]);
    assert_eq!(rustix::fs::access(rig.path("last"), rustix::fs::Access::EXISTS), Err(Errno::NOENT));
}
