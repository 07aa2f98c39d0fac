//! The account of idle maintenance.

/// What idle steps leave to the next ones.
#[derive(Default)]
pub(crate) struct Quiet {
    /// Whether a sweep ended since the last commit.
    pub commit_wanted: bool,
    /// Parts flushed since then.
    pub flushed_ahead: u64,
}

impl Quiet {
    /// Notes a commit.
    pub(crate) fn committed(&mut self) {
        (self.commit_wanted, self.flushed_ahead) = (false, 0);
    }
}
