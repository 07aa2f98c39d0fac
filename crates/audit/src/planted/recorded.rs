//! Leaks of store calls besides paths, volumes that lie about what they show, and sessions that
//! repeat paths of another one.

use super::case::{Case, PlantedTrace};
use super::distortion::Distortion;
use super::session::Recording;

/// Honest sessions or leaky ones, as `leaks` selects.
pub(super) fn cases(leaks: bool) -> Vec<PlantedTrace> {
    use Distortion as D;
    let record = |name, distortion| PlantedTrace {
        name,
        leaks,
        case: Case::Record(Recording::of(distortion).lines()),
    };
    let against = |name, distortion| {
        let (first, second) = Recording::of(distortion).two_sessions();
        PlantedTrace { name, leaks, case: Case::Against(first, second) }
    };
    if !leaks {
        return vec![
            record("every call of three sessions, one broken off", D::None),
            record("the same with records ahead of syncs", D::Ahead),
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
        record("ahead of syncs, one file's intent after its reads", D::AheadLate),
        record("a volume that lies about a path", D::OtherPath),
        record("a read that the volume does not tell of", D::MoreThanSaid),
        record("reads in another order for one file", D::ReadOrder),
        record("another free place for one file's bucket", D::Slot),
        record("a hint that depends on what is read", D::Hint),
        record("a scrub that goes on elsewhere for one file", D::ScrubPlace),
        record("a scrub in another order for one file", D::ScrubOrder),
        record("a state read again for one file", D::SecretRead),
        record("a checkpoint before it is due, for one file", D::EarlyCheckpoint),
        record("two commit records in one place", D::SameCommitPlace),
        record("a broken session is not shown again", D::NotShownAgain),
        record("a broken session is shown again as another", D::OtherAgain),
        against("446 of 447 paths again: the same file", D::SameFile),
        against("every second path of the session before", D::EverySecond),
    ]
}
