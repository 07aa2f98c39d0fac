//! The end of a history that cannot be read: what a crash tore is kept under a name of its own. If
//! whole records follow, it was no crash.

use super::durable::sync_parent;
use super::framing::{RECORD_HEAD, checksum};
use oblivio_store::share::MOST_ENTRY_BYTES;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The end of the name of such a file. No file of the history has it.
const TORN: &str = "torn";
/// How many records in a row may be damaged and the next one is still found.
const DAMAGED: u64 = 16;
/// The most bytes that are compared with checksums in search of it.
const SEARCHED: usize = 1 << 30;

/// Writes these bytes, which began with the record `number`, into a new file beside the history.
pub(super) fn keep(dir: &Path, number: u64, bytes: &[u8]) -> io::Result<PathBuf> {
    for at in 0_u32.. {
        let path = dir.join(format!("{number:016x}.{at}.{TORN}"));
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
            Ok(mut file) => {
                file.write_all(bytes).and_then(|()| file.sync_all())?;
                sync_parent(&path)?;
                return Ok(path);
            }
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// The bytes of the record at a place, as long as it says, and where the next one begins.
fn record(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let len = bytes.get(at..at + 4)?;
    let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
    let end = (at + RECORD_HEAD).checked_add(len)?;
    let record = bytes.get(at + RECORD_HEAD..end).filter(|_| len <= MOST_ENTRY_BYTES)?;
    Some((record, end))
}

/// Whether a whole record lies anywhere in these bytes, whose first one, `bad`, is not whole.
///
/// Lengths may be what is damaged, so it may begin anywhere. A place is looked at closely if the
/// length there leads to another record, or to the end.
pub(super) fn is_followed(bytes: &[u8], bad: u64) -> bool {
    let mut left = SEARCHED;
    for at in 1..bytes.len() {
        let Some((found, end)) = record(bytes, at) else { continue };
        if end != bytes.len() && record(bytes, end).is_none() {
            continue;
        }
        for number in bad + 1..=bad + DAMAGED {
            if bytes[at + 4..at + RECORD_HEAD] == checksum(number, found) {
                return true;
            }
            left = left.saturating_sub(found.len() + 64);
        }
        if left == 0 {
            return false;
        }
    }
    false
}
