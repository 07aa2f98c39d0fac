//! What a planted leak changes in the calls of a recorded session.

/// The planted flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distortion {
    None,
    /// Records run ahead of syncs, within the bound: no flaw.
    Ahead,
    /// So they do, but one file's intents come after its reads.
    AheadLate,
    /// A delta has room for as many words of "exists" bits as the removed blocks are scattered
    /// over.
    LongDelta,
    /// A delta holds the stash without its padding.
    DeltaOfStash,
    /// So does a checkpoint.
    LongCheckpoint,
    /// A record of written bytes has an extra page when they do not compress.
    LongRecord,
    /// A record of written bytes has their exact length instead of a size class.
    OddRecord,
    /// The intent of a batch has an extra page for one file's block ids.
    LongIntent,
    /// The intent of one file's batches comes after their reads.
    LateIntent,
    /// One file's paths differ from the volume's statement.
    OtherPath,
    /// One file's batches read a bucket that the volume does not state.
    MoreThanSaid,
    /// The buckets of one file's paths are read from the leaf up.
    ReadOrder,
    /// For one file, a bucket goes to the last free place instead of the first.
    Slot,
    /// The bytes to keep depend on the reads.
    Hint,
    /// A scrub goes on elsewhere after a read of one file.
    ScrubPlace,
    /// For one file, a scrub reads its part from the end.
    ScrubOrder,
    /// The state is read in the middle of a session, for one file.
    SecretRead,
    /// For one file, a checkpoint is written before it is due.
    EarlyCheckpoint,
    /// For one file, a commit record overwrites the last one.
    SameCommitPlace,
    /// A broken-off session is not replayed: the next one shows its own paths.
    NotShownAgain,
    /// The replay shows other paths.
    OtherAgain,
    /// The next session repeats the paths of the one before, except one (the same file was read).
    SameFile,
    /// The next session repeats every second one of them.
    EverySecond,
}
