//! Newtypes for every number that a caller could confuse with another.

/// A logical block, the unit that the user requests. The store never sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u64);

/// A bucket of the tree in heap order: 1 is the root, `2b` and `2b + 1` are the children of `b`.
/// The store sees these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketId(pub u64);

/// A 64-bit block label. Its top bits are the leaf whose path holds the block, so a tree that grows
/// by a level re-labels nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u64);

/// A leaf of the tree, counted from the left. The store sees these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leaf(pub u64);

/// A depth in the tree; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(pub u32);

/// The tree of a step. Engines with one tree use [`TreeId::DATA`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(pub u8);

impl TreeId {
    /// The only tree of most engines, and the data tree of a plain recursive ORAM.
    pub const DATA: TreeId = TreeId(0);
}

impl BucketId {
    /// The root of the tree.
    pub const ROOT: BucketId = BucketId(1);

    /// The depth of this bucket.
    pub fn level(self) -> Level {
        Level(63 - self.0.leading_zeros())
    }

    /// The bucket above, or `None` for the root.
    pub fn parent(self) -> Option<BucketId> {
        (self.0 > 1).then_some(BucketId(self.0 >> 1))
    }

    /// 0 when this bucket is its parent's left child, 1 when it is the right one.
    pub fn side(self) -> usize {
        (self.0 & 1) as usize
    }
}

impl Label {
    /// The leaf whose path holds a block with this label, in a tree whose leaves are at `depth`.
    pub fn leaf(self, depth: Level) -> Leaf {
        Leaf(self.0.checked_shr(64 - depth.0).unwrap_or(0))
    }

    /// The bucket at `level` on this label's path.
    pub fn bucket_at(self, level: Level) -> BucketId {
        BucketId((1 << level.0) | self.0.checked_shr(64 - level.0).unwrap_or(0))
    }
}

impl Leaf {
    /// The bucket at `level` on the path to this leaf, in a tree whose leaves are at `depth`.
    pub fn bucket_at(self, level: Level, depth: Level) -> BucketId {
        BucketId(((1 << depth.0) | self.0) >> (depth.0 - level.0))
    }
}
