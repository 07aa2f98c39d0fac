//! Every way to change a file's content clears its set-ID bits, for all users at once.

use crate::mount::{Rig, rig};
use rustix::fs::{AtFlags, CWD, FallocateFlags, OFlags, StatxFlags};
use rustix::process::{Gid, Uid};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

const OWNER: u32 = 1234;
const NOBODY: u32 = 65534;
const BLOCK: usize = 4096;

/// A mount that others may use and that honours set-ID bits.
fn shared() -> Option<Rig> {
    let rig = rig()?;
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can be somebody else");
        return None;
    }
    rig.mount(&["-o", "suid,allow_other"]);
    fs::set_permissions(rig.scratch.path("."), fs::Permissions::from_mode(0o755)).expect("open");
    Some(rig)
}

/// Runs as a user without privileges: on Linux a thread has a user of its own.
fn as_nobody<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let nobody = scope.spawn(|| {
            let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            rustix::thread::set_thread_groups(&[]).expect("no groups");
            rustix::thread::set_thread_res_gid(gid, gid, gid).expect("another group");
            rustix::thread::set_thread_res_uid(uid, uid, uid).expect("another user");
            run()
        });
        nobody.join().expect("no panic")
    })
}

/// The mode as the kernel has cached it; nothing is requested from the server.
fn mode(path: &Path) -> u32 {
    let known = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MODE).expect("there");
    u32::from(known.stx_mode) & 0o7777
}

fn arm(path: &Path) {
    fs::write(path, [7; 3 * BLOCK]).expect("written");
    chown(path, Some(OWNER), Some(OWNER)).expect("an owner");
    fs::set_permissions(path, fs::Permissions::from_mode(0o6777)).expect("a mode");
    assert_eq!(mode(path), 0o6777);
}

fn writer(path: &Path) -> File {
    OpenOptions::new().write(true).open(path).expect("everybody may write")
}

fn direct(path: &Path, block: &[u8; BLOCK]) {
    let mut room = vec![0; 2 * BLOCK];
    let at = room.as_ptr().align_offset(BLOCK);
    room[at..at + BLOCK].copy_from_slice(block);
    let flags = OFlags::DIRECT.bits() as i32;
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path).expect("opened");
    file.write_all_at(&room[at..at + BLOCK], 0).expect("written past the cache");
}

fn allocate(path: &Path, flags: FallocateFlags) {
    rustix::fs::fallocate(writer(path), flags, 0, BLOCK as u64).expect("allocated");
}

type Way = (&'static str, fn(&Path));
const KEEP: FallocateFlags = FallocateFlags::KEEP_SIZE;

/// Each changes the file, or reserves space for it; for all of these Linux clears the bits.
const WAYS: [Way; 14] = [
    ("write", |path| writer(path).write_all_at(b"x", 1).expect("written")),
    ("append", |path| {
        let mut file = OpenOptions::new().append(true).open(path).expect("opened");
        file.write_all(b"x").expect("written");
    }),
    ("direct write", |path| direct(path, &[9; BLOCK])),
    ("sendfile", |path| {
        let from = File::open(path.with_file_name("other")).expect("opened");
        assert_eq!(rustix::fs::sendfile(writer(path), from, None, 5), Ok(5));
    }),
    ("copy_file_range", |path| {
        let from = File::open(path.with_file_name("other")).expect("opened");
        assert_eq!(rustix::fs::copy_file_range(from, None, writer(path), None, 5), Ok(5));
    }),
    ("fallocate", |path| allocate(path, FallocateFlags::empty())),
    ("fallocate, keep size", |path| allocate(path, KEEP)),
    ("punch", |path| allocate(path, FallocateFlags::PUNCH_HOLE | KEEP)),
    ("zero", |path| allocate(path, FallocateFlags::ZERO_RANGE)),
    ("zero, keep size", |path| allocate(path, FallocateFlags::ZERO_RANGE | KEEP)),
    ("truncate", |path| writer(path).set_len(5).expect("cut")),
    ("extend", |path| writer(path).set_len(1 << 20).expect("longer")),
    ("open and truncate", |path| {
        drop(OpenOptions::new().write(true).truncate(true).open(path).expect("opened"));
    }),
    ("write through", |path| {
        let flags = OFlags::SYNC.bits() as i32;
        let file = OpenOptions::new().write(true).custom_flags(flags).open(path).expect("opened");
        file.write_all_at(b"x", 1).expect("written");
    }),
];

#[test]
#[ignore = "system: mounts through FUSE"]
fn every_change_by_somebody_else_takes_them_away() {
    let Some(rig) = shared() else { return };
    fs::write(rig.path("other"), "other content").expect("written");
    let path = rig.path("f");
    for (name, way) in WAYS {
        arm(&path);
        let seen = as_nobody(|| {
            way(&path);
            mode(&path)
        });
        assert_eq!((seen, mode(&path)), (0o777, 0o777), "{name}");
        // Root may keep them.
        arm(&path);
        way(&path);
        assert_eq!(mode(&path), 0o6777, "{name}, by root");
    }
    // The stored mode has changed too.
    arm(&path);
    as_nobody(|| allocate(&path, KEEP));
    rig.umount();
    rig.mount(&["-o", "suid,allow_other"]);
    assert_eq!(mode(&path), 0o777);
}

/// Without group execution the set-group-ID bit stays for members of the group.
#[test]
#[ignore = "system: mounts through FUSE"]
fn the_bit_of_the_group_goes_as_linux_has_it() {
    let Some(rig) = shared() else { return };
    fs::write(rig.path("other"), "other content").expect("written");
    let path = rig.path("f");
    for (group, left) in [(OWNER, 0o666), (NOBODY, 0o2666)] {
        for (name, way) in WAYS {
            arm(&path);
            chown(&path, Some(OWNER), Some(group)).expect("a group");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o6666)).expect("a mode");
            as_nobody(|| way(&path));
            assert_eq!(mode(&path), left, "{name}, group {group}");
        }
    }
}

/// A program changed by a stranger runs as the user who starts it, although the kernel had cached
/// the bits.
#[test]
#[ignore = "system: mounts through FUSE"]
fn a_changed_program_does_not_run_as_its_owner() {
    let Some(rig) = shared() else { return };
    let Ok(program) = fs::read("/usr/bin/id") else {
        return eprintln!("skipped: there is no /usr/bin/id");
    };
    let path = rig.path("id");
    let run = || loop {
        match Command::new(&path).arg("-u").output() {
            // Another test that starts a program still holds the file open for writing.
            Err(error) if error.raw_os_error() == Some(26) => std::thread::yield_now(),
            output => return String::from_utf8(output.expect("it runs").stdout).expect("text"),
        }
    };
    let block: &[u8; BLOCK] = program[..BLOCK].try_into().expect("that long");
    let changes: [(&str, &(dyn Fn() + Sync)); 4] = [
        ("write", &|| writer(&path).write_all_at(&program[..1], 0).expect("written")),
        ("direct write", &|| direct(&path, block)),
        ("fallocate", &|| allocate(&path, KEEP)),
        ("extend", &|| writer(&path).set_len(program.len() as u64 + 1).expect("longer")),
    ];
    for (name, change) in changes {
        fs::write(&path, &program).expect("written");
        chown(&path, Some(OWNER), None).expect("an owner");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4777)).expect("a mode");
        assert_eq!(run().trim(), OWNER.to_string(), "as its owner, before {name}");
        as_nobody(change);
        assert_eq!(run().trim(), "0", "{name}");
    }
}
