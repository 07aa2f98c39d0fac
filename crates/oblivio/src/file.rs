//! An open file.

use crate::error::Result;
use crate::files::Files;
use crate::metadata::Metadata;
use crate::session::Session;
use oblivio_app::walk::OpenId;
use oblivio_volume::fs::{Ino, SetAttr};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

/// An open file, with a position for [`Read`], [`Write`] and [`Seek`].
///
/// Each call is an access of its own, whose cost hardly depends on its length: read and write long
/// pieces, or wrap it in a `BufReader` or `BufWriter` with a buffer of a mebibyte. What is written
/// is durable after [`sync`](Self::sync); `flush` does nothing.
#[derive(Debug)]
pub struct File {
    session: Arc<Session<Files>>,
    id: OpenId,
    position: u64,
}

impl File {
    pub(crate) fn ino(&self) -> Ino {
        self.id.ino
    }

    pub(crate) fn of(session: Arc<Session<Files>>, id: OpenId) -> Self {
        Self { session, id, position: 0 }
    }

    /// Up to `len` bytes from `offset` on; fewer at the end of the file.
    ///
    /// # Errors
    /// Those of a read.
    pub fn read_at(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.session.run(|files| files.read(self.id, offset, len))
    }

    /// Writes at `offset`; the file grows as needed.
    ///
    /// # Errors
    /// `Full`, and those of a write.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.session.change(bytes.len() as u64, |files| files.write(self.id, offset, bytes))
    }

    /// Writes at the end of the file, wherever it is by then: in a shared volume other computers
    /// may have moved it, and what they append follows or comes before.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at).
    pub fn append(&self, bytes: &[u8]) -> Result<()> {
        self.session.change(bytes.len() as u64, |files| files.append(self.id, bytes))
    }

    /// What is known of the file.
    ///
    /// # Errors
    /// `Closed`.
    pub fn metadata(&self) -> Result<Metadata> {
        self.session.run(|files| files.attr(self.id.ino)).map(Metadata::of)
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// `Closed`.
    #[expect(clippy::len_without_is_empty, reason = "it can fail, as that of a file of the system")]
    pub fn len(&self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    /// Cuts the file off, or extends it with zeros that take no space.
    ///
    /// # Errors
    /// `Full`, `Invalid`.
    pub fn set_len(&self, len: u64) -> Result<()> {
        let set = SetAttr { size: Some(len), ..SetAttr::default() };
        self.session.change(0, |files| files.set_attr(self.id.ino, set)).map(drop)
    }

    /// Makes everything so far durable, in this file and all others of the volume.
    ///
    /// # Errors
    /// Those of the store.
    pub fn sync(&self) -> Result<()> {
        self.session.sync()
    }
}

impl Read for File {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.read_at(self.position, into.len())?;
        into[..read.len()].copy_from_slice(&read);
        self.position += read.len() as u64;
        Ok(read.len())
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_at(self.position, bytes)?;
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.len()?.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidInput, "a position before the beginning of a file")
        })?;
        Ok(self.position)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // A closed volume has no handles left.
        let _ = self.session.run(|files| files.close(self.id));
    }
}
