//! The numbers that scripts rely on.

/// The exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    General = 1,
    Usage = 2,
    /// Not found, or exists already.
    Path = 3,
    Passphrase = 4,
    Tampered = 5,
    RolledBack = 6,
    Full = 7,
    Busy = 8,
    NotAVolume = 9,
    /// Some files failed; the others succeeded.
    Partial = 10,
    /// A different volume than before at this place.
    OtherVolume = 11,
    /// Taken over by another computer.
    Overtaken = 12,
    /// The store refused, or does not do what a volume needs.
    Refused = 13,
    /// Files that a sync client brings have not arrived.
    StillToCome = 14,
    /// Two computers wrote apart: there are two histories.
    Parted = 15,
    /// A network, or the service on it, did not answer.
    Offline = 16,
    /// Some of it is lost to damage; all else was read.
    Lost = 17,
    /// The reader of our output went away; the shell's code for SIGPIPE.
    Pipe = 141,
}
