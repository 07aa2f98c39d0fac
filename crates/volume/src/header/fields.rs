//! The fixed fields of a header.

use crate::Error;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The format that this version writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 1;
pub(super) const MAGIC: [u8; 8] = *b"OBLIVIO\n";
const ENGINE_TREE: u32 = 1;
const ENGINE_SEQUENTIAL: u32 = 2;
/// Bytes of an engine's own fields.
pub(super) const PARAMETER_BYTES: usize = 48;

/// The fixed fields, as stored.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned,
)]
#[repr(C)]
pub(super) struct Fields {
    pub magic: [u8; 8],
    pub format: U32,
    pub flags: U32,
    pub volume: [u8; 16],
    pub engine: U32,
    pub block_bytes: U32,
    /// The engine's parameters; each engine has its own fields.
    pub parameters: [u8; PARAMETER_BYTES],
}

/// A volume's engine, and so what it hides from whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// For a store that sees every read and every write.
    Tree,
    /// For an observer of the store's writes only.
    Sequential,
}

impl EngineKind {
    /// The engine of a number in a header, if this version knows it.
    pub(super) fn of(number: u32) -> Option<Self> {
        match number {
            ENGINE_TREE => Some(Self::Tree),
            ENGINE_SEQUENTIAL => Some(Self::Sequential),
            _ => None,
        }
    }

    fn number(self) -> u32 {
        match self {
            Self::Tree => ENGINE_TREE,
            Self::Sequential => ENGINE_SEQUENTIAL,
        }
    }
}

impl Fields {
    /// The fields of a volume without an identity yet.
    pub fn new(
        engine: EngineKind,
        flags: u32,
        block_bytes: u32,
        parameters: [u8; PARAMETER_BYTES],
    ) -> Self {
        Self {
            magic: MAGIC,
            format: U32::new(FORMAT_VERSION),
            flags: U32::new(flags),
            volume: [0; 16],
            engine: U32::new(engine.number()),
            block_bytes: U32::new(block_bytes),
            parameters,
        }
    }
}

pub(super) fn unknown_features() -> Error {
    Error::Unsupported("the volume uses features that this version does not know".into())
}
