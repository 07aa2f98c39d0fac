//! What a failure of the file system of several writers is to a command.

use oblivio_privatefs::Error as FsError;
use oblivio_volume::{Error, LostBytes};

/// What a failure is to a command; `name` is that of the file, or empty.
pub(super) fn error(error: FsError, name: &[u8]) -> Error {
    let shown = || String::from_utf8_lossy(name).into_owned();
    match error {
        FsError::NotFound | FsError::Stale => Error::NotFound(shown()),
        FsError::Exists => Error::Exists(shown()),
        FsError::NotADirectory => Error::NotADirectory(shown()),
        FsError::IsADirectory => Error::IsADirectory(shown()),
        FsError::NotEmpty => Error::NotEmpty(shown()),
        FsError::NameTooLong => Error::NameTooLong(shown()),
        FsError::TooManyLinks => Error::TooManyLinks(shown()),
        FsError::TooLarge => Error::TooLarge(error.to_string()),
        FsError::Full(_) => Error::Full(error.to_string()),
        FsError::Damaged(what) => Error::Tampered(what.into()),
        FsError::Lost(_) if !name.is_empty() => Error::Lost(LostBytes::all(shown())),
        FsError::Lost(what) => Error::Lost(LostBytes::all(what)),
        FsError::Below(below) => match below.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::Invalid(other.to_string()),
        },
        other => Error::Invalid(other.to_string()),
    }
}
