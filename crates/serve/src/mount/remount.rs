//! `-o remount`: makes an active mount read-only or writable again, and changes its flags.
//!
//! That is the kernel's part; the server serves every request that still arrives.

use super::attach::{Look, is_mounted};
use super::fault::MountFault;
use crate::error::{Doing, Result};
use rustix::fs::StatVfsMountFlags as Now;
use rustix::mount::MountFlags;
use std::fs::File;
use std::path::Path;

/// The current properties of the mount on a directory, which are the defaults of a remount; `None`
/// if no volume is mounted there.
///
/// # Errors
/// Those of the system.
pub fn current(dir: &Path) -> Result<Option<Look>> {
    let shown = dir.display();
    let dir = dir.canonicalize().doing(&shown)?;
    if !is_mounted(&dir)? {
        return Ok(None);
    }
    let now = rustix::fs::statvfs(&dir).doing(&shown)?.f_flag;
    Ok(Some(Look {
        read_only: now.contains(Now::RDONLY),
        suid: !now.contains(Now::NOSUID),
        dev: !now.contains(Now::NODEV),
        noexec: now.contains(Now::NOEXEC),
        ..Look::default()
    }))
}

/// Changes the mount's properties. Earlier writes are durable on return.
///
/// # Errors
/// The kernel refused; those of the system.
pub fn remount(dir: &Path, look: &Look) -> Result<()> {
    let shown = dir.display();
    rustix::mount::mount_remount(dir, look.flags() | MountFlags::NOATIME, "")
        .map_err(|error| MountFault::NotChanged { dir: dir.to_owned(), error })?;
    let root = File::open(dir).doing(&shown)?;
    root.sync_all().doing(format_args!("making everything in {shown} safe"))
}
