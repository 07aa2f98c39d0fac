//! The local side of `get`. It reaches everything from an open folder and follows no link: names
//! and links in the volume cannot lead out of the target.

use anyhow::{Result, bail};
use oblivio_volume::fs::{Attr, Timestamp};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, fchmod, fchown,
    futimens, linkat, mkdirat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// An open local folder.
#[derive(Debug)]
pub struct Folder(File);

/// Refuses names that no volume should hold and that have another meaning here.
pub fn check_name(name: &[u8]) -> Result<&OsStr> {
    if matches!(name, b"" | b"." | b"..") || name.contains(&b'/') || name.contains(&0) {
        bail!("the volume holds the name {:?}, which is refused", String::from_utf8_lossy(name));
    }
    Ok(OsStr::from_bytes(name))
}

impl Folder {
    /// Opens the folder that the user named; the path may lead through links.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(File::from(rustix::fs::open(path, flags, Mode::empty())?)))
    }

    /// Makes a folder, for now only for its owner, or enters an existing one, but not through a
    /// link.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        match mkdirat(&self.0, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&self.0, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Self(File::from(fd))),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let what = "there already, and not a directory";
                Err(io::Error::new(ErrorKind::AlreadyExists, what))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Checks that the name is free, or names something that may be replaced.
    pub fn check_free(&self, name: &OsStr, force: bool) -> io::Result<()> {
        let exists = |what| Err(io::Error::new(ErrorKind::AlreadyExists, what));
        match statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                exists("there already, and a directory")
            }
            Ok(_) if force => Ok(()),
            Ok(_) => exists("there already; --force replaces it"),
        }
    }

    /// A new file that only its owner may read.
    pub fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(openat(&self.0, name, flags | OFlags::CLOEXEC, mode)?))
    }

    /// Makes a symbolic link with its owner and time.
    pub fn symlink(&self, name: &OsStr, target: &[u8], attr: &Attr) -> io::Result<()> {
        symlinkat(OsStr::from_bytes(target), &self.0, name)?;
        if is_root() {
            let (uid, gid) = owner(attr);
            rustix::fs::chownat(&self.0, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        // Not every file system keeps the time of a link.
        let _ = utimensat(&self.0, name, &times(attr.mtime), AtFlags::SYMLINK_NOFOLLOW);
        Ok(())
    }

    /// Adds a name to a file below `root`.
    pub fn link(&self, root: &Self, path: &Path, name: &OsStr) -> io::Result<()> {
        Ok(linkat(&root.0, path, &self.0, name, AtFlags::empty())?)
    }

    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.0, from, &self.0, to)?)
    }

    pub fn remove(&self, name: &OsStr) {
        // It may be a temporary file that was already moved to its place.
        let _ = unlinkat(&self.0, name, AtFlags::empty());
    }

    /// Sets the folder's attributes, after its content is complete.
    pub fn set_attributes(&self, attr: &Attr) -> io::Result<()> {
        set_attributes(&self.0, attr)
    }
}

/// Sets owner (only as root), mode and time, in an order in which none undoes another.
pub fn set_attributes(file: &File, attr: &Attr) -> io::Result<()> {
    let mut mode = attr.mode & 0o7777;
    if is_root() {
        let (uid, gid) = owner(attr);
        fchown(file, uid, gid)?;
    } else if attr.uid != rustix::process::geteuid().as_raw() {
        // A stranger's set-user-id program must not become one of ours.
        mode &= 0o1777;
    }
    fchmod(file, Mode::from_raw_mode(mode as rustix::fs::RawMode))?;
    Ok(futimens(file, &times(attr.mtime))?)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn owner(attr: &Attr) -> (Option<Uid>, Option<Gid>) {
    // All ones mean "leave it" to the system and are nobody's number.
    let known = |id: u32| (id != u32::MAX).then_some(id);
    (known(attr.uid).map(Uid::from_raw), known(attr.gid).map(Gid::from_raw))
}

fn times(mtime: Timestamp) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() },
    }
}

/// Writes a piece except its pages of zeros, which stay holes.
pub fn write_sparse(file: &File, at: u64, piece: &[u8]) -> io::Result<()> {
    const PAGE: usize = 4096;
    let mut begin = None;
    for (n, page) in piece.chunks(PAGE).enumerate() {
        let zero = page.iter().all(|&byte| byte == 0);
        match (zero, begin) {
            (false, None) => begin = Some(n * PAGE),
            (true, Some(from)) => {
                file.write_all_at(&piece[from..n * PAGE], at + from as u64)?;
                begin = None;
            }
            _ => {}
        }
    }
    match begin {
        Some(from) => file.write_all_at(&piece[from..], at + from as u64),
        None => Ok(()),
    }
}

/// Flushes the buffers of a file, to report a full disk.
pub fn settle(file: &mut File, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_become_holes_and_the_rest_arrives() -> Result<()> {
        let mut file = tempfile::tempfile()?;
        let mut content = vec![0u8; 100_000];
        content[5000..9000].fill(7);
        content[99_999] = 1;
        write_sparse(&file, 0, &content)?;
        settle(&mut file, 100_000)?;
        let mut back = vec![9; 100_000];
        file.read_exact_at(&mut back, 0)?;
        assert!(back == content);
        Ok(())
    }

    #[test]
    fn a_link_is_not_entered() -> Result<()> {
        let outside = tempfile::tempdir()?;
        let inside = tempfile::tempdir()?;
        std::os::unix::fs::symlink(outside.path(), inside.path().join("trap"))?;
        let folder = Folder::open(inside.path())?;
        assert!(folder.enter(OsStr::new("trap")).is_err());
        assert!(folder.create(OsStr::new("trap")).is_err());
        assert!(folder.check_free(OsStr::new("trap"), false).is_err());
        assert!(folder.check_free(OsStr::new("trap"), true).is_ok());
        for name in ["", ".", "..", "a/b", "a\0"] {
            assert!(check_name(name.as_bytes()).is_err(), "{name:?}");
        }
        Ok(())
    }
}
