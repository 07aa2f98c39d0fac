//! Few errors, each saying what happened and what to do.

use oblivio_store::StoreError;

/// What a volume or its file system can report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path or block does not exist.
    #[error("{0}: no such file or directory")]
    NotFound(String),
    /// Something of that name is there already.
    #[error("{0}: already exists")]
    Exists(String),
    /// A directory was needed.
    #[error("{0}: not a directory")]
    NotADirectory(String),
    /// A file was needed.
    #[error("{0}: is a directory")]
    IsADirectory(String),
    /// A directory that should be removed or replaced has entries.
    #[error("{0}: directory not empty")]
    NotEmpty(String),
    /// A name, or the target of a link, is longer than what can be stored.
    #[error("{0}: the name is too long")]
    NameTooLong(String),
    /// A file or a value would be larger than what can be stored.
    #[error("{0}")]
    TooLarge(String),
    /// A file or directory has as many links as can be counted.
    #[error("{0}: too many links")]
    TooManyLinks(String),
    /// The request makes no sense as it is.
    #[error("{0}")]
    Invalid(String),
    /// No passphrase slot opens with what was given.
    #[error("wrong passphrase")]
    WrongPassphrase,
    /// Not a volume, or one of a format this version does not know.
    #[error("{0}")]
    Unsupported(String),
    /// Files were asked for.
    #[error("the volume holds a disk, not files")]
    HoldsDisk,
    /// A disk was asked for.
    #[error("the volume holds files, not a disk")]
    HoldsFiles,
    /// The stored bytes are not what was written.
    #[error("tampered or damaged: {0}")]
    Tampered(String),
    /// The volume is older than what this computer has seen.
    #[error("rolled back: {0}")]
    RolledBack(String),
    /// Another volume is known at this place; the two identities are named.
    #[error("another volume: {0}")]
    OtherVolume(String),
    /// What this computer knows of the volume cannot be read or kept.
    #[error("what this computer knows of the volume {0}")]
    Forgotten(String),
    /// The declared capacity or the store is used up.
    #[error("no space: {0}")]
    Full(String),
    /// Another process has the volume open.
    #[error("the volume is in use by another process")]
    Busy,
    /// An earlier failure left this handle unusable; open the volume again.
    #[error("the volume was closed after a failure ({0}); open it again")]
    Closed(String),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

/// A result of a volume.
pub type Result<T> = std::result::Result<T, Error>;

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Error::Full("the store has no space left".into()),
            StoreError::Busy => Error::Busy,
            StoreError::Missing { .. } | StoreError::Short { .. } => {
                Error::Tampered(error.to_string())
            }
            other => Error::Store(other),
        }
    }
}
