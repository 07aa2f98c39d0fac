//! Authentication tags.

use crate::secret::same_bytes;

/// Bytes of a tag, at the end of a sealed object.
pub const TAG_BYTES: usize = 16;

/// An authentication tag. Compares in constant time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tag(pub [u8; TAG_BYTES]);

impl PartialEq for Tag {
    fn eq(&self, other: &Self) -> bool {
        same_bytes(&self.0, &other.0)
    }
}

impl Eq for Tag {}
