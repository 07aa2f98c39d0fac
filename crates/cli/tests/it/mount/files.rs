//! Programs' operations on the data of files.

use crate::common::noise;
use crate::mount::rig;
use rustix::fs::{FallocateFlags, SeekFrom, XattrFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::{Duration, SystemTime};

#[test]
#[ignore = "system: mounts through FUSE"]
fn data_times_and_sizes_survive() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let data = noise(3_000_000, 1);
    fs::write(rig.path("a"), &data).expect("written");
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let file = File::options().write(true).open(rig.path("a")).expect("opened");
    file.set_modified(old).expect("a time");
    file.write_at(b"x", 5_000_000).expect("beyond the end");
    file.set_modified(old).expect("a time");
    drop(file);
    fs::write(rig.path("cut"), &data).expect("written");
    File::options().write(true).open(rig.path("cut")).expect("opened").set_len(10).expect("cut");
    File::create(rig.path("cut2")).expect("made").write_all(b"long").expect("written");
    File::create(rig.path("cut2")).expect("cut").write_all(b"ab").expect("written");
    for turn in 0..2 {
        let meta = fs::metadata(rig.path("a")).expect("attributes");
        assert_eq!((meta.len(), meta.modified().expect("a time")), (5_000_001, old), "{turn}");
        let read = fs::read(rig.path("a")).expect("read");
        assert!(read[..3_000_000] == data && read[5_000_000..] == *b"x");
        assert!(read[3_000_000..5_000_000].iter().all(|&byte| byte == 0));
        assert_eq!(fs::read(rig.path("cut")).expect("read"), data[..10]);
        assert_eq!(fs::read(rig.path("cut2")).expect("read"), b"ab");
        rig.umount();
        rig.mount(&[]);
    }
    rig.umount();
    rig.scratch.good(["check", "v"]);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn an_unlinked_file_lives_while_it_is_open() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let mut file = File::options().create_new(true).read(true).write(true).open(rig.path("gone"));
    let file = file.as_mut().expect("made");
    file.write_all(b"still here").expect("written");
    fs::remove_file(rig.path("gone")).expect("removed");
    file.sync_all().expect("synced");
    file.rewind().expect("back");
    let mut text = String::new();
    file.read_to_string(&mut text).expect("read");
    assert_eq!((text.as_str(), file.metadata().expect("attributes").nlink()), ("still here", 0));
    assert!(!rig.path("gone").exists());
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn holes_are_made_and_found() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let path = rig.path("f");
    fs::write(&path, noise(1 << 20, 2)).expect("written");
    let file = File::options().read(true).write(true).open(&path).expect("opened");
    file.sync_all().expect("synced");
    let full = file.metadata().expect("attributes").blocks();
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(&file, punch, 256 << 10, 512 << 10).expect("a hole");
    let meta = file.metadata().expect("attributes");
    assert_eq!(meta.len(), 1 << 20);
    assert!(meta.blocks() < full, "{} of {full}", meta.blocks());
    let seek = |from| rustix::fs::seek(&file, from);
    assert_eq!(seek(SeekFrom::Hole(0)), Ok(256 << 10));
    assert_eq!(seek(SeekFrom::Data(256 << 10)), Ok(768 << 10));
    assert_eq!(seek(SeekFrom::Data(1 << 20)), Err(Errno::NXIO));
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 2 << 20).expect("room");
    assert_eq!(file.metadata().expect("attributes").len(), 2 << 20);
    rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, 3 << 20).expect("room");
    assert_eq!(file.metadata().expect("attributes").len(), 2 << 20);
    rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 0, 4096).expect("zeros");
    let mut start = [1; 5000];
    file.read_exact_at(&mut start, 0).expect("read");
    assert!(start[..4096].iter().all(|&byte| byte == 0) && start[4096..].iter().any(|&b| b != 0));
    let collapse = rustix::fs::fallocate(&file, FallocateFlags::COLLAPSE_RANGE, 0, 16 << 10);
    assert_eq!(collapse, Err(Errno::OPNOTSUPP));
}

