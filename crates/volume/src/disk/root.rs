//! The root of a volume that holds a disk.

use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"OBLDISK\n";
const VERSION: u16 = 1;
const ROOT: usize = 24;

/// The size of the disk that a volume with this root holds; `None` when it holds something else.
///
/// # Errors
/// `Unsupported` for a disk of a later version, `Tampered` for one that makes no sense.
pub fn size_in(root: &[u8]) -> Result<Option<u64>> {
    if !root.starts_with(&MAGIC) {
        return Ok(None);
    }
    let Ok(root) = <&[u8; ROOT]>::try_from(root) else {
        return Err(Error::Tampered("the disk's root has the wrong length".into()));
    };
    let version = u16::from_le_bytes([root[8], root[9]]);
    if version != VERSION {
        return Err(Error::Unsupported(format!(
            "the disk has format {version}, this program knows {VERSION}; use a newer one"
        )));
    }
    let mut size = [0; 8];
    size.copy_from_slice(&root[16..]);
    Ok(Some(u64::from_le_bytes(size)))
}

pub(super) fn root_of(size: u64) -> Vec<u8> {
    let mut root = Vec::with_capacity(ROOT);
    root.extend_from_slice(&MAGIC);
    root.extend_from_slice(&VERSION.to_le_bytes());
    root.extend_from_slice(&[0; 6]);
    root.extend_from_slice(&size.to_le_bytes());
    root
}
