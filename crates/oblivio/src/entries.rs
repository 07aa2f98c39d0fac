//! The names in a directory, one after the other.

use crate::error::Result;
use crate::files::Files;
use crate::metadata::DirEntry;
use crate::session::Session;
use oblivio_app::VolumePath;
use oblivio_app::walk::{PAGE, follow, in_words_of};
use oblivio_volume::fs::{DirEntry as Entry, Ino};
use std::iter::FusedIterator;
use std::sync::Arc;
use std::vec;

/// What is in a directory, by name: [`Volume::list`](crate::Volume::list) gives it.
///
/// Names are read as they are asked for, many at a time. One that is made or removed meanwhile may
/// be missing; all others come once. After an error there is nothing more.
#[derive(Debug)]
pub struct Entries {
    session: Arc<Session<Files>>,
    directory: VolumePath,
    ino: Ino,
    page: vec::IntoIter<Entry>,
    last: Option<Vec<u8>>,
    more: bool,
}

impl Entries {
    /// Reads the first names.
    pub(crate) fn of(session: Arc<Session<Files>>, directory: VolumePath) -> Result<Self> {
        let ino = session.run(|files| follow(&**files, &directory))?.ino;
        let page = Vec::new().into_iter();
        let mut entries = Self { session, directory, ino, page, last: None, more: true };
        entries.read()?;
        Ok(entries)
    }

    fn read(&mut self) -> Result<()> {
        // Whatever happens, nothing is asked for twice.
        self.more = false;
        let page = self.session.run(|files| {
            let page = files.read_dir(self.ino, self.last.as_deref(), PAGE);
            page.map_err(|error| in_words_of(&self.directory, error))
        })?;
        self.more = page.len() == PAGE;
        self.last = page.last().map(|entry| entry.name.clone());
        self.page = page.into_iter();
        Ok(())
    }
}

impl Iterator for Entries {
    type Item = Result<DirEntry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0
            && self.more
            && let Err(error) = self.read()
        {
            return Some(Err(error));
        }
        let entry = self.page.next()?;
        Some(Ok(DirEntry::of(&self.directory, entry)))
    }
}

impl FusedIterator for Entries {}
