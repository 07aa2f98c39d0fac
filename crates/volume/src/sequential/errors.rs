//! The errors of the engine, as those of a volume.

use super::DISK_OBJECT;
use crate::Error;
use oblivio_engine::EngineError;

pub(super) fn engine_error(error: EngineError) -> Error {
    match error {
        EngineError::TamperedExtent { offset, bytes, reason } => {
            Error::Tampered(format!("{bytes} bytes of {DISK_OBJECT} from {offset} on: {reason}"))
        }
        other => crate::error::engine_error(other),
    }
}
