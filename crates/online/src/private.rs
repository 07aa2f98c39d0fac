//! Files that only their owner may read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Replaces a file, or makes it, as a whole: nobody else may read it, at no moment.
pub(super) fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    // The file itself, not a link to it.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let mut part = file.clone().into_os_string();
    part.push(format!(".{}.new", std::process::id()));
    drop(fs::remove_file(&part));
    let mut options = OpenOptions::new();
    let mut out = options.write(true).create_new(true).mode(0o600).open(&part)?;
    let written = out.write_all(text).and_then(|()| out.sync_all());
    let renamed = written.and_then(|()| fs::rename(&part, &file));
    renamed.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Makes the folder of a file, for its owner alone.
pub(super) fn make_folder_of(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
