//! Makes the entry of a file in its folder durable.

use oblivio_store::sync_directory;
use std::fs::File;
use std::io;
use std::path::Path;

/// Makes what happened to the name of a file durable.
pub(super) fn sync_parent(path: &Path) -> io::Result<()> {
    let parent = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    sync_directory(&File::open(parent)?)
}
