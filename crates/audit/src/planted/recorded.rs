//! Leaks of store calls besides paths, volumes that lie about what they show, and sessions that
//! repeat paths of another one.

use super::session::Recording;
use super::{Case, Planted};

/// The planted flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distortion {
    None,
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

/// Honest sessions or leaky ones, as `leaks` selects.
pub(super) fn cases(leaks: bool) -> Vec<Planted> {
    use Distortion as D;
    let record = |name, distortion| Planted {
        name,
        leaks,
        case: Case::Record(Recording::of(distortion).lines()),
    };
    let against = |name, distortion| {
        let (first, second) = Recording::of(distortion).two_sessions();
        Planted { name, leaks, case: Case::Against(first, second) }
    };
    if !leaks {
        return vec![
            record("every call of three sessions, one broken off", D::None),
            against("a session, then another file in the next", D::None),
        ];
    }
    vec![
        record("a delta as long as removed blocks are scattered", D::LongDelta),
        record("a delta with the stash as it is", D::DeltaOfStash),
        record("a checkpoint with the stash as it is", D::LongCheckpoint),
        record("a record a page longer for some content", D::LongRecord),
        record("a record as long as what was written", D::OddRecord),
        record("a longer intent for some block ids", D::LongIntent),
        record("one file's intent after its reads", D::LateIntent),
        record("a volume that lies about a path", D::OtherPath),
        record("a read that the volume does not tell of", D::MoreThanSaid),
        record("reads in another order for one file", D::ReadOrder),
        record("another free place for one file's bucket", D::Slot),
        record("a hint that depends on what is read", D::Hint),
        record("a state read again for one file", D::SecretRead),
        record("a checkpoint before it is due, for one file", D::EarlyCheckpoint),
        record("two commit records in one place", D::SameCommitPlace),
        record("a broken session is not shown again", D::NotShownAgain),
        record("a broken session is shown again as another", D::OtherAgain),
        against("446 of 447 paths again: the same file", D::SameFile),
        against("every second path of the session before", D::EverySecond),
    ]
}
