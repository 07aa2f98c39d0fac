//! What the notes of both kinds of files need: the text form of their fields, and the errors.

use oblivio_crypto::VolumeId;
use oblivio_volume::Error;
use std::io;
use std::path::Path;

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
