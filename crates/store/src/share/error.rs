//! What a shared volume refuses, and whether the same call may succeed later.

use super::ids::{AskId, Number, Object, ScribeTerm};
use crate::StoreError;
use std::borrow::Cow;
use std::io;
use std::time::Duration;

/// An error of a shared volume.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    /// Another client is the scribe.
    #[error("another client has become the scribe (term {})", .0.0)]
    Superseded(ScribeTerm),
    /// The scribe's lease lasts.
    #[error("a scribe is at work (term {})", .term.0)]
    Held {
        /// Its term.
        term: ScribeTerm,
        /// How long its lease lasts, if it does nothing.
        left: Duration,
    },
    /// The record has a number other than the next one.
    #[error("the next record has the number {}", .0.0)]
    Gap(Number),
    /// There is a record of this number, and it is another one.
    #[error("record {} is stored already, and it is another one", .0.0)]
    Differs(Number),
    /// An ask of this number came before, and it was another one.
    #[error("ask {} of session {:x} came before, and it was another one", .0.seq.0, .0.session.0)]
    OtherAsk(AskId),
    /// The ask is in no batch, but the server does not have it: it was started anew.
    #[error("ask {} of session {:x} is not here", .0.seq.0, .0.session.0)]
    NoAsk(AskId),
    /// There is no such table or checkpoint, or no such part of it.
    #[error("no such object or part of it: {0:?}")]
    NoObject(Object),
    /// Records before this one are not kept any more.
    #[error("records before {} are gone", .0.0)]
    Gone(Number),
    /// The parameters have another version.
    #[error("the volume's parameters have the version {0}")]
    Version(u64),
    /// The volume has no parameters yet.
    #[error("nobody has made this volume yet")]
    NotMade,
    /// The volume's quota is used up. Nothing was shown or stored.
    #[error("the volume's quota is used up")]
    Quota,
    /// Too much waits already.
    #[error("the server has too much to do for this volume")]
    Busy,
    /// A request that makes no sense.
    #[error("bad request: {0}")]
    Invalid(Cow<'static, str>),
    /// The server does not know the device, or not any more.
    #[error("the server does not admit this device: {0}")]
    Denied(String),
    /// The line to the server failed.
    #[error("the line to the server failed: {0}")]
    Line(#[source] io::Error),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A result of a shared volume.
pub type Result<T> = std::result::Result<T, ShareError>;

impl ShareError {
    /// A request that makes no sense, for this reason.
    #[must_use]
    pub const fn invalid(why: &'static str) -> Self {
        Self::Invalid(Cow::Borrowed(why))
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Held { .. } | Self::Busy | Self::Quota | Self::Line(_) => true,
            Self::Store(error) => error.may_pass(),
            _ => false,
        }
    }
}
