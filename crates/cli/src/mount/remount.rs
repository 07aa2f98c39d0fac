//! `-o remount`: makes an active mount read-only or writable again, and changes its flags.
//!
//! That is the kernel's part; the server serves every request that still arrives.

use super::attach::{self, Look};
use super::umount::KIND;
use crate::args::MountArgs;
use crate::exit::{Code, fault};
use anyhow::{Context, Result};
use rustix::fs::StatVfsMountFlags as Now;
use rustix::io::Errno;
use rustix::mount::MountFlags;
use std::fs::File;
use std::path::Path;

/// The current properties of the mount on a directory: the defaults of a remount.
pub fn current(dir: &Path) -> Result<Look> {
    let shown = dir.display();
    let dir = dir.canonicalize().with_context(|| shown.to_string())?;
    if attach::mounted_on(&dir)?.is_none_or(|mount| mount.kind != KIND) {
        let what = format!("no volume is mounted on {shown}, so there is nothing to remount");
        return Err(fault(Code::Path, what, "`findmnt -t fuse.oblivio` lists what is."));
    }
    let now = rustix::fs::statvfs(&dir).with_context(|| shown.to_string())?.f_flag;
    Ok(Look {
        read_only: now.contains(Now::RDONLY),
        suid: !now.contains(Now::NOSUID),
        dev: !now.contains(Now::NODEV),
        noexec: now.contains(Now::NOEXEC),
        ..Look::default()
    })
}

/// Changes the mount's properties. Earlier writes are durable on return.
pub fn run(args: &MountArgs) -> Result<()> {
    let shown = args.dir.display();
    let flags = Look { read_only: args.read_only, ..args.look.clone() }.flags();
    rustix::mount::mount_remount(&args.dir, flags | MountFlags::NOATIME, "").map_err(|error| {
        let hint = match error {
            Errno::BUSY => "Files are open for writing there. Close them first.",
            Errno::PERM => "Only root may change a mount.",
            _ => "",
        };
        fault(Code::General, format!("changing the mount on {shown} was refused: {error}"), hint)
    })?;
    let root = File::open(&args.dir).with_context(|| shown.to_string())?;
    root.sync_all().with_context(|| format!("making everything in {shown} safe"))
}
