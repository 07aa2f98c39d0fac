//! Ends a mount from another process, and returns when everything is safe and the volume is free
//! again.

use super::attach;
use super::data::{LOST_NAME, NO_ROOM};
use super::fault::MountFault;
use super::lane_status::lane_statuses;
use super::parts::lane_name;
use crate::error::Result;
use crate::fuse::xattr::{SERVER_NAME, asked};
use oblivio_volume::{LaneStatus, MOST_LANES};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often open lanes are asked what waits.
const LOOK: Duration = Duration::from_millis(500);

/// Files that lost data written by programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostFiles {
    /// Their number, at least one.
    pub files: u64,
    /// At least one of them for want of room.
    pub full: bool,
}

/// What unmounting waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UmountWait {
    /// The last commit.
    Commit,
    /// What was written in open lanes, until the volume has carried it.
    Lanes(Vec<(String, LaneStatus)>),
}

/// Unmounts a directory, and waits until its volume is free. `lazy` detaches it at once, even if in
/// use, and waits for no lane. `waiting` is called while it waits long. An earlier loss of data is
/// no reason to stay mounted: it is returned.
///
/// # Errors
/// No volume is mounted there; it is in use; not everything could be made safe.
pub fn umount(
    dir: &Path,
    lazy: bool,
    mut waiting: impl FnMut(UmountWait),
) -> Result<Option<LostFiles>> {
    let shown = dir;
    let dir = absolute(dir)?;
    if !attach::is_mounted(&dir)? {
        return Err(MountFault::NotMounted(shown.to_owned()).into());
    }
    // A mount whose server was killed does not answer and has nothing to lose.
    let server = server(&dir);
    let mut lost = None;
    if server.is_some() && !lazy {
        synced(&dir)?;
        carried(&dir, |lanes| waiting(UmountWait::Lanes(lanes)));
        lost = LostFiles::in_mount(&dir);
    }
    if lazy {
        attach::detach(&dir, true).map_err(|stuck| stuck.error(&dir))?;
    } else {
        attach::detach_when_free(&dir)?;
    }
    match server {
        // Its users may keep it for days.
        Some(_) if lazy => Ok(None),
        Some(server) => ended(&server, || waiting(UmountWait::Commit)).map(|()| lost),
        None => Ok(None),
    }
}

impl LostFiles {
    /// Those of the volume mounted on a directory, and of its open lanes.
    fn in_mount(dir: &Path) -> Option<Self> {
        let lanes = (0..usize::from(MOST_LANES)).map(|number| dir.join(lane_name(number)));
        let found = [dir.to_owned()].into_iter().chain(lanes).filter_map(|root| Self::of(&root));
        found.reduce(|one, other| Self {
            files: one.files + other.files,
            full: one.full || other.full,
        })
    }

    /// Asks the server of these files, by their root.
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

/// Waits until the volume has carried what was written in its open lanes. Nothing here makes it.
fn carried(dir: &Path, mut waiting: impl FnMut(Vec<(String, LaneStatus)>)) {
    loop {
        let mut lanes = lane_statuses(dir);
        lanes.retain(|(_, status)| status.waiting > 0);
        if lanes.is_empty() {
            return;
        }
        waiting(lanes);
        std::thread::sleep(LOOK);
    }
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
        let dir = dir.to_owned();
        MountFault::NotSynced { dir, error }.into()
    })
}

/// Waits for the end of the server: until then the volume is not free.
fn ended(server: &OwnedFd, mut waiting: impl FnMut()) -> Result<()> {
    let mut watched = [PollFd::new(server, PollFlags::IN)];
    let patience = Timespec { tv_sec: 3, tv_nsec: 0 };
    loop {
        match rustix::event::poll(&mut watched, Some(&patience)) {
            Ok(0) => waiting(),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
