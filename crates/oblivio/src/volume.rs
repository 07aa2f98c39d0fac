//! A volume's files, by their paths.

use crate::error::Result;
use crate::file::File;
use crate::metadata::{DirEntry, Metadata};
use crate::options::{CreateOptions, OpenOptions};
use crate::passphrase::Passphrase;
use crate::session::Session;
use oblivio_app::VolumePath;
use oblivio_app::others::Wanted;
use oblivio_app::walk::{self, in_words_of};
use oblivio_volume::Error as VolumeError;
use oblivio_volume::fs::{Attr, FileKind, FileSystem, Ino, NewNode, RenameMode, SetAttr};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// An open volume that holds files.
///
/// Paths begin with `/` and have no `..`. Symbolic links are followed, but not by
/// [`remove`](Self::remove) and [`rename`](Self::rename); they never lead out of the volume. Any
/// thread may call; calls are served one at a time.
///
/// A change is durable once [`sync`](Self::sync) or [`close`](Self::close) returns. The volume also
/// commits by itself when much waits. After a crash it is as it was at the last commit, but for
/// parts of files overwritten since, which hold old or new bytes.
#[derive(Debug)]
pub struct Volume(Arc<Session<FileSystem>>);

/// How much a volume holds, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// In files, by their lengths.
    pub used: u64,
    /// What new files may still take.
    pub free: u64,
    /// The most that the volume may ever hold.
    pub capacity: u64,
}

impl Volume {
    /// Opens a volume with the default [`OpenOptions`].
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(place: impl AsRef<Path>, passphrase: impl Into<Passphrase>) -> Result<Self> {
        OpenOptions::new().open(place, passphrase)
    }

    /// Makes a volume in a new folder with the default [`CreateOptions`], and opens it.
    ///
    /// # Errors
    /// As for [`CreateOptions::create`].
    pub fn create(place: impl AsRef<Path>, passphrase: impl Into<Passphrase>) -> Result<Self> {
        CreateOptions::new().create(place, passphrase)
    }

    pub(crate) fn over(fs: FileSystem, wanted: Arc<Wanted>) -> Result<Self> {
        fs.set_clock(Box::new(|| now().into()));
        Ok(Self(Arc::new(Session::of(fs).wanted_by(wanted))))
    }

    /// One in which nothing may be changed.
    pub(crate) fn looked_at(fs: FileSystem) -> Self {
        fs.set_clock(Box::new(|| now().into()));
        Self(Arc::new(Session::of(fs).read_only()))
    }

    /// The whole content of a file.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`, and those of a read.
    pub fn read(&self, path: impl AsRef<OsStr>) -> Result<Vec<u8>> {
        let file = self.open_file(path)?;
        file.read_at(0, usize::try_from(file.len()?).unwrap_or(usize::MAX))
    }

    /// Makes `bytes` the whole content of a file, which is created if need be. A crash leaves the
    /// old content or the new one.
    ///
    /// # Errors
    /// `NotFound` for the directory, `IsADirectory`, `Full`, and those of a write.
    pub fn write(&self, path: impl AsRef<OsStr>, bytes: &[u8]) -> Result<()> {
        let path = VolumePath::parse(path)?;
        self.0.change(bytes.len() as u64, |fs| {
            let handle = match existing(fs, &path)? {
                // What is cut off is not written over before the commit.
                Some(attr) => fs
                    .set_attr(attr.ino, SetAttr { size: Some(0), ..SetAttr::default() })
                    .and_then(|_| fs.open_file(attr.ino))
                    .map_err(|error| in_words_of(&path, error))?,
                None => create(fs, &path)?.1,
            };
            let written = fs.write(handle, 0, bytes);
            fs.close(handle)?;
            written
        })
    }

