//! `umount`: ends a mount and returns when everything is safe and the volume is free again.

use super::attach::{self, Stuck};
use super::busy;
use super::data::{LOST_NAME, NO_ROOM, SERVER_NAME};
use crate::args::UmountArgs;
use crate::exit::{Code, fault};
use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The file system type of our mounts.
pub const KIND: &[u8] = b"fuse.oblivio";

/// Runs `oblivio umount`.
pub fn run(args: &UmountArgs) -> Result<()> {
    let dir = absolute(&args.dir)?;
    let shown = args.dir.display();
    match attach::mounted_on(&dir)? {
        Some(mount) if mount.kind == KIND => {}
        _ => {
            let what = format!("no volume is mounted on {shown}");
            return Err(fault(Code::Path, what, "`findmnt -t fuse.oblivio` lists what is."));
        }
    }
    // A mount whose server was killed does not answer and has nothing to lose.
    let server = server(&dir);
    let mut lost = None;
    if server.is_some() && !args.lazy {
        synced(&dir)?;
        lost = Lost::of(&dir);
    }
    match attach::detach(&dir, args.lazy) {
        Ok(()) => {}
        Err(Stuck::Busy) => {
            let hint = "Close those files and leave the directory, or detach it with --lazy.";
            return Err(fault(Code::Busy, busy::sentence(&dir), hint));
        }
        Err(Stuck::Other(error)) => return Err(error),
    }
    match server {
        // Its users may keep it for days.
        Some(_) if args.lazy => Ok(()),
        Some(server) => ended(&server, args).and_then(|()| told(lost)),
        None => Ok(()),
    }
}

/// Files that lost data written by programs.
struct Lost {
    files: u64,
    /// At least one of them for want of room.
    full: bool,
}

impl Lost {
    /// Asks the server of a mount.
    fn of(dir: &Path) -> Option<Self> {
        let value = asked(dir, LOST_NAME)?;
        let (files, full) = match value.strip_suffix(NO_ROOM) {
            Some(files) => (files, true),
            None => (value.as_str(), false),
        };
        let files = files.parse().ok().filter(|files| *files > 0)?;
        Some(Self { files, full })
    }
}

/// An earlier loss is no reason to stay mounted, but scripts must learn of it.
fn told(lost: Option<Lost>) -> Result<()> {
    let Some(Lost { files, full }) = lost else { return Ok(()) };
    let (code, why) = match full {
        true => (Code::Full, "there was no room for it"),
        false => (Code::General, "it could not be stored"),
    };
    let files = crate::human::count(files, "file");
    let what = format!("unmounted, but something written to {files} was lost: {why}");
    Err(fault(code, what, "What was synced is safe."))
}

/// The full name without asking the mount itself, which may be dead.
fn absolute(dir: &Path) -> Result<PathBuf> {
    if let Ok(dir) = dir.canonicalize() {
        return Ok(dir);
    }
    let dir = std::path::absolute(dir)?;
    match (dir.parent().map(Path::canonicalize), dir.file_name()) {
        (Some(Ok(parent)), Some(name)) => Ok(parent.join(name)),
        _ => Ok(dir),
    }
}

/// The process that serves the mount.
fn server(dir: &Path) -> Option<OwnedFd> {
    let id = asked(dir, SERVER_NAME)?.parse().ok()?;
    rustix::process::pidfd_open(Pid::from_raw(id)?, PidfdFlags::empty()).ok()
}

/// The server's answer, in an attribute of its root.
fn asked(dir: &Path, name: &[u8]) -> Option<String> {
    let mut value = [0; 32];
    let len = rustix::fs::getxattr(dir, std::str::from_utf8(name).ok()?, &mut value).ok()?;
    String::from_utf8(value.get(..len)?.to_vec()).ok()
}

/// Makes everything written durable; on failure the mount stays.
fn synced(dir: &Path) -> Result<()> {
    let sync = || -> std::io::Result<()> {
        let root = File::open(dir)?;
        rustix::fs::syncfs(&root)?;
        Ok(rustix::fs::fsync(&root)?)
    };
    // The kernel reports earlier failed writes once, and the server knows of those. A second error
    // is a present one.
    sync().or_else(|_| sync()).map_err(|error| {
        let what = format!("not everything in {} could be made safe: {error}", dir.display());
        let hint = "Nothing was unmounted. Try again, or give it up with --lazy.";
        fault(Code::General, what, hint)
    })
}

/// Waits for the end of the server: until then the volume is not free.
fn ended(server: &OwnedFd, args: &UmountArgs) -> Result<()> {
    let mut watched = [PollFd::new(server, PollFlags::IN)];
    let patience = Timespec { tv_sec: 3, tv_nsec: 0 };
    let mut told = args.quiet;
    loop {
        match rustix::event::poll(&mut watched, Some(&patience)) {
            Ok(0) if !told => {
                eprintln!("oblivio: waiting for the last commit");
                told = true;
            }
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
