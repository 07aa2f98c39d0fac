//! Times, extended attributes, whiteouts and handles.

use crate::common::until;
use crate::mount::{Rig, rig};
use rustix::fs::{AtFlags, CWD, FileType, RenameFlags, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

fn set_times(path: &Path, (seconds, nanos): (i64, i64)) {
    let at = Timespec { tv_sec: seconds, tv_nsec: nanos as _ };
    let times = Timestamps { last_access: at, last_modification: at };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("set");
}

fn mtime(path: &Path) -> (i64, i64) {
    let found = fs::symlink_metadata(path).expect("attributes");
    (found.mtime(), found.mtime_nsec())
}

fn atime(path: &Path) -> (i64, i64) {
    let found = fs::symlink_metadata(path).expect("attributes");
    (found.atime(), found.atime_nsec())
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn every_time_comes_back_to_the_nanosecond() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let times = [
        (0, 0),
        (0, 1),
        (-1, 0),
        (-1, 1),
        (-1, 500_000_000),
        (-1, 999_999_999),
        (-2, 999_999_999),
        (-86_400, 123_456_789),
        (-2_147_483_649, 5),
        (-62_135_596_800, 1),
        (4_294_967_296, 987_654_321),
        (253_402_300_800, 999_999_999),
        (i64::MAX, 0),
        (i64::MAX - 1, 999_999_999),
        (i64::MIN, 0),
        (i64::MIN + 1, 999_999_999),
    ];
    let path = |at: usize| rig.path(&format!("f{at}"));
    for (at, time) in times.into_iter().enumerate() {
        fs::write(path(at), "x").expect("written");
        set_times(&path(at), time);
        assert_eq!((mtime(&path(at)), atime(&path(at))), (time, time), "at once");
    }
    std::os::unix::fs::symlink("nowhere", rig.path("link")).expect("a link");
    set_times(&rig.path("link"), (-7, 250_000_000));
    rig.umount();
    rig.mount(&[]);
    for (at, time) in times.into_iter().enumerate() {
        assert_eq!((mtime(&path(at)), atime(&path(at))), (time, time), "mounted again");
    }
    assert_eq!(mtime(&rig.path("link")), (-7, 250_000_000));
}

/// Within the range of the local disk.
#[test]
#[ignore = "system: mounts through FUSE"]
fn times_go_through_put_mount_and_get() {
    let Some(rig) = rig() else { return };
    let times = [(-1, 500_000_000), (-2_000_000_000, 5), (-86_401, 999_999_999), (9, 1)];
    for (at, time) in times.into_iter().enumerate() {
        let local = rig.scratch.write(&format!("d/f{at}"), "content");
        set_times(&local, time);
        assert_eq!(mtime(&local), time, "the local disk");
    }
    std::os::unix::fs::symlink("nowhere", rig.scratch.path("d/link")).expect("a link");
    set_times(&rig.scratch.path("d/link"), (-3, 7));
    set_times(&rig.scratch.path("d"), (-5, 1));
    rig.scratch.good(["put", "-r", "v", "d", "/"]);
    rig.scratch.good(["get", "-r", "v", "/d", "back"]);
    rig.mount(&[]);
    for dir in [rig.path("d"), rig.scratch.path("back")] {
        for (at, time) in times.into_iter().enumerate() {
            assert_eq!(mtime(&dir.join(format!("f{at}"))), time, "{}", dir.display());
        }
        assert_eq!((mtime(&dir.join("link")), mtime(&dir)), ((-3, 7), (-5, 1)));
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn names_of_attributes_are_those_of_other_file_systems() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let path = rig.path("f");
    fs::write(&path, "").expect("written");
    let set = |name: &str| rustix::fs::setxattr(&path, name, b"x", XattrFlags::empty());
    let get = |name: &str| rustix::fs::getxattr(&path, name, &mut [0; 8][..]);
    for (name, refused) in [
        ("user.", Errno::INVAL),
        ("trusted.", Errno::INVAL),
        ("security.", Errno::INVAL),
        ("user", Errno::OPNOTSUPP),
        ("nonsense", Errno::OPNOTSUPP),
        ("nonsense.a", Errno::OPNOTSUPP),
        ("system.a", Errno::OPNOTSUPP),
        ("oblivio.pid", Errno::OPNOTSUPP),
        ("User.a", Errno::OPNOTSUPP),
    ] {
        assert_eq!(set(name), Err(refused), "setting {name:?}");
        assert_eq!(get(name), Err(refused), "getting {name:?}");
        assert_eq!(rustix::fs::removexattr(&path, name), Err(refused), "removing {name:?}");
    }
    let mut known = vec!["user.a", "user.b.c"];
    if rustix::process::geteuid().is_root() {
        known.extend(["trusted.a", "security.a"]);
    }
    for name in known {
        assert_eq!(get(name), Err(Errno::NODATA), "{name}");
        set(name).expect(name);
        assert_eq!(get(name), Ok(1), "{name}");
    }
}

fn rename_whiteout(from: &Path, to: &Path, more: RenameFlags) -> rustix::io::Result<()> {
    rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::WHITEOUT | more)
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_rename_can_leave_a_whiteout() {
    let Some(rig) = rig() else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root may make devices");
    }
    rig.mount(&[]);
    fs::write(rig.path("a"), "a").expect("written");
    fs::write(rig.path("b"), "b").expect("written");
    fs::create_dir(rig.path("d")).expect("made");
    let whiteout = |name: &str| {
        let found = fs::symlink_metadata(rig.path(name)).expect("there");
        assert!(found.file_type().is_char_device(), "{name}");
        assert_eq!((found.rdev(), found.mode() & 0o7777), (0, 0), "{name}");
    };
    let none = RenameFlags::empty();
    assert_eq!(
        rename_whiteout(&rig.path("a"), &rig.path("b"), RenameFlags::NOREPLACE),
        Err(Errno::EXIST)
    );
    assert_eq!(
        rename_whiteout(&rig.path("a"), &rig.path("b"), RenameFlags::EXCHANGE),
        Err(Errno::INVAL)
    );
    rename_whiteout(&rig.path("a"), &rig.path("b"), none).expect("replaced");
    rename_whiteout(&rig.path("d"), &rig.path("e"), none).expect("moved");
    for _ in 0..2 {
        assert_eq!(fs::read(rig.path("b")).expect("read"), b"a");
        assert!(rig.path("e").is_dir());
        ["a", "d"].into_iter().for_each(whiteout);
        assert_eq!(fs::metadata(&rig.dir).expect("root").nlink(), 3, "one directory is in it");
        rig.umount();
        rig.scratch.good(["check", "v"]);
        rig.mount(&[]);
    }
}

/// An overlay with its upper layer in the mount; unmounted before the mount.
struct Overlay<'r> {
    _rig: &'r Rig,
    merged: PathBuf,
}

