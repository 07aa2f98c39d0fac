//! A file of a volume, read piece by piece.

use anyhow::Result;
use oblivio_app::walk::{OpenFile, ReadFiles};
use oblivio_serve::watch::{OrdinaryEvent, Publisher};
use oblivio_volume::fs::Attr;
use oblivio_volume::{Error, LostBytes};

/// Bytes per read: many blocks of the volume, which then share accesses.
const PIECE: usize = 4 << 20;

/// What to make of bytes that are lost to damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// What comes before the first one is all that is given.
    End,
    /// They are zeros.
    Zeros,
}

/// Calls `each` with the pieces of a file and their offsets, in order. All of it is read, whatever
/// is lost: the store sees the same, and the error names all that is lost.
///
/// # Errors
/// `Lost` at the end, whatever was given; those of a read.
pub fn each_piece(
    fs: &dyn ReadFiles,
    publisher: &Publisher,
    attr: &Attr,
    holes: Holes,
    mut each: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let file = OpenFile::of(fs, fs.open(attr.ino)?);
    let (mut at, mut lost) = (0, Vec::new());
    while at < attr.size {
        let piece = file.read_around(at, PIECE)?;
        let len = piece.bytes.len() as u64;
        publisher.ordinary(OrdinaryEvent::read(attr.ino, attr.size, at, len));
        if len == 0 {
            let what = format!("a file ends at byte {at} and not at byte {}", attr.size);
            return Err(Error::Tampered(what).into());
        }
        let ended = holes == Holes::End && !lost.is_empty();
        lost.extend(piece.lost.iter().cloned());
        match holes {
            Holes::Zeros => each(at, &piece.bytes)?,
            Holes::End if ended => {}
            Holes::End => {
                if let Ok(front) = piece.front() {
                    each(at, &front)?;
                }
            }
        }
        at += len;
    }
    match lost.is_empty() {
        true => Ok(()),
        false => Err(Error::from(LostBytes::of_file(lost)).into()),
    }
}
