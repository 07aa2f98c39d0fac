//! Extended attributes: an inode's further names and values.

use super::FileSystem;
use crate::Result;
use crate::fs::types::{Ino, XattrMode};

impl FileSystem {
    /// The value of an extended attribute; `None` when there is none of that name.
    ///
    /// # Errors
    /// `NotFound` for the inode.
    pub fn get_xattr(&self, ino: Ino, name: &[u8]) -> Result<Option<Vec<u8>>> {
        self.run(|state| state.get_xattr(ino, name))
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// `Exists`, `NotFound`, `NameTooLong`, `TooLarge`, `Invalid` for a bad name, `Full`.
    pub fn set_xattr(&self, ino: Ino, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        self.run(|state| state.set_xattr(ino, name, value, mode))
    }

    /// The names of all extended attributes, sorted.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn list_xattrs(&self, ino: Ino) -> Result<Vec<Vec<u8>>> {
        self.run(|state| state.list_xattrs(ino))
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// `NotFound` for the inode or the attribute.
    pub fn remove_xattr(&self, ino: Ino, name: &[u8]) -> Result<()> {
        self.run(|state| state.remove_xattr(ino, name))
    }
}
