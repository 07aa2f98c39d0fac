//! Reads of everything that is stored, which no statement covers: a check, or a scrub in parts.
//!
//! They go through the stored buckets in the order of the heap, round and round. Where a part
//! begins follows from where the one before it ended. A session goes on where another one was; or,
//! if that one was killed, with its last call again; or it begins anew. What the user asked for
//! decides that.

/// How far everything was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    /// The next bucket, and the first one of the last call; unknown before the first part.
    pub(super) at: Option<(u64, u64)>,
    /// The same of a scrub that stopped, while a check read everything.
    pub(super) stopped: Option<(u64, u64)>,
    /// Whether this session has read a part.
    pub(super) goes_on: bool,
}

impl Scan {
    /// Another session begins.
    pub(super) fn begin(&mut self) {
        self.goes_on = false;
    }

    /// Nothing is known of where it is.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Where a part may begin; anywhere without a list.
    pub(super) fn starts(&self) -> Option<Vec<u64>> {
        let (next, last) = self.at?;
        let stopped = self.stopped.map(|(next, last)| [next, last]).into_iter().flatten();
        Some(match self.goes_on {
            true => vec![next],
            false => [next, last, 0].into_iter().chain(stopped).collect(),
        })
    }
}