    /// Up to `len` bytes of a file, from `offset` on; fewer at its end.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_at(&self, path: impl AsRef<OsStr>, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.open_file(path)?.read_at(offset, len)
    }

    /// Writes into an existing file, which grows as needed.
    ///
    /// # Errors
    /// As for [`write`](Self::write); `NotFound` for the file too.
    pub fn write_at(&self, path: impl AsRef<OsStr>, offset: u64, bytes: &[u8]) -> Result<()> {
        self.open_file(path)?.write_at(offset, bytes)
    }

    /// Opens a file to read and write parts of it.
    ///
    /// # Errors
    /// `NotFound`, `IsADirectory`.
    pub fn open_file(&self, path: impl AsRef<OsStr>) -> Result<File> {
        let path = VolumePath::parse(path)?;
        let (ino, handle) = self.0.run(|fs| {
            let attr = walk::follow(fs, &path)?;
            let handle = fs.open_file(attr.ino).map_err(|error| in_words_of(&path, error))?;
            Ok((attr.ino, handle))
        })?;
        Ok(File::of(Arc::clone(&self.0), ino, handle))
    }

    /// Makes a new, empty file and opens it.
    ///
    /// # Errors
    /// `Exists`, `NotFound` for the directory, `Full`.
    pub fn create_file(&self, path: impl AsRef<OsStr>) -> Result<File> {
        let path = VolumePath::parse(path)?;
        let (attr, handle) = self.0.change(0, |fs| create(fs, &path))?;
        Ok(File::of(Arc::clone(&self.0), attr.ino, handle))
    }

    /// What is in a directory, by name.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn list(&self, path: impl AsRef<OsStr>) -> Result<Vec<DirEntry>> {
        let path = VolumePath::parse(path)?;
        let entries = self.0.run(|fs| {
            let attr = walk::follow(fs, &path)?;
            walk::entries(fs, attr.ino).map_err(|error| in_words_of(&path, error))
        })?;
        Ok(entries.into_iter().map(|entry| DirEntry::of(&path, entry)).collect())
    }

    /// What is known of a file or directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn metadata(&self, path: impl AsRef<OsStr>) -> Result<Metadata> {
        let path = VolumePath::parse(path)?;
        self.0.run(|fs| walk::follow(fs, &path)).map(Metadata::of)
    }

    /// Whether something is at a path.
    ///
    /// # Errors
    /// Those of a read.
    pub fn exists(&self, path: impl AsRef<OsStr>) -> Result<bool> {
        let path = VolumePath::parse(path)?;
        self.0.run(|fs| existing(fs, &path)).map(|found| found.is_some())
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// `Exists`, `NotFound` for the directory above, `Full`.
    pub fn create_dir(&self, path: impl AsRef<OsStr>) -> Result<()> {
        let path = VolumePath::parse(path)?;
        self.0.change(0, |fs| create_dir(fs, &path))
    }

    /// Makes a directory and those above it, as far as they do not exist.
    ///
    /// # Errors
    /// `NotADirectory`, `Full`.
    pub fn create_dir_all(&self, path: impl AsRef<OsStr>) -> Result<()> {
        let path = VolumePath::parse(path)?;
        self.0.change(0, |fs| {
            let mut here = VolumePath::root();
            for name in path.names() {
                here = here.join(name);
                match existing(fs, &here)? {
                    Some(attr) if attr.kind == FileKind::Directory => {}
                    Some(_) => return Err(VolumeError::NotADirectory(here.to_string())),
                    None => create_dir(fs, &here)?,
                }
            }
            Ok(())
        })
    }

    /// Removes a file, a link, or an empty directory.
    ///
    /// # Errors
    /// `NotFound`, `NotEmpty`; `Invalid` for the root.
    pub fn remove(&self, path: impl AsRef<OsStr>) -> Result<()> {
        let path = VolumePath::parse(path)?;
        self.0.change(0, |fs| {
            let (parent, name) = place_of(fs, &path)?;
            let removed = match fs.lookup(parent, name) {
                Ok(attr) if attr.kind == FileKind::Directory => fs.rmdir(parent, name),
                Ok(_) => fs.unlink(parent, name),
                Err(error) => Err(error),
            };
            removed.map_err(|error| in_words_of(&path, error))
        })
    }

    /// Moves a file or directory to another path, over a file that is there.
    ///
    /// # Errors
    /// `NotFound`, `NotEmpty`, `IsADirectory`, `NotADirectory`; `Invalid` for the root, or a
    /// directory moved into itself.
    pub fn rename(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<()> {
        let (from, to) = (VolumePath::parse(from)?, VolumePath::parse(to)?);
        self.0.change(0, |fs| {
            let (parent, name) = place_of(fs, &from)?;
            fs.lookup(parent, name).map_err(|error| in_words_of(&from, error))?;
            let (into, new) = place_of(fs, &to)?;
            let moved = fs.rename(parent, name, into, new, RenameMode::Replace);
            moved.map_err(|error| in_words_of(&to, error))
        })
    }

    /// How much the volume holds. Costs nothing.
    ///
    /// # Errors
    /// `Closed`.
    pub fn usage(&self) -> Result<Usage> {
        let usage = self.0.run(FileSystem::usage)?;
        let bytes = |blocks: u64| blocks.saturating_mul(usage.block_bytes);
        Ok(Usage {
            used: usage.logical_bytes,
            free: bytes(usage.free_blocks),
            capacity: bytes(usage.capacity_blocks),
        })
    }

    /// Makes everything so far durable.
    ///
    /// # Errors
    /// Those of the store. It may be called again.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }

    /// Does a little of what is due while nothing else is done. For a volume in an online store,
    /// call it every few seconds: it answers other computers. Gives the name of one that wants the
    /// volume: then [`close`](Self::close) it if you can. Without that, a computer that waits takes
    /// the volume over after 90 seconds without any access.
    ///
    /// # Errors
    /// Those of an access; `Overtaken`.
    pub fn idle(&self) -> Result<Option<String>> {
        self.0.idle()
    }

    /// Makes everything durable and lets go of the volume. Open [`File`]s fail from now on.
    ///
    /// Dropping a volume and its files does the same, and hides the error.
    ///
    /// # Errors
    /// Those of the store: what was changed since the last [`sync`](Self::sync) may then be lost.
    pub fn close(self) -> Result<()> {
        self.0.close()
    }
}

#[expect(clippy::disallowed_methods, reason = "files carry the time of the computer's clock")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn node(mode: u32) -> NewNode {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    NewNode { mode, uid, gid, mtime: now().into() }
}

