//! The account of a commit interval.

/// The last commit, and what came since.
pub(crate) struct Since {
    /// Scheduled paths at the commit.
    pub paths: u64,
    /// Bytes in the slab then.
    pub stored: u64,
    /// Whether the store had much room then.
    pub roomy: bool,
    /// Scheduled paths from there to the next commit; a new volume begins with a commit.
    pub interval: u64,
    /// Whether a sweep ended since.
    pub commit_wanted: bool,
    /// Parts of the next commit's buckets that idle steps flushed since.
    pub flushed_ahead: u64,
}

impl Default for Since {
    fn default() -> Self {
        Self {
            paths: 0,
            stored: 0,
            roomy: true,
            interval: 1,
            commit_wanted: false,
            flushed_ahead: 0,
        }
    }
}