impl<'r> Overlay<'r> {
    /// `None`, with a printed reason, where overlays are not available.
    fn mount(rig: &'r Rig) -> Option<Self> {
        let merged = rig.scratch.path("merged");
        fs::create_dir_all(&merged).expect("made");
        let (lower, upper, work) = (rig.scratch.path("lower"), rig.path("upper"), rig.path("work"));
        let layers = format!(
            "lowerdir={},upperdir={},workdir={}",
            lower.display(),
            upper.display(),
            work.display()
        );
        let layers = CString::new(layers).expect("no zeros");
        let flags = MountFlags::empty();
        match rustix::mount::mount("overlay", &merged, "overlay", flags, layers.as_c_str()) {
            Err(error @ (Errno::NODEV | Errno::PERM)) => {
                eprintln!("skipped: no overlays here: {error}");
                None
            }
            mounted => {
                mounted.expect("an upper layer in a mount of ours");
                Some(Self { _rig: rig, merged })
            }
        }
    }
}

impl Drop for Overlay<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.merged, UnmountFlags::DETACH);
        until(|| !self.merged.join("a").exists());
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_mount_is_an_upper_layer() {
    let Some(rig) = rig() else { return };
    for name in ["a", "b", "d/c", "gone/x"] {
        rig.scratch.write(&format!("lower/{name}"), name);
    }
    rig.mount(&[]);
    fs::create_dir(rig.path("upper")).expect("made");
    fs::create_dir(rig.path("work")).expect("made");
    let Some(overlay) = Overlay::mount(&rig) else { return };
    let merged = |name: &str| rig.scratch.path("merged").join(name);
    fs::remove_file(merged("a")).expect("removed");
    fs::rename(merged("b"), merged("b2")).expect("moved");
    fs::remove_dir_all(merged("gone")).expect("removed");
    fs::create_dir(merged("gone")).expect("made again, empty");
    fs::write(merged("d/new"), "new").expect("written");
    for name in ["a", "b"] {
        let found = fs::symlink_metadata(rig.path("upper").join(name)).expect("a whiteout");
        assert_eq!(FileType::from_raw_mode(found.mode()), FileType::CharacterDevice, "{name}");
    }
    let looks_right = || {
        assert!(!merged("a").exists() && !merged("b").exists());
        assert_eq!(fs::read(merged("b2")).expect("moved"), b"b");
        assert_eq!(fs::read_dir(merged("gone")).expect("there").count(), 0);
        assert_eq!(fs::read_dir(merged("d")).expect("there").count(), 2);
    };
    looks_right();
    drop(overlay);
    rig.umount();
    rig.mount(&[]);
    let overlay = Overlay::mount(&rig).expect("as before");
    looks_right();
    drop(overlay);
    rig.umount();
    rig.scratch.good(["check", "v"]);
}

