//! The owner of a volume's root.

use oblivio_volume::Result;
use oblivio_volume::fs::{FileSystem, ROOT_INO, SetAttr, Timestamp};
use std::time::SystemTime;

/// The root directory of an unused volume belongs to nobody: the first user to mount it gets it.
///
/// # Errors
/// Those of the volume.
pub fn adopt_root(fs: &FileSystem) -> Result<()> {
    let root = fs.attr(ROOT_INO)?;
    let uid = rustix::process::getuid().as_raw();
    let gid = rustix::process::getgid().as_raw();
    let never_owned = root.uid == 0 && root.gid == 0 && root.crtime == Timestamp::default();
    let mut set = SetAttr::default();
    if never_owned && uid != 0 {
        (set.uid, set.gid) = (Some(uid), Some(gid));
    }
    if root.mtime == Timestamp::default() {
        set.mtime = Some(SystemTime::now().into());
    }
    if set != SetAttr::default() {
        fs.set_attr(ROOT_INO, set)?;
    }
    Ok(())
}
