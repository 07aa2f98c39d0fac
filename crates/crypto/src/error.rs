//! Errors, in words that hold no secret.

use thiserror::Error;

/// The reason for refusing a cryptographic operation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The authenticity check failed: altered, moved from another place, or from another volume.
    #[error("the data is not authentic: altered, moved from another place, or of another volume")]
    Forged,
    /// No key slot opens with this passphrase.
    #[error("no key slot opens with this passphrase")]
    WrongPassphrase,
    /// All key slots are in use.
    #[error("all key slots are in use; remove a passphrase first")]
    NoFreeSlot,
    /// The slot to remove is the last one: without it the volume could never be opened again.
    #[error("this is the last passphrase; add another before removing it")]
    LastSlot,
    /// The passphrase to add or to change to already opens the volume.
    #[error("this passphrase opens the volume already")]
    AlreadyOpens,
    /// Trying all key slots would take minutes.
    #[error(
        "trying all passphrases would cost more than a volume may ask for, 64 GiB of memory times \
         passes"
    )]
    TooMuchWork,
    /// The session key reached its hard limit and could not be replaced.
    #[error("the sealing key is used up and no fresh one could be made")]
    KeyExhausted,
    /// There is not enough memory for the passphrase's Argon2id parameters.
    #[error("not enough memory to check the passphrase: it needs {0} KiB")]
    OutOfMemory(u32),
    /// The input has the wrong form.
    #[error("malformed: {0}")]
    Malformed(&'static str),
}
