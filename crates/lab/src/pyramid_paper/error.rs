//! What can go wrong.

use super::ids::LevelId;
use oblivio_crypto::CryptoError;

/// An error of the construction.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// The configuration or a caller's argument is invalid.
    #[error("{0}")]
    Invalid(&'static str),
    /// A stored object does not open, or the sealer refused.
    #[error(transparent)]
    Crypto(CryptoError),
    /// The server's reply does not fit the request.
    #[error("the server's reply: {0}")]
    Reply(&'static str),
    /// A filter named an item that its level does not hold. A filter's false positive shows that
    /// its query looked for something real, so nothing may go on as if it had not happened.
    #[error("the filter of {0:?} named an item that is not there")]
    FalsePositive(LevelId),
    /// A bounded buffer ran over or dry. The pace is public and must not change, so the work stops
    /// (the bounds stand with each buffer).
    #[error("a buffer of the construction of {0:?} {1}")]
    Buffer(LevelId, &'static str),
    /// More different blocks than the volume holds.
    #[error("the construction of {0:?} has more items than room")]
    Full(LevelId),
    /// Another client finished this query first. A write was not done; a read can be asked again.
    #[error("another client finished this query; if it was a write, it was not done")]
    Overtaken,
    /// Called out of turn.
    #[error("called out of turn: {0}")]
    Turn(&'static str),
}

/// A result of the construction.
pub type Result<T> = std::result::Result<T, PaperError>;

impl From<CryptoError> for PaperError {
    fn from(error: CryptoError) -> Self {
        Self::Crypto(error)
    }
}
