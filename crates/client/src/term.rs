//! The begin and the end of a scribe's term.

use crate::error::Failure;
use oblivio_engine::EngineError;
use oblivio_engine::pyramid::share::Head;
use oblivio_store::share::{Number, ShareError};
use std::collections::BTreeMap;

/// What a scribe must know of the records before it.
pub struct Before {
    /// The number of the next record.
    pub next: Number,
    /// The newest batches, by their records.
    pub shown: BTreeMap<Vec<u8>, Number>,
    /// The newest record.
    pub head: Head,
}

/// Why a client is not the scribe any more.
pub enum TermEnd {
    /// It ends.
    Ended,
    /// The server refused something, or is away.
    Share(ShareError),
    /// It can do nothing more at all.
    Failed(Failure),
}

impl From<ShareError> for TermEnd {
    fn from(error: ShareError) -> Self {
        Self::Share(error)
    }
}

impl From<EngineError> for TermEnd {
    fn from(error: EngineError) -> Self {
        Self::Failed(Failure::of_engine(&error))
    }
}
