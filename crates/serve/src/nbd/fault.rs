//! What can be wrong with where clients connect, and with the files that TLS needs.

use std::error::Error;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a disk is not served at a place.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    /// Something that is no socket is at the path.
    #[error("{} is there already", .0.display())]
    Occupied(PathBuf),
    /// Another server listens at the path.
    #[error("another server listens on {}", .0.display())]
    Served(PathBuf),
    /// The folder of the path does not exist.
    #[error("there is no folder for {}", .0.display())]
    NoFolder(PathBuf),
    /// The text is no address with a port.
    #[error("{0} is no address with a port")]
    NoAddress(String),
    /// Other computers reach the address, and the disk lacks a guard.
    #[error("{address} can be reached from other computers")]
    Exposed {
        /// The address as given.
        address: String,
        /// Whether the connection is at least encrypted.
        encrypted: bool,
    },
    /// Another program listens at the address.
    #[error("{0} is in use already")]
    AddressInUse(SocketAddr),
}

/// Why TLS cannot be had with the given files.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// The key is not that of the certificate.
    #[error("{} is not the key of {}", key.display(), cert.display())]
    Mismatch {
        /// The file with the key.
        key: PathBuf,
        /// The file with the certificate.
        cert: PathBuf,
    },
    /// The content of the file cannot be used.
    #[error("{} cannot be used for TLS: {error}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: rustls::Error,
    },
    /// There is no certificate in the file.
    #[error("{} holds no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// There is no private key in the file.
    #[error("{} holds no private key", .0.display())]
    NoKey(PathBuf),
    /// The private key is encrypted.
    #[error("the key {} is protected by a passphrase", .0.display())]
    LockedKey(PathBuf),
    /// The library refused the whole.
    #[error("TLS")]
    Library(#[source] Box<dyn Error + Send + Sync>),
}