/// What is at a path, links followed.
fn existing(fs: &FileSystem, path: &VolumePath) -> oblivio_volume::Result<Option<Attr>> {
    match walk::follow(fs, path) {
        Ok(attr) => Ok(Some(attr)),
        Err(VolumeError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The directory above a path, and the name in it.
fn place_of<'p>(fs: &FileSystem, path: &'p VolumePath) -> oblivio_volume::Result<(Ino, &'p [u8])> {
    let Some(name) = path.name() else {
        return Err(VolumeError::Invalid("the root has no other place, and stays".into()));
    };
    Ok((walk::follow(fs, &path.parent())?.ino, name))
}

fn create(
    fs: &FileSystem,
    path: &VolumePath,
) -> oblivio_volume::Result<(Attr, oblivio_volume::fs::Handle)> {
    let (parent, name) = place_of(fs, path)?;
    fs.create(parent, name, node(0o644)).map_err(|error| in_words_of(path, error))
}

fn create_dir(fs: &FileSystem, path: &VolumePath) -> oblivio_volume::Result<()> {
    let Some(name) = path.name() else { return Err(VolumeError::Exists(path.to_string())) };
    let parent = walk::follow(fs, &path.parent())?.ino;
    let made = fs.mkdir(parent, name, node(0o755));
    made.map(drop).map_err(|error| in_words_of(path, error))
}
