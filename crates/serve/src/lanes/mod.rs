//! What the servers of disks and of mounts do alike for the lanes of a volume.
//!
//! Each open lane has a queue and a server of its own. `replies` go to those who want their writes
//! durable: that takes acts of the volume, and nothing here causes one. Lanes end before the
//! volume, so that what they have goes along with its end.
//!
//! Nothing is said of a lane in a log, which stays.

mod medium;
mod queues;
mod replies;
mod served;
mod tally;

pub use medium::LaneMedium;
pub use queues::Queues;
pub use replies::LaneReplies;
pub use served::ServedLane;
pub use tally::LaneTally;

use std::time::Duration;

/// The time limit of a lane's requests: longer than any that waits for the volume. The volume's own
/// queue tells when the store stalls.
pub const LONG: Duration = Duration::from_secs(3600);
