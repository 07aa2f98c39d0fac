//! A file of a volume, read piece by piece.

use anyhow::Result;
use oblivio_app::walk::{OpenFile, ReadFiles};
use oblivio_serve::watch::{OrdinaryEvent, Publisher};
use oblivio_volume::Error;
use oblivio_volume::fs::Attr;

/// Bytes per read: many blocks of the volume, which then share accesses.
const PIECE: usize = 4 << 20;

/// Calls `each` with the pieces of a file and their offsets, in order.
pub fn each_piece(
    fs: &dyn ReadFiles,
    publisher: &Publisher,
    attr: &Attr,
    mut each: impl FnMut(u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let file = OpenFile::of(fs, fs.open(attr.ino)?);
    let mut at = 0;
    while at < attr.size {
        let piece = file.read(at, PIECE)?;
        let len = piece.len() as u64;
        publisher.ordinary(OrdinaryEvent::read(attr.ino, attr.size, at, len));
        if piece.is_empty() {
            let what = format!("a file ends at byte {at} and not at byte {}", attr.size);
            return Err(Error::Tampered(what).into());
        }
        each(at, &piece)?;
        at += len;
    }
    Ok(())
}
