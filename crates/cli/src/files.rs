//! Opening a volume of any kind for a command that works on its files.

use crate::args::OpenArgs;
use crate::{open, shared};
use anyhow::Result;
use oblivio_app::shared::address;
use oblivio_app::walk::{ReadFiles, WriteFiles};
use oblivio_serve::watch::Publisher;
use std::path::Path;

/// The files of a volume to look at, and what reports that to `oblivio watch`.
pub type Looked<'a> = (&'a dyn ReadFiles, &'a Publisher);

/// The same to change.
pub type Changed<'a> = (&'a dyn WriteFiles, &'a Publisher);

/// Runs a command that only looks at files, of a volume of any kind, and closes the volume after
/// it.
pub fn look<T>(
    folder: &Path,
    args: &OpenArgs,
    work: impl FnOnce(Looked<'_>) -> Result<T>,
) -> Result<T> {
    change(folder, args, |(fs, publisher)| work((fs, publisher)))
}

/// The same for a command that changes them.
pub fn change<T>(
    folder: &Path,
    args: &OpenArgs,
    work: impl FnOnce(Changed<'_>) -> Result<T>,
) -> Result<T> {
    match address(folder) {
        Some(address) => shared::with(&address?, args, |fs| work((fs, &Publisher::default()))),
        None => open::with(folder, args, |session| work((&session.fs, &session.publisher))),
    }
}
