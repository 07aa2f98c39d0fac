//! Errors of a folder, and which of them say that bytes are gone.

use oblivio_store::StoreError;
use oblivio_store::share::ShareError;
use std::io;

pub(super) fn failed(source: io::Error) -> ShareError {
    StoreError::io("volume", source).into()
}

pub(super) fn damaged(what: &str) -> ShareError {
    failed(io::Error::new(io::ErrorKind::InvalidData, what))
}

/// Whether bytes could not be read because they are not there, or because the disk lost them.
pub(super) fn is_gone(error: &ShareError) -> bool {
    /// The disk cannot read a sector.
    const EIO: i32 = 5;
    match error {
        ShareError::NoObject(_) => true,
        ShareError::Store(StoreError::Missing { .. } | StoreError::Short { .. }) => true,
        ShareError::Store(StoreError::Io { source, .. }) => {
            let gone = [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof];
            gone.contains(&source.kind()) || source.raw_os_error() == Some(EIO)
        }
        _ => false,
    }
}
