//! What can be wrong with a mount.

use rustix::io::Errno;
use std::io;
use std::path::PathBuf;

/// Why a directory was not mounted, changed or unmounted.
#[derive(Debug, thiserror::Error)]
pub enum MountFault {
    /// The system has no FUSE.
    #[error("this computer has no {0}")]
    NoFuse(&'static str),
    /// Nobody but root mounts without the helper.
    #[error("only root may mount without the program fusermount3, which is not installed")]
    NoHelper,
    /// The kernel or the helper refused to mount.
    #[error("mounting was refused: {said}")]
    Refused {
        /// Its words.
        said: String,
        /// What they mean.
        why: MountRefusal,
    },
    /// The helper refused to unmount.
    #[error("unmounting {} was refused: {said}", dir.display())]
    NotUnmounted {
        /// The directory.
        dir: PathBuf,
        /// The helper's words.
        said: String,
    },
    /// The kernel refused to change a mount.
    #[error("changing the mount on {} was refused: {error}", dir.display())]
    NotChanged {
        /// The directory.
        dir: PathBuf,
        /// The kernel's error.
        error: Errno,
    },
    /// No volume is mounted there.
    #[error("no volume is mounted on {}", .0.display())]
    NotMounted(PathBuf),
    /// Processes use the mount.
    #[error("{}", in_use(dir, users))]
    InUse {
        /// The directory.
        dir: PathBuf,
        /// Those that can be seen, as in `vim (412), bash (97)`.
        users: String,
    },
    /// What was written could not be made durable, and the mount stays.
    #[error("not everything in {} could be made safe: {error}", dir.display())]
    NotSynced {
        /// The directory.
        dir: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// Why mounting was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountRefusal {
    /// The system's rules let no other users in.
    OtherUsers,
    /// The kernel's module is not loaded.
    NoModule,
    /// The device or the right to mount is withheld, as in containers.
    Device,
    /// The directory is not the user's.
    Directory,
    /// Something else.
    Unknown,
}

/// `DIR is in use by ...`, without names when none are known.
fn in_use(dir: &std::path::Path, users: &str) -> String {
    let dir = dir.display();
    match users.is_empty() {
        true => format!("{dir} is in use"),
        false => format!("{dir} is in use by {users}"),
    }
}
