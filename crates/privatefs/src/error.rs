//! What can go wrong.

/// A result with [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation was refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name does not exist.
    #[error("there is no such name")]
    NotFound,
    /// The name exists already.
    #[error("the name exists already")]
    Exists,
    /// Something else where a directory must be.
    #[error("this is no directory")]
    NotADirectory,
    /// A directory where none may be.
    #[error("this is a directory")]
    IsADirectory,
    /// The directory has names.
    #[error("the directory is not empty")]
    NotEmpty,
    /// No room, in the volume or in a table.
    #[error("there is no room for {0}")]
    Full(&'static str),
    /// The arguments make no sense.
    #[error("invalid: {0}")]
    Invalid(&'static str),
    /// A name, target or value is too long.
    #[error("the name is too long")]
    NameTooLong,
    /// A file would be longer than files may be.
    #[error("the file would be too long")]
    TooLarge,
    /// The file has as many names as it may have.
    #[error("the file has too many names")]
    TooManyLinks,
    /// Another client removed it.
    #[error("the file was removed by another client")]
    Stale,
    /// Another one holds a lock.
    #[error("another one holds a lock")]
    Locked,
    /// This client was silent for so long that its locks were given up, and what was written under
    /// them is dropped. The file is to be opened anew.
    #[error("the locks of this file were given up while this computer was silent")]
    LockLost,
    /// The extended attribute does not exist.
    #[error("there is no such attribute")]
    NoAttribute,
    /// Not offered.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// What was read is not what was relied on. Operations repeat and do not answer with it.
    #[error("another client changed the same blocks")]
    Conflict,
    /// Others changed the same blocks at each of many tries.
    #[error("other clients changed the same blocks at each try")]
    Busy,
    /// A block has content that no client writes.
    #[error("a block is damaged: {0}")]
    Damaged(&'static str),
    /// A block that is needed exists, and its content is lost to damage at the server.
    #[error("{0}")]
    Lost(String),
    /// What lies below failed.
    #[error("{0}")]
    Below(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether the state of the file system is the reason, as opposed to a failure. What was
    /// cached may be out of date, so such an answer is given only after asking.
    pub(crate) fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Error::Below(_)
                | Error::Lost(_)
                | Error::Busy
                | Error::Invalid(_)
                | Error::LockLost
                | Error::Unsupported(_)
        )
    }
}
