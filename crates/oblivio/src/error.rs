//! The errors, by what a caller can do about them.

use oblivio_app::BadPath;
use oblivio_app::place::PlaceError;
use oblivio_store::StoreError;
use oblivio_volume::{Error as VolumeError, LostBytes};
use std::io::{self, ErrorKind};

/// Why something could not be done. Each variant is one that a program may want to act on; the text
/// is for people.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The passphrase opens nothing here. Nothing was changed: ask again.
    #[error("wrong passphrase")]
    WrongPassphrase,
    /// The volume is older than, or parted from, what this computer has seen. Somebody put an old
    /// copy in place, or a backup was restored: see [`OpenOptions::accept_rollback`].
    ///
    /// [`OpenOptions::accept_rollback`]: crate::OpenOptions::accept_rollback
    #[error("rolled back: {0}")]
    RolledBack(String),
    /// Another volume was at this place before: see [`OpenOptions::accept_other_volume`].
    ///
    /// [`OpenOptions::accept_other_volume`]: crate::OpenOptions::accept_other_volume
    #[error("another volume: {0}")]
    OtherVolume(String),
    /// What this computer knows of the volume cannot be read or kept.
    #[error("what this computer knows of the volume {0}")]
    Forgotten(String),
    /// The stored bytes are not what was written. Nothing wrong was handed out.
    #[error("tampered or damaged: {0}")]
    Tampered(String),
    /// What was asked for is lost: what carried it was damaged in the store. All else can be read.
    #[error("{0}")]
    Lost(LostBytes),
    /// Another process, or another handle of this one, has the volume open.
    #[error("the volume is in use by another process")]
    Busy,
    /// Another computer has the volume and goes on with its work; it was asked for it. See
    /// [`OpenOptions::take_over`](crate::OpenOptions::take_over).
    #[error("the volume is in use on {0}")]
    Held(String),
    /// Another computer has the volume now, and this handle is of no more use. What was synced
    /// before is safe: open the volume again.
    #[error("another computer took the volume over")]
    Overtaken,
    /// A sync client has not brought all files of the newest epoch into the folder yet. Wait for
    /// it, or say [`OpenOptions::accept_older`](crate::OpenOptions::accept_older) or
    /// [`OpenOptions::view_incomplete`](crate::OpenOptions::view_incomplete).
    #[error("still to come: {0}")]
    StillToCome(String),
    /// Two computers wrote apart from each other: each history can be looked at with
    /// [`OpenOptions::view_history`](crate::OpenOptions::view_history), and `oblivio pick` chooses.
    #[error("the volume has {0}")]
    Parted(String),
    /// The volume or its store has no space left. What was there before is intact.
    #[error("no space: {0}")]
    Full(String),
    /// There is nothing at this place or path.
    #[error("{0}: no such file or directory")]
    NotFound(String),
    /// Something is at this place or path already.
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
    /// The text is no path inside a volume.
    #[error(transparent)]
    BadPath(#[from] BadPath),
    /// The place holds no volume, or one in a format that this version does not know.
    #[error("{0}")]
    NotAVolume(String),
    /// The volume holds a disk: see [`Disk`](crate::Disk).
    #[error("the volume holds a disk, not files")]
    HoldsDisk,
    /// The volume holds files: see [`Volume`](crate::Volume).
    #[error("the volume holds files, not a disk")]
    HoldsFiles,
    /// The request makes no sense, or asks for more than can be stored.
    #[error("{0}")]
    Invalid(String),
    /// The handle was closed, or an earlier failure left it unusable: open the volume again.
    #[error("the volume was closed ({0}); open it again")]
    Closed(String),
    /// A network, or the service on it, did not answer for as long as it was waited for. What was
    /// synced is safe: open the volume again later.
    #[error("{0}")]
    Offline(String),
    /// A service on a network refused: its credentials, or what they permit, are not enough.
    #[error("{0}")]
    Refused(String),
    /// The storage failed.
    #[error("{what}: {source}")]
    Io {
        /// The object or file concerned.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

/// A result of this library.
pub type Result<T> = std::result::Result<T, Error>;

impl From<VolumeError> for Error {
    fn from(error: VolumeError) -> Self {
        use VolumeError as V;
        match error {
            V::NotFound(what) => Self::NotFound(what),
            V::Exists(what) => Self::Exists(what),
            V::NotADirectory(what) => Self::NotADirectory(what),
            V::IsADirectory(what) => Self::IsADirectory(what),
            V::NotEmpty(what) => Self::NotEmpty(what),
            V::NameTooLong(_) | V::TooManyLinks(_) => Self::Invalid(error.to_string()),
            V::TooLarge(why) | V::Invalid(why) => Self::Invalid(why),
            V::WrongPassphrase => Self::WrongPassphrase,
            V::Unsupported(why) => Self::NotAVolume(why),
            V::HoldsDisk => Self::HoldsDisk,
            V::HoldsFiles => Self::HoldsFiles,
            V::Tampered(what) => Self::Tampered(what),
            V::Lost(lost) => Self::Lost(lost),
            V::RolledBack(what) => Self::RolledBack(what),
            V::OtherVolume(what) => Self::OtherVolume(what),
            V::Forgotten(what) => Self::Forgotten(what),
            V::Full(what) => Self::Full(what),
            V::Busy => Self::Busy,
            V::Held(host) => Self::Held(host),
            V::Overtaken => Self::Overtaken,
            V::StillToCome(what) => Self::StillToCome(what),
            V::Parted(what) => Self::Parted(what),
            V::Closed(why) => Self::Closed(why),
            V::Store(error) => Self::of_store(error),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        VolumeError::from(error).into()
    }
}

#[cfg(feature = "share")]
impl From<oblivio_app::shared::TokenError> for Error {
    fn from(error: oblivio_app::shared::TokenError) -> Self {
        use oblivio_app::shared::TokenError as T;
        match error {
            T::Missing(_) | T::OtherVolume { .. } => Self::Refused(error.to_string()),
            T::Line(error) => error.into(),
            T::Kept(source) => Self::Io { what: "the token of a shared volume".into(), source },
        }
    }
}

#[cfg(feature = "share")]
impl From<oblivio_share::Error> for Error {
    fn from(error: oblivio_share::Error) -> Self {
        use oblivio_share::Error as S;
        match error {
            S::BadAddress(_) | S::BadName(_) => Self::Invalid(error.to_string()),
            S::System { doing, source } => Self::Io { what: doing, source },
            S::Store(error) => error.into(),
            other => Self::Refused(other.to_string()),
        }
    }
}

impl From<PlaceError> for Error {
    fn from(error: PlaceError) -> Self {
        match error {
            PlaceError::Missing(place) => Self::NotFound(place.display().to_string()),
            PlaceError::NoVolume(_) => Self::NotAVolume(error.to_string()),
            PlaceError::Url { .. } => Self::Invalid(error.to_string()),
            PlaceError::OnlineOnly { .. } => Self::StillToCome(error.to_string()),
            PlaceError::Store(error) => error.into(),
        }
    }
}

impl Error {
    /// What a volume's own conversion has left over.
    fn of_store(error: StoreError) -> Self {
        match error {
            error if error.is_offline() => Self::Offline(error.to_string()),
            error if error.is_refused() => Self::Refused(error.to_string()),
            StoreError::Io { object, source } => Self::Io { what: object, source },
            StoreError::Exists { object } | StoreError::Occupied { object, .. } => {
                Self::Exists(object)
            }
            StoreError::Missing { .. } | StoreError::Short { .. } => {
                Self::Tampered(error.to_string())
            }
            StoreError::Full => Self::Full(error.to_string()),
            StoreError::Busy => Self::Busy,
        }
    }

    pub(crate) fn closed() -> Self {
        Self::Closed("by its owner".into())
    }
}

/// For `Read`, `Write` and `Seek`; the error itself is inside.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NotFound(_) => ErrorKind::NotFound,
            Error::Exists(_) => ErrorKind::AlreadyExists,
            Error::NotADirectory(_) => ErrorKind::NotADirectory,
            Error::IsADirectory(_) => ErrorKind::IsADirectory,
            Error::NotEmpty(_) => ErrorKind::DirectoryNotEmpty,
            Error::Full(_) => ErrorKind::StorageFull,
            Error::Busy | Error::Held(_) => ErrorKind::ResourceBusy,
            Error::Tampered(_) | Error::Lost(_) | Error::RolledBack(_) => ErrorKind::InvalidData,
            Error::BadPath(_) | Error::Invalid(_) => ErrorKind::InvalidInput,
            Error::WrongPassphrase | Error::Refused(_) => ErrorKind::PermissionDenied,
            Error::Offline(_) => ErrorKind::TimedOut,
            Error::Io { source, .. } => source.kind(),
            _ => ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
