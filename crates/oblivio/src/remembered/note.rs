//! What the notes of both kinds of files need: the way one is replaced, the text form of its
//! fields, and the errors.

use oblivio_crypto::VolumeId;
use oblivio_volume::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file by a new one, durably.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(OsStr::new(".new-")).tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    let file = file.persist(path).map_err(|error| error.error)?;
    File::open(dir)?.sync_all()?;
    Ok(file)
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from twice as many hexadecimal digits.
pub(super) fn unhex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut out = [0; N];
    if hex.len() != 2 * N || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(out)
}

/// A volume's identity from its text form.
pub(super) fn identity(text: &str) -> Option<VolumeId> {
    unhex(text).map(VolumeId)
}

/// An error: the memory cannot be read.
pub(super) fn unreadable(path: &Path, why: &str) -> Error {
    forgotten(format!("is unreadable: {}: {why}", path.display()))
}

/// An error: the memory cannot be written.
pub(super) fn unkept(path: &Path, error: &io::Error) -> Error {
    forgotten(format!("cannot be kept: {}: {error}", path.display()))
}

/// An error: the memory has failed.
pub(super) fn forgotten(what: String) -> Error {
    Error::Forgotten(what)
}