/// The kernel caches a new write, and asks for holes without writing it first.
#[test]
#[ignore = "system: mounts through FUSE"]
fn what_was_just_written_is_no_hole() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let mut file = File::create(rig.path("f")).expect("made");
    file.set_len(200_000).expect("a hole");
    for size in [10_000, 50_000] {
        file.write_all(&noise(size, 8)).expect("written");
        assert_eq!(rustix::fs::seek(&file, SeekFrom::Data(0)), Ok(0));
        let hole = rustix::fs::seek(&file, SeekFrom::Hole(0)).expect("found");
        assert_eq!(hole, (size as u64).next_multiple_of(16 << 10));
        file.rewind().expect("back");
        file.set_len(0).expect("cut");
        file.set_len(200_000).expect("a hole");
    }
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn ranges_are_copied() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let data = noise(40_000_000, 3);
    fs::write(rig.path("from"), &data).expect("written");
    fs::copy(rig.path("from"), rig.path("to")).expect("copied");
    assert!(fs::read(rig.path("to")).expect("read") == data);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn extended_attributes() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let path = rig.path("f");
    fs::write(&path, "").expect("written");
    let get = |name: &str, room: usize| {
        let mut value = vec![0; room];
        rustix::fs::getxattr(&path, name, &mut value[..]).map(|len| value[..len].to_vec())
    };
    let set = |name: &str, value: &[u8], flags| rustix::fs::setxattr(&path, name, value, flags);
    assert_eq!(get("user.a", 10), Err(Errno::NODATA));
    set("user.a", b"one", XattrFlags::CREATE).expect("set");
    assert_eq!(set("user.a", b"two", XattrFlags::CREATE), Err(Errno::EXIST));
    assert_eq!(set("user.b", b"two", XattrFlags::REPLACE), Err(Errno::NODATA));
    set("user.b", b"", XattrFlags::empty()).expect("set");
    assert_eq!(get("user.a", 10), Ok(b"one".to_vec()));
    assert_eq!(get("user.a", 2), Err(Errno::RANGE));
    assert_eq!(get("system.posix_acl_access", 10), Err(Errno::OPNOTSUPP));
    let mut names = [0; 100];
    let len = rustix::fs::listxattr(&path, &mut names[..]).expect("the names");
    assert_eq!(&names[..len], b"user.a\0user.b\0");
    rustix::fs::removexattr(&path, "user.a").expect("removed");
    assert_eq!(rustix::fs::removexattr(&path, "user.a"), Err(Errno::NODATA));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn mapped_memory_reaches_the_file() {
    let Some(rig) = rig() else { return };
    rig.mount(&[]);
    let script = "import mmap,sys\nf=open(sys.argv[1],'w+b')\nf.truncate(1<<20)\n\
                  m=mmap.mmap(f.fileno(),0)\nm[70000:70005]=b'hello'\nm.flush()\nm.close()";
    let run = Command::new("python3").args(["-c", script]).arg(rig.path("f")).status();
    match run {
        Ok(status) => assert!(status.success()),
        Err(_) => return eprintln!("skipped: there is no python3"),
    }
    rig.umount();
    rig.mount(&[]);
    let data = fs::read(rig.path("f")).expect("read");
    assert_eq!((data.len(), &data[70_000..70_005]), (1 << 20, &b"hello"[..]));
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn set_id_bits_go_when_they_must() {
    let Some(rig) = rig() else { return };
    if !rustix::process::geteuid().is_root() {
        return eprintln!("skipped: only root can be somebody else");
    }
    rig.mount(&["--allow-other"]);
    fs::set_permissions(rig.scratch.path("."), fs::Permissions::from_mode(0o755)).expect("open");
    let path = rig.path("f");
    let mode = || fs::metadata(&path).expect("attributes").mode() & 0o7777;
    let arm = || {
        fs::write(&path, "some text").expect("written");
        std::os::unix::fs::chown(&path, Some(1234), Some(1234)).expect("an owner");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6777)).expect("a mode");
        assert_eq!(mode(), 0o6777);
    };
    let nobody = |script: &str| {
        let shell = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script])
            .current_dir(&rig.dir)
            .output();
        shell.map(|output| assert!(output.status.success(), "{output:?}"))
    };
    for script in ["echo more >> f", ": > f", "truncate -s 3 f", "dd if=/dev/zero of=f count=1"] {
        arm();
        if nobody(script).is_err() {
            return eprintln!("skipped: there is no setpriv");
        }
        assert_eq!(mode(), 0o777, "{script}");
    }
    arm();
    std::os::unix::fs::chown(&path, Some(4321), None).expect("a new owner");
    assert_eq!(mode(), 0o777);
    // A write by root may keep them.
    arm();
    File::options().append(true).open(&path).expect("opened").write_all(b"x").expect("written");
    assert_eq!(mode(), 0o6777);
}

