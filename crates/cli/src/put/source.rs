//! Reads from the local disk: attributes, and content without its holes.

use oblivio_volume::fs::{NewNode, Timestamp};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Bytes per read: many blocks of the volume, which then share accesses.
pub const PIECE: usize = 4 << 20;

/// Opens a file to store. It was examined just before; if a pipe or a link has taken its place,
/// this neither waits for it nor follows it.
pub fn open(path: &Path, follow: bool) -> io::Result<File> {
    use rustix::fs::OFlags;
    let flags = if follow { OFlags::NONBLOCK } else { OFlags::NONBLOCK | OFlags::NOFOLLOW };
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// Whether a file yields any bytes, whatever length it reports.
pub fn has_content(file: &File) -> io::Result<bool> {
    match file.read_at(&mut [0], 0) {
        Ok(len) => Ok(len > 0),
        // One without random access is read.
        Err(error) if error.kind() == io::ErrorKind::NotSeekable => Ok(true),
        Err(error) => Err(error),
    }
}

/// The attributes for a new node in the volume.
pub fn node(found: &Metadata) -> NewNode {
    NewNode { mode: found.mode() & 0o7777, uid: found.uid(), gid: found.gid(), mtime: mtime(found) }
}

fn mtime(found: &Metadata) -> Timestamp {
    Timestamp { seconds: found.mtime(), nanos: u32::try_from(found.mtime_nsec()).unwrap_or(0) }
}

/// Calls `each` with every piece of a file's data and its offset, in order, without holes. Returns
/// the file's real length: it may have been cut during the read.
pub fn each_piece(
    file: &File,
    len: u64,
    mut each: impl FnMut(u64, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut buffer = vec![0; PIECE.min(usize::try_from(len).unwrap_or(PIECE)).max(1)];
    let mut at = 0;
    while let Some((begin, end)) = next_data(file, at, len) {
        at = begin;
        while at < end {
            let want = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
            let got = read_full(file, &mut buffer[..want], at)?;
            if got > 0 {
                each(at, &buffer[..got])?;
            }
            at += got as u64;
            if got < want {
                return Ok(at);
            }
        }
    }
    Ok(len)
}

/// Fills the buffer as far as the file goes.
fn read_full(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The next range with data at or after `at`; `None` when only a hole is left.
#[cfg(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple"
))]
fn next_data(file: &File, at: u64, len: u64) -> Option<(u64, u64)> {
    use rustix::fs::{SeekFrom, seek};
    if at >= len {
        return None;
    }
    let begin = match seek(file, SeekFrom::Data(at)) {
        Ok(begin) => begin,
        Err(rustix::io::Errno::NXIO) => return None,
        // A file system without holes.
        Err(_) => return Some((at, len)),
    };
    let end = seek(file, SeekFrom::Hole(begin)).unwrap_or(len).min(len);
    (begin < end).then_some((begin, end))
}

/// Elsewhere everything is data.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "freebsd",
    target_vendor = "apple"
)))]
fn next_data(_file: &File, at: u64, len: u64) -> Option<(u64, u64)> {
    (at < len).then_some((at, len))
}

/// The bytes of all files below a path. Only for a progress bar: an unreadable file counts as 0.
pub fn bytes_below(path: &Path) -> u64 {
    let Ok(found) = path.symlink_metadata() else { return 0 };
    if found.is_dir() {
        let Ok(entries) = fs::read_dir(path) else { return 0 };
        return entries.flatten().map(|entry| bytes_below(&entry.path())).sum();
    }
    if found.is_file() { found.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_the_file() -> anyhow::Result<()> {
        let file = tempfile::tempfile()?;
        file.set_len(40 << 20)?;
        file.write_all_at(&[1; 5000], 9 << 20)?;
        file.write_all_at(&[2; 5 << 20], 20 << 20)?;
        let mut seen = vec![0u8; 40 << 20];
        let mut data = 0;
        let len = each_piece(&file, 40 << 20, |at, piece| {
            data += piece.len();
            seen[at as usize..at as usize + piece.len()].copy_from_slice(piece);
            Ok(())
        })?;
        assert_eq!(len, 40 << 20);
        assert!(data < 20 << 20, "holes are not read: {data}");
        assert_eq!(seen.iter().filter(|&&b| b == 1).count(), 5000);
        assert_eq!(seen.iter().filter(|&&b| b == 2).count(), 5 << 20);
        assert_eq!(seen[9 << 20], 1);
        Ok(())
    }

    #[test]
    fn a_file_that_shrank_is_noticed() -> anyhow::Result<()> {
        let file = tempfile::tempfile()?;
        file.write_all_at(&[1; 100], 0)?;
        let len = each_piece(&file, 100, |_, _| Ok(()))?;
        assert_eq!(len, 100);
        assert_eq!(each_piece(&tempfile::tempfile()?, 0, |_, _| Ok(()))?, 0);
        Ok(())
    }
}
