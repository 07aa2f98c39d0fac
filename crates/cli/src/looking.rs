//! Opening a volume of any kind for a command that only looks at its files.

use crate::args::OpenArgs;
use crate::{open, shared};
use anyhow::Result;
use oblivio::walk::ReadFiles;
use oblivio_serve::watch::Publisher;
use std::path::Path;

/// The files of a volume to look at, and what reports that to `oblivio watch`.
pub type Looked<'a> = (&'a dyn ReadFiles, &'a Publisher);

/// Runs a command that only looks at files, of a volume of any kind, and closes the volume after
/// it.
pub fn with<T>(
    folder: &Path,
    args: &OpenArgs,
    work: impl FnOnce(Looked<'_>) -> Result<T>,
) -> Result<T> {
    match shared::address(folder) {
        Some(address) => shared::look(&address?, args, |fs| work((fs, &Publisher::default()))),
        None => open::with(folder, args, |session| work((&session.fs, &session.publisher))),
    }
}