#[test]
#[ignore = "system: mounts through FUSE"]
fn a_full_volume_says_so_and_recovers() {
    let Some(rig) = rig() else { return };
    fs::remove_dir_all(rig.scratch.path("v")).expect("removed");
    let init = ["init", "--size", "24M", "--kdf-memory", "32K", "--kdf-passes", "1", "v"];
    rig.scratch.good(init);
    rig.mount(&[]);
    let mut file = File::create(rig.path("big")).expect("made");
    let written = file.write_all(&noise(40 << 20, 4)).and_then(|()| file.sync_all());
    assert_eq!(written.expect_err("full").raw_os_error(), Some(28));
    drop(file);
    fs::remove_file(rig.path("big")).expect("removed");
    let mut file = File::create(rig.path("small")).expect("made");
    file.write_all(&noise(4 << 20, 5)).expect("written");
    file.sync_all().expect("there is room again");
    drop(file);
    rig.umount();
    rig.scratch.good(["check", "v"]);
}

/// Direct writes that run while others read through the kernel's cache: later reads see what the
/// writes left. There is no safe call for such writes.
const DIRECT: &str = "
import ctypes, mmap, os, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
size = 1 << 20
direct = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
cached = os.open(sys.argv[1], os.O_RDONLY)
room = mmap.mmap(-1, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(room))
context = ctypes.c_ulong(0)
assert libc.syscall(206, 4, ctypes.byref(context)) == 0
over = False
def read(first):
    while not over:
        for page in range(first, size // 4096, 7):
            os.pread(cached, 4096, page * 4096)
readers = [threading.Thread(target=read, args=(first,)) for first in range(3)]
for reader in readers:
    reader.start()
try:
    for turn in range(int(sys.argv[2])):
        room[:] = bytes([turn % 255 + 1]) * size
        write = struct.pack('QIIHhIQQqQII', 0, 0, 0, 1, 0, direct, at, size, 0, 0, 0, 0)
        block = ctypes.create_string_buffer(write, 64)
        blocks = (ctypes.c_void_p * 1)(ctypes.addressof(block))
        assert libc.syscall(209, context, 1, blocks) == 1
        event = ctypes.create_string_buffer(32)
        assert libc.syscall(208, context, 1, 1, event, None) == 1
        assert struct.unpack('QQqq', event.raw)[2] == size
        seen = os.pread(cached, size, 0)
        old = [n for n in range(0, size, 4096) if seen[n] != turn % 255 + 1]
        assert not old, 'turn %d: old bytes at %s' % (turn, old)
finally:
    over = True
";

#[test]
#[ignore = "system: mounts through FUSE"]
fn direct_writes_leave_nothing_old_in_the_cache() {
    let Some(rig) = rig() else { return };
    if !cfg!(target_arch = "x86_64") {
        return eprintln!("skipped: the numbers of the system calls are those of x86-64");
    }
    rig.mount(&[]);
    fs::write(rig.path("f"), vec![0; 1 << 20]).expect("written");
    let run = Command::new("python3").args(["-c", DIRECT]).arg(rig.path("f")).arg("100").output();
    match run {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr))
        }
        Err(_) => eprintln!("skipped: there is no python3"),
    }
}
