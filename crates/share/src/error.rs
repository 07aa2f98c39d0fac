//! What can go wrong with a server of shared volumes, or on the way to it.

use oblivio_store::StoreError;
use oblivio_store::share::ShareError;
use std::fmt::Display;
use std::io;
use std::path::PathBuf;

/// Why a server did not start, or refused what its administrator wants.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A volume failed.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// The server's own folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system failed at something.
    #[error("{doing}")]
    System {
        /// At what.
        doing: String,
        /// Its error.
        source: io::Error,
    },
    /// TLS cannot work with this certificate or key.
    #[error("TLS: {0}")]
    Tls(String),
    /// There is no such volume.
    #[error("there is no volume {0:?} here")]
    NoVolume(String),
    /// This volume could not be opened when the server started. The others are served.
    #[error("the server could not open the volume {name:?}: {why}")]
    Damaged {
        /// Its name.
        name: String,
        /// What was found.
        why: String,
    },
    /// This name cannot be used.
    #[error(
        "{0:?} is no name: letters, digits, `-`, `_` and `.`, at most 64, not `.` or `-` first"
    )]
    BadName(String),
    /// A device has this name.
    #[error("a device of this volume has the name {0:?}")]
    Taken(String),
    /// A device has the number that belongs to this secret.
    #[error("a device of this volume has this secret's number: draw another secret")]
    SameNumber,
    /// No device has this name.
    #[error("no device of this volume has the name {0:?}")]
    NoDevice(String),
    /// Others may read a secret.
    #[error("others may read {}", .0.display())]
    Open(PathBuf),
    /// It is no address of a shared volume.
    #[error("no address of a shared volume: {0}")]
    BadAddress(&'static str),
    /// The tables of this volume are in a store somewhere else, and nobody said where.
    #[error("the tables of the volume {0:?} are in a store somewhere else")]
    LacksTables(String),
    /// The server that runs said this.
    #[error("{0}")]
    Said(String),
}

/// A result of a server.
pub type Result<T> = std::result::Result<T, Error>;

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
