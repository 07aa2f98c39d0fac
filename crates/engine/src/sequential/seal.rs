pub(super) const NODE_ENTRY: usize = 24;
pub(super) const NODE_FIXED: usize = 40;
pub(super) const LEAF_FIXED: usize = 64;
