//! An engine's counters, so that claims about its cost are measured and not estimated.

/// Counters of one engine since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meters {
    /// Operations requested by the caller.
    pub requests: u64,
    /// Paths read for requests, position-map blocks, maintenance and the schedule.
    pub paths: u64,
    /// Paths read for position-map blocks alone.
    pub map_paths: u64,
    /// Buckets read.
    pub buckets_read: u64,
    /// Buckets written.
    pub buckets_written: u64,
    /// Entries of the top's log written.
    pub entries_written: u64,
    /// Bytes read and written, as the store sees them.
    pub bytes_moved: u64,
    /// The part of `bytes_moved` for position-map blocks.
    pub map_bytes_moved: u64,
    /// Bytes that PMMAC hashed, for checks and new tags.
    pub pmmac_bytes: u64,
    /// Bytes authenticated by the tag tree: every bucket read or written.
    pub tag_tree_bytes: u64,
    /// Group remaps (Freecursive §5.2.2).
    pub group_remaps: u64,
    /// The stash's highest occupancy after an eviction.
    pub stash_peak: u64,
    /// The most blocks that were waiting for a group remap.
    pub remap_backlog_peak: u64,
    /// PLB lookups that found their block.
    pub plb_hits: u64,
    /// PLB lookups that missed.
    pub plb_misses: u64,
}