/// Makes handles, or opens them; there is no safe call for it.
const HANDLES: &str = "
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def failed():
    return os.strerror(ctypes.get_errno())
def take(path):
    handle = ctypes.create_string_buffer(struct.pack('Ii', 128, 0), 136)
    if libc.name_to_handle_at(-100, path.encode(), handle, ctypes.byref(ctypes.c_int()), 0):
        return failed()
    return handle.raw.hex()
def follow(root, handle):
    fd = libc.open_by_handle_at(root, ctypes.create_string_buffer(bytes.fromhex(handle)), 0)
    if fd < 0:
        return failed()
    listed = os.path.isdir('/proc/self/fd/%d' % fd)
    return ' '.join(sorted(os.listdir(fd))) if listed else os.read(fd, 99).decode()
if sys.argv[1] == 'take':
    print('\\n'.join(take(path) for path in sys.argv[2:]))
else:
    root = os.open(sys.argv[2], os.O_RDONLY)
    print('\\n'.join(follow(root, handle) for handle in sys.argv[3:]))
";

#[test]
#[ignore = "system: mounts through FUSE"]
fn handles_lead_to_what_the_kernel_has_forgotten() {
    let Some(rig) = rig() else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root may open by handle");
    }
    rig.mount(&[]);
    fs::create_dir_all(rig.path("d/e")).expect("made");
    fs::write(rig.path("d/e/f"), "content").expect("written");
    fs::write(rig.path("d/gone"), "gone").expect("written");
    let python = |args: &[&str]| {
        let run = Command::new("python3").args(["-c", HANDLES]).args(args).output();
        run.ok().map(|output| {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{output:?}");
            said.lines().map(str::to_owned).collect::<Vec<_>>()
        })
    };
    let paths = ["d/e/f", "d/e", "d/gone"].map(|name| rig.path(name));
    let mut take = vec!["take"];
    take.extend(paths.iter().map(|path| path.to_str().expect("text")));
    let Some(handles) = python(&take) else {
        return eprintln!("skipped: there is no python3");
    };
    fs::rename(rig.path("d/e"), rig.path("moved")).expect("moved");
    fs::remove_file(rig.path("d/gone")).expect("removed");
    // A new mount knows no inode.
    rig.umount();
    rig.mount(&[]);
    let mut follow = vec!["follow", rig.dir.to_str().expect("text")];
    follow.extend(handles.iter().map(String::as_str));
    let found = python(&follow).expect("python3 was there");
    assert_eq!(found, ["content", "f", "Stale file handle"]);
}
