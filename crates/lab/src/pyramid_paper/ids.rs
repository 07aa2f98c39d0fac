//! Newtypes for the numbers and names of the construction.

/// Bytes of a block's id: the paper numbers blocks with 256 bits (§7).
pub const ITEM_ID_BYTES: usize = 32;

/// A block, as clients name it. The server never sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub [u8; ITEM_ID_BYTES]);

/// The name under which a level holds an item or a fake. The server sees these; without the key
/// they look random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpaqueId(pub [u8; 16]);

/// A height of the pyramid; 0 is the top.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Height(pub u32);

/// The running number of a level at its height, from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// A level: the paper's `i.j` or `i.j.*` (§5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LevelId {
    /// Its height `i`.
    pub height: Height,
    /// Its generation `j`.
    pub generation: Generation,
    /// Whether it was reshuffled at its own height and did not come from above.
    pub star: bool,
}

/// A query's place in the query logs of all periods: the order of all queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryNumber(pub u64);

/// A period: the queries of one query log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(pub u64);

/// A fake of a level: first one for each query, then one for each deletion, then padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FakeNumber(pub u64);

/// A segment of a level's filter. The server sees these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNumber(pub u64);

/// A client, as it names itself in the query log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// The running number of a client's own queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

/// The term of a lease on a construction. A newer one makes the older ones void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// Bytes of an encoded level.
pub(super) const LEVEL_BYTES: usize = 16;

impl LevelId {
    /// The level in 16 bytes, as the PRF takes it.
    pub(super) fn encode(self) -> [u8; LEVEL_BYTES] {
        let mut out = [0; LEVEL_BYTES];
        out[..8].copy_from_slice(&self.generation.0.to_le_bytes());
        out[8..12].copy_from_slice(&self.height.0.to_le_bytes());
        out[12] = u8::from(self.star);
        out
    }

    /// The level in one word, as a sealed object's place takes it: a generation stays far below
    /// 2^56, because a level of it lives for at least one query.
    pub(super) fn word(self) -> u64 {
        self.generation.0 << 8 | u64::from(self.height.0) << 1 | u64::from(self.star)
    }
}
