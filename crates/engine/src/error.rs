//! Engine errors.

use crate::{Address, BlockId, BucketId};
use oblivio_crypto::CryptoError;

/// An engine's error.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The caller's request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A bucket differs from the last one written.
    #[error("bucket {} is not what was written: {reason}", bucket.0)]
    Tampered {
        /// The bucket.
        bucket: BucketId,
        /// The check that failed.
        reason: &'static str,
    },
    /// A part of a sequential engine's disk differs from the last write to it.
    #[error("{bytes} bytes of disk from {offset} on: {reason}")]
    TamperedExtent {
        /// Offset on the disk.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
        /// The check that failed.
        reason: &'static str,
    },
    /// The server shows an old history, or another one than to somebody else.
    #[error("the server shows an old state, or another one than to another client")]
    Forked,
    /// A slot of a pyramid's table differs from what was sealed there.
    #[error("table {table}: {reason}")]
    TamperedTable {
        /// The table's place.
        table: u32,
        /// The check that failed.
        reason: &'static str,
    },
    /// A block failed its own check (PMMAC, Freecursive §6).
    #[error("block {} is not what was written last", .0.0)]
    TamperedBlock(Address),
    /// A block that exists is lost: what carried it was damaged.
    #[error("block {} is lost to damage", .0.0)]
    Lost(BlockId),
    /// The engine's stored state does not parse.
    #[error("engine state: {0}")]
    State(&'static str),
    /// The sealer refused.
    #[error(transparent)]
    Crypto(CryptoError),
    /// An earlier error closed the engine.
    #[error("the engine is closed after an earlier failure")]
    Closed,
}

/// An engine's result.
pub type Result<T> = std::result::Result<T, EngineError>;

impl From<CryptoError> for EngineError {
    fn from(error: CryptoError) -> Self {
        EngineError::Crypto(error)
    }
}
