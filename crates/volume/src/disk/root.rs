//! The root of a volume that holds a disk.

use crate::{Error, Result};
use zerocopy::little_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const MAGIC: [u8; 8] = *b"OBLDISK\n";
const VERSION: u16 = 1;

/// As stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Root {
    magic: [u8; 8],
    version: U16,
    reserved: [u8; 6],
    size: U64,
}

/// The size of the disk that a volume with this root holds; `None` when it holds something else.
///
/// # Errors
/// `Unsupported` for a disk of a later version, `Tampered` for one that makes no sense.
pub fn size_in(root: &[u8]) -> Result<Option<u64>> {
    if !root.starts_with(&MAGIC) {
        return Ok(None);
    }
    let Ok(root) = Root::ref_from_bytes(root) else {
        return Err(Error::Tampered("the disk's root has the wrong length".into()));
    };
    let version = root.version.get();
    if version != VERSION {
        return Err(Error::Unsupported(format!(
            "the disk has format {version}, this program knows {VERSION}; use a newer one"
        )));
    }
    Ok(Some(root.size.get()))
}

pub(super) fn root_of(size: u64) -> Vec<u8> {
    let (version, size) = (U16::new(VERSION), U64::new(size));
    Root { magic: MAGIC, version, reserved: [0; 6], size }.as_bytes().to_vec()
}
