//! A server's and the engine's errors as those of a volume.

use oblivio_engine::EngineError;
use oblivio_store::StoreError;
use oblivio_store::share::ShareError;
use oblivio_volume::Error;
use std::io;

/// An error of the server.
pub(crate) fn of_share(error: ShareError) -> Error {
    match error {
        ShareError::NotMade => Error::Unsupported("no volume here: nobody has made it yet".into()),
        ShareError::Quota => Error::Full("the volume's quota at its server is used up".into()),
        ShareError::Store(error) => error.into(),
        ShareError::Line(error) => at_server(error),
        ShareError::Denied(_) => at_server(io::Error::new(io::ErrorKind::PermissionDenied, error)),
        other => at_server(io::Error::other(other)),
    }
}

/// An error of the line.
pub(crate) fn at_server(source: io::Error) -> Error {
    StoreError::service("the server", source.kind(), source.to_string()).into()
}

/// An error of the engine.
pub(crate) fn of_engine(error: EngineError) -> Error {
    match error {
        EngineError::Forked => Error::RolledBack(
            "the server shows an old state, or another one than to another computer".into(),
        ),
        other => other.into(),
    }
}

/// Why a client can do nothing more.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The server showed an old or another history.
    RolledBack(String),
    /// The server changed bytes.
    Tampered(String),
    /// This computer cannot keep what it knows.
    Forgotten(String),
    /// The server does not admit this computer.
    Denied(String),
    /// The caller closed it.
    Closed,
}

impl Failure {
    /// What an error of the engine means for a client; none if it may go on.
    pub fn of_engine(error: &EngineError) -> Self {
        match error {
            EngineError::Forked => Self::RolledBack(
                "the server shows an old state, or another one than to another computer".into(),
            ),
            other => Self::Tampered(other.to_string()),
        }
    }

    /// The failure to keep a note.
    pub fn of_memory(error: &Error) -> Self {
        Self::Forgotten(match error {
            Error::Forgotten(why) => why.clone(),
            other => other.to_string(),
        })
    }

    /// As an error.
    pub fn error(&self) -> Error {
        match self.clone() {
            Self::RolledBack(why) => Error::RolledBack(why),
            Self::Tampered(why) => Error::Tampered(why),
            Self::Forgotten(why) => Error::Forgotten(why),
            Self::Denied(why) => at_server(io::Error::new(io::ErrorKind::PermissionDenied, why)),
            Self::Closed => Error::Closed("it was closed".into()),
        }
    }
}
