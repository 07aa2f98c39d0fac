//! What this file system says of an inode beyond the common words.

use crate::layout::ROOT;
use crate::transactions::Owner;
use crate::types::{Attr, FileKind, Ino, ROOT_INO};
use std::ops::Deref;

/// An inode, and everything known of it without reading its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAttr {
    /// Its name among blocks, which is the one that all operations take.
    pub id: Owner,
    /// Drawn anew at each change: data that was cached under another value is out of date.
    pub change: [u8; 16],
    /// Its attributes, under the [`number`] of its name. Which of its blocks exist is known to
    /// nobody without asking for each: all seem to.
    pub attr: Attr,
}

impl Deref for NodeAttr {
    type Target = Attr;

    fn deref(&self) -> &Attr {
        &self.attr
    }
}

impl NodeAttr {
    pub(crate) fn resize(&mut self, size: u64) {
        (self.attr.size, self.attr.blocks) = (size, blocks(size));
    }
}

/// Units of 512 bytes for a length.
pub fn blocks(size: u64) -> u64 {
    size.div_ceil(512)
}

/// The number of an inode: the beginning of its name, so that all clients show the same one. Names
/// are random; two that begin alike are for the caller to tell apart.
pub fn number(id: Owner) -> Ino {
    match id {
        ROOT => ROOT_INO,
        _ => id.first_chunk().map_or(0, |half| Ino::from_le_bytes(*half)).max(ROOT_INO + 1),
    }
}

/// One name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedNode {
    /// Where a listing goes on after it; at least 3.
    pub cookie: u64,
    /// The name, without `/`.
    pub name: Vec<u8>,
    /// The named inode.
    pub id: Owner,
    /// Its type.
    pub kind: FileKind,
}
