//! The fixed fields of a header.

use crate::Error;
use oblivio_crypto::VolumeId;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The format that this version writes.
pub const FORMAT_VERSION: u32 = 2;
/// A header without a second copy and a checksum; it is read.
pub(super) const FIRST_FORMAT: u32 = 1;
pub(super) const MAGIC: [u8; 8] = *b"OBLIVIO\n";
/// Bytes of an engine's own fields.
pub const PARAMETER_BYTES: usize = 48;

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

impl Fields {
    /// The fields of a volume.
    pub fn new(engine: u32, volume: VolumeId, parameters: &Parameters) -> Self {
        Self {
            magic: MAGIC,
            format: U32::new(FORMAT_VERSION),
            flags: U32::new(parameters.flags),
            volume: volume.0,
            engine: U32::new(engine),
            block_bytes: U32::new(parameters.block_bytes),
            parameters: parameters.own,
        }
    }
}

/// What an engine keeps in the header. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The engine's flags. An engine refuses those that it does not know.
    pub flags: u32,
    /// Bytes of user data in a block.
    pub block_bytes: u32,
    /// The engine's own fields.
    pub own: [u8; PARAMETER_BYTES],
}

impl Parameters {
    /// The error of an engine that does not know a flag or a field.
    pub fn unknown() -> Error {
        Error::Unsupported("the volume uses features that this version does not know".into())
    }
}
