//! Newtypes for every number that a caller could confuse with another.

/// Address bits below the level of recursion.
const LEVEL_SHIFT: u32 = 56;

/// A logical block, the unit that the user requests. The store never sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u64);

/// A block in a tree of data and of position-map blocks, the paper's `i || a_i` (Freecursive
/// §4.2.1): a level of recursion, 0 for data, and the block's number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

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

impl Address {
    /// The address in an empty slot.
    pub const NONE: Address = Address(u64::MAX);

    /// Block `index` of a level.
    pub fn new(level: usize, index: u64) -> Self {
        Self((level as u64) << LEVEL_SHIFT | index)
    }

    /// The level of recursion.
    pub fn level(self) -> usize {
        (self.0 >> LEVEL_SHIFT) as usize
    }

    /// The number in its level.
    pub fn index(self) -> u64 {
        self.0 & ((1 << LEVEL_SHIFT) - 1)
    }

    /// The data block, unless it is a block of the position map.
    pub fn data(self) -> Option<BlockId> {
        (self.level() == 0).then_some(BlockId(self.0))
    }

    /// The block of the same level, `count` further.
    pub fn plus(self, count: usize) -> Self {
        Self(self.0 + count as u64)
    }

    /// The block of the same level, `count` before.
    pub fn minus(self, count: usize) -> Self {
        Self(self.0 - count as u64)
    }

    /// The map block with its entry, when map blocks have `entries` entries.
    pub fn holder(self, entries: u64) -> Self {
        Self::new(self.level() + 1, self.index() / entries)
    }

    /// The block of the first entry in this map block.
    pub fn first_entry(self, entries: u64) -> Self {
        Self::new(self.level() - 1, self.index() * entries)
    }
}

impl From<BlockId> for Address {
    fn from(id: BlockId) -> Self {
        Self(id.0)
    }
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

    /// Its left child (0) or right child (1).
    pub fn child(self, side: usize) -> BucketId {
        BucketId(self.0 * 2 + side as u64)
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
    /// The first label on the path to this leaf, in a tree whose leaves are at `depth`.
    pub fn label(self, depth: Level) -> Label {
        Label(self.0.checked_shl(64 - depth.0).unwrap_or(0))
    }

    /// The bucket at `level` on the path to this leaf, in a tree whose leaves are at `depth`.
    pub fn bucket_at(self, level: Level, depth: Level) -> BucketId {
        BucketId(((1 << depth.0) | self.0) >> (depth.0 - level.0))
    }
}
