//! Makes the entry of a file in its folder durable.

use crate::medium;
use std::fs::File;
use std::io;
use std::path::Path;

/// Makes what happened to the name of a file durable.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    medium::sync_directory(&File::open(parent)?)
}
