//! The one error of all servers. It says what happened; what to do about it is the caller's to say.

use crate::mount::MountFault;
use crate::nbd::{DiskFault as NbdFault, TlsFault};
#[cfg(all(feature = "ublk", target_os = "linux"))]
use crate::ublk::UblkFault;
use crate::watch::WatchFault;
use oblivio_volume::Error as VolumeError;
use rustix::io::Errno;
use std::fmt::{self, Display};
use std::io;

/// Why a server did not start, or how it ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The volume or its store failed.
    #[error("{0}")]
    Volume(#[from] VolumeError),
    /// The system failed at something.
    #[error("{doing}")]
    System {
        /// At what.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refused a call that only servers make.
    #[error("{doing}")]
    Kernel {
        /// What the call was for.
        doing: String,
        /// The kernel's error.
        source: Errno,
    },
    /// A thread of the server panicked.
    #[error("{0} panicked")]
    Panicked(&'static str),
    /// The server ended without its last commit.
    #[error("{what} ended, and what was {lost} is lost")]
    Ended {
        /// The server.
        what: &'static str,
        /// What is lost.
        lost: Unsafe,
        /// The reason.
        source: Box<Error>,
    },
    /// The server ended well, and its volume has not carried what was written in a lane.
    #[error("{0}")]
    NotCarried(String),
    /// The user wanted the end while the store did not answer.
    #[error("ended while the store did not answer: what was {0} is lost")]
    GivenUp(Unsafe),
    /// About a mount.
    #[error("{0}")]
    Mount(#[from] MountFault),
    /// About where clients of a disk connect.
    #[error("{0}")]
    Nbd(#[from] NbdFault),
    /// About the files that TLS needs.
    #[error("{0}")]
    Tls(#[from] TlsFault),
    /// About a block device.
    #[cfg(all(feature = "ublk", target_os = "linux"))]
    #[error("{0}")]
    Ublk(#[from] UblkFault),
    /// About the live page.
    #[error("{0}")]
    Watch(#[from] WatchFault),
}

/// What is lost when a server ends without its last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsafe {
    /// Of a mount: what no commit and no sync has made durable.
    Uncommitted,
    /// Of a disk: what no client has flushed.
    Unflushed,
}

impl Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unsafe::Uncommitted => "written since the last commit",
            Unsafe::Unflushed => "not flushed",
        })
    }
}

/// A result of a server.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The same for a disk whose last commit this prevented.
    pub(crate) fn unflushed(self) -> Self {
        self.ended("the server", Unsafe::Unflushed)
    }

    /// The same for a mount.
    pub(crate) fn uncommitted(self) -> Self {
        self.ended("the mount", Unsafe::Uncommitted)
    }

    fn ended(self, what: &'static str, lost: Unsafe) -> Self {
        match self {
            // The volume itself has ended well.
            Self::NotCarried(_) => self,
            error => Self::Ended { what, lost, source: Box::new(error) },
        }
    }

    /// All causes on one line, from the outermost in, without repetition.
    pub fn line(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let said = error.to_string();
            if !text.contains(&said) {
                text = format!("{text}: {said}");
            }
            cause = error.source();
        }
        text
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        Self::System { doing: source.to_string(), source }
    }
}

impl From<Errno> for Error {
    fn from(source: Errno) -> Self {
        Self::Kernel { doing: source.to_string(), source }
    }
}

/// Says what the system was asked for when it failed.
pub(crate) trait Doing<T> {
    /// The value, or an error that names this.
    fn doing(self, what: impl Display) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|source| Error::System { doing: what.to_string(), source })
    }
}

impl<T> Doing<T> for rustix::io::Result<T> {
    fn doing(self, what: impl Display) -> Result<T> {
        self.map_err(|source| Error::Kernel { doing: what.to_string(), source })
    }
}
