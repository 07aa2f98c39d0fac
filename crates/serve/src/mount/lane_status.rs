//! What an open lane of a mount tells its owner: an attribute of its root, which nobody sees
//! without its passphrase.

use super::parts::lane_name;
use crate::fuse::xattr::asked;
use oblivio_volume::{LaneStatus, MOST_LANES};
use std::path::Path;

/// The name of the attribute.
pub const STATUS_NAME: &[u8] = b"oblivio.lane";

/// Its value.
pub fn told(status: &LaneStatus) -> String {
    let LaneStatus {
        bytes,
        waiting,
        waiting_bytes,
        carried_by_bytes,
        grace_left_bytes,
        grace_bytes,
    } = status;
    format!("{bytes} {waiting} {waiting_bytes} {carried_by_bytes} {grace_left_bytes} {grace_bytes}")
}

fn heard(told: &str) -> Option<LaneStatus> {
    let numbers: Vec<u64> = told.split(' ').map(|it| it.parse().ok()).collect::<Option<_>>()?;
    let [bytes, waiting, waiting_bytes, carried_by_bytes, grace_left_bytes, grace_bytes] =
        numbers.try_into().ok()?;
    Some(LaneStatus {
        bytes,
        waiting,
        waiting_bytes,
        carried_by_bytes,
        grace_left_bytes,
        grace_bytes,
    })
}

/// The lanes that are open in the volume mounted on a directory, by their names there. What was
/// written in them is taken in first.
pub fn lane_statuses(dir: &Path) -> Vec<(String, LaneStatus)> {
    let status = |number| {
        let name = lane_name(number);
        let status = heard(&asked(&dir.join(&name), STATUS_NAME)?)?;
        Some((name, status))
    };
    (0..usize::from(MOST_LANES)).filter_map(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        let status = LaneStatus {
            bytes: u64::MAX,
            waiting: 1,
            waiting_bytes: 4096,
            carried_by_bytes: 65_536,
            grace_left_bytes: 0,
            grace_bytes: 7,
        };
        assert_eq!(heard(&told(&status)), Some(status));
        for nonsense in ["", "1 2 3", "1 2 3 4 5 6 7", "a b c d e f"] {
            assert_eq!(heard(nonsense), None, "{nonsense}");
        }
    }
}
