//! Few errors, each saying what happened and what to do.

use crate::damage::LostBytes;
use oblivio_crypto::CryptoError;
use oblivio_engine::EngineError;
use oblivio_store::StoreError;

/// What a volume or its file system can report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path or block does not exist.
    #[error("{0}: no such file or directory")]
    NotFound(String),
    /// That name exists already.
    #[error("{0}: already exists")]
    Exists(String),
    /// A directory was needed.
    #[error("{0}: not a directory")]
    NotADirectory(String),
    /// A file was needed.
    #[error("{0}: is a directory")]
    IsADirectory(String),
    /// The directory to remove or replace has entries.
    #[error("{0}: directory not empty")]
    NotEmpty(String),
    /// A name, or a link's target, is too long to store.
    #[error("{0}: the name is too long")]
    NameTooLong(String),
    /// A file or a value would be too large to store.
    #[error("{0}")]
    TooLarge(String),
    /// A file or directory has the most links that can be counted.
    #[error("{0}: too many links")]
    TooManyLinks(String),
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// No passphrase slot opens with the given secret.
    #[error("wrong passphrase")]
    WrongPassphrase,
    /// Not a volume, or one in a format that this version does not know.
    #[error("{0}")]
    Unsupported(String),
    /// The caller wanted files.
    #[error("the volume holds a disk, not files")]
    HoldsDisk,
    /// The caller wanted a disk.
    #[error("the volume holds files, not a disk")]
    HoldsFiles,
    /// The stored bytes are not what was written.
    #[error("tampered or damaged: {0}")]
    Tampered(String),
    /// What was asked for was damaged in the store. The rest can be read.
    #[error("{0}")]
    Lost(LostBytes),
    /// The volume is older than one that this computer has seen.
    #[error("rolled back: {0}")]
    RolledBack(String),
    /// Another volume is known at this place; the message names both identities.
    #[error("another volume: {0}")]
    OtherVolume(String),
    /// This computer cannot read or keep its knowledge of the volume.
    #[error("what this computer knows of the volume {0}")]
    Forgotten(String),
    /// The declared capacity or the store is used up.
    #[error("no space: {0}")]
    Full(String),
    /// Another process has the volume open.
    #[error("the volume is in use by another process")]
    Busy,
    /// Another computer has the volume and goes on with it; it was asked.
    #[error("the volume is in use on {0}")]
    Held(String),
    /// Another computer began a session after this one, which can do nothing more.
    #[error("another computer took the volume over")]
    Overtaken,
    /// Files of the newest epoch have not arrived in the folder yet.
    #[error("still to come: {0}")]
    StillToCome(String),
    /// Two computers wrote apart from each other.
    #[error("the volume has {0}")]
    Parted(String),
    /// An earlier failure left this handle unusable; open the volume again.
    #[error("the volume was closed after a failure ({0}); open it again")]
    Closed(String),
    /// The store failed.
    #[error(transparent)]
    Store(StoreError),
}

impl Error {
    /// The error of a sealer, or of what stretches a passphrase.
    pub(crate) fn sealing(error: CryptoError) -> Self {
        Self::Closed(error.to_string())
    }

    /// Whether the store failed, and not what is stored in it.
    pub(crate) fn is_of_store(&self) -> bool {
        matches!(self, Self::Store(_) | Self::Full(_) | Self::Busy)
    }
}

/// A result of a volume.
pub type Result<T> = std::result::Result<T, Error>;

impl From<LostBytes> for Error {
    fn from(lost: LostBytes) -> Self {
        Error::Lost(lost)
    }
}

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

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Invalid(why) => Error::Invalid(why),
            EngineError::Closed => Error::Closed("the engine stopped".into()),
            EngineError::Crypto(error) => Error::Closed(error.to_string()),
            EngineError::Lost(id) => Error::Lost(LostBytes::block(id.0)),
            tampered => Error::Tampered(tampered.to_string()),
        }
    }
}
