//! A repair: a whole period of the schedule, round after round, with nothing but commits between.
//! Fewer paths would be those of what was lost.

use crate::trace::{RequestKind, TraceRequest};

/// How far a repair is.
#[derive(Clone, Debug, Default)]
pub(super) struct RepairProgress {
    /// Paths that must follow.
    left: u64,
}

impl RepairProgress {
    /// Processes a request of a tree with this many leaves; gives its fault, if any. A session that
    /// is shown again may end anywhere in a repair.
    pub(super) fn see(
        &mut self,
        request: &TraceRequest,
        (leaves, again): (u64, bool),
    ) -> Option<String> {
        let paths = request.scheduled as u64;
        match request.kind {
            RequestKind::Repair => {
                let left = if self.left == 0 { leaves } else { self.left };
                self.left = if again { 0 } else { left.saturating_sub(paths) };
                (paths > left).then(|| format!("a repair of {paths} paths, where {left} were left"))
            }
            RequestKind::Commit | RequestKind::Flush | RequestKind::Rule => None,
            _ => {
                let left = std::mem::take(&mut self.left);
                (left > 0).then(|| format!("a repair that ends {left} paths too early"))
            }
        }
    }
}
