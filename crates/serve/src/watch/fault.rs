//! What can be wrong with the meeting point of a volume's commands and its watcher.

use std::io;
use std::path::PathBuf;

/// Why a volume is not watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchFault {
    /// Other users can enter the folder of the sockets.
    #[error("others can enter {}", .0.display())]
    OpenFolder(PathBuf),
    /// The socket could not be made.
    #[error("{}: {error}", socket.display())]
    NoSocket {
        /// Its path.
        socket: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// Another watcher has the volume.
    #[error("the volume is being watched already")]
    Watched,
}
