//! What a store can do, and how well: found out or stated by the store itself, never assumed.

/// How a store keeps a second writer out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseKind {
    /// It does not: the right is always granted.
    Granted,
    /// The system keeps it, and frees it when its process ends.
    Process,
}

/// The ports of a store beyond reads and writes, and how strong they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// What was synced survives a crash of the computer.
    pub durable: bool,
    /// A put replaces an object as a whole, also in a crash.
    pub replaces_atomically: bool,
    /// Of several that create one object, one succeeds.
    pub creates_exclusively: bool,
    /// Parts of an object can be written over, so a crash may leave one that was
    /// [begun](crate::Objects::begin) with its length and without its bytes.
    pub writes_over: bool,
    /// A discard frees space.
    pub frees_discarded: bool,
    /// Allocated space is reserved: no later write in it finds the store full.
    pub reserves_space: bool,
    /// It knows how much space is left.
    pub knows_free_space: bool,
    /// How it keeps a second writer out.
    pub lease: LeaseKind,
}

impl Capabilities {
    /// Memory's, which end with the process.
    pub const MEMORY: Self = Self {
        durable: false,
        replaces_atomically: true,
        creates_exclusively: true,
        writes_over: true,
        frees_discarded: true,
        reserves_space: false,
        knows_free_space: false,
        lease: LeaseKind::Granted,
    };
}
