//! A volume's files, by their paths.

use crate::entries::Entries;
use crate::error::{Error, Result};
use crate::file::File;
use crate::files::Files;
use crate::metadata::{Metadata, Usage};
use crate::options::{CreateOptions, OpenOptions};
use crate::passphrase::Passphrase;
use crate::session::Session;
use oblivio_app::VolumePath;
use oblivio_app::others::Wanted;
use oblivio_app::walk::{self, OpenId, PAGE, in_words_of};
use oblivio_volume::fs::{Attr, FileKind, FileSystem, Ino, NewNode, RenameMode, SetAttr};
use oblivio_volume::{Error as VolumeError, LaneStatus, LaneSync};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes of a file that are copied together.
const PIECE: usize = 1 << 20;

/// An open volume that holds files.
///
/// Paths begin with `/` and have no `..`. Symbolic links are followed, but not by
/// [`remove`](Self::remove), [`remove_dir_all`](Self::remove_dir_all) and [`rename`](Self::rename);
/// they never lead out of the volume. Any thread may call; calls are served one at a time.
///
/// A change is durable once [`sync`](Self::sync) or [`close`](Self::close) returns. The volume also
/// commits by itself when much waits. After a crash it is as it was at the last commit, but for
/// parts of files overwritten since, which hold old or new bytes.
///
/// In a volume that computers share, others see each change of a name a round trip later; of two
/// that make the same name one gets [`Error::Exists`]. What is written to a file shows to others
/// after a sync, or once the [`File`] is dropped.
#[derive(Debug)]
pub struct Volume(Arc<Session<Files>>, Vec<Option<Volume>>);

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

    pub(crate) fn over(
        fs: FileSystem,
        lanes: Vec<Option<Self>>,
        wanted: Arc<Wanted>,
    ) -> Result<Self> {
        fs.set_clock(Box::new(|| now().into()));
        Ok(Self(Arc::new(Session::of(Box::new(fs) as Files).wanted_by(wanted)), lanes))
    }

    /// The files of a lane.
    pub(crate) fn lane_over(fs: FileSystem, sync: LaneSync) -> Self {
        fs.set_clock(Box::new(|| now().into()));
        Self(Arc::new(Session::of(Box::new(fs) as Files).carried_by(sync)), Vec::new())
    }

    /// The files of a lane, counted from 1, if the passphrase opened it: a volume of its own,
    /// beside this one. Nobody without a passphrase of the lane can tell that it is there.
    ///
    /// What is written into a lane rides on what is written into this volume, and causes no write
    /// by itself. So its [`sync`](Self::sync) returns once this volume has been written enough, by
    /// another thread; after a minute it fails with [`Error::Full`], and what waits is kept.
    pub fn lane(&self, number: usize) -> Option<&Self> {
        self.1.get(number.checked_sub(1)?)?.as_ref()
    }

    /// What is to be said of this lane; nothing of a volume that is none.
    pub fn lane_status(&self) -> Option<LaneStatus> {
        self.0.lane_status()
    }

    /// Over files of which more is known than here.
    #[cfg(feature = "share")]
    pub(crate) fn shared(files: Files) -> Self {
        Self(Arc::new(Session::of(files)), Vec::new())
    }

    /// One in which nothing may be changed.
    pub(crate) fn looked_at(fs: FileSystem) -> Self {
        fs.set_clock(Box::new(|| now().into()));
        Self(Arc::new(Session::of(Box::new(fs) as Files).read_only()), Vec::new())
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
    /// old content or the new one. In a shared volume others, and a crash, may see it empty too:
    /// there, write another file and [`rename`](Self::rename) it.
    ///
    /// # Errors
    /// `NotFound` for the directory, `IsADirectory`, `Full`, and those of a write.
    pub fn write(&self, path: impl AsRef<OsStr>, bytes: &[u8]) -> Result<()> {
        let path = VolumePath::parse(path)?;
        self.0.change(bytes.len() as u64, |fs| {
            let file = emptied(fs, &path)?;
            let written = fs.write(file, 0, bytes);
            fs.close(file)?;
            written
        })
    }

    /// Adds `bytes` at the end of a file, which is created if need be.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    pub fn append(&self, path: impl AsRef<OsStr>, bytes: &[u8]) -> Result<()> {
        let path = VolumePath::parse(path)?;
        self.0.change(bytes.len() as u64, |fs| {
            let file = match existing(fs, &path)? {
                Some(attr) => opened(fs, &path, attr.ino)?,
                None => created(fs, &path)?,
            };
            let written = fs.append(file, bytes);
            fs.close(file)?;
            written
        })
    }

    /// Copies the content of a file and its permission bits to another path, over a file that is
    /// there; says how many bytes that were. A crash may leave the beginning of it.
    ///
    /// # Errors
    /// Those of a [`read`](Self::read) and a [`write`](Self::write); `Invalid` if both paths are of
    /// one file.
    pub fn copy(&self, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) -> Result<u64> {
        let (source, to) = (self.open_file(from)?, VolumePath::parse(to)?);
        let mode = Some(source.metadata()?.mode());
        let file = self.0.change(0, |fs| match existing(fs, &to)? {
            Some(attr) if attr.ino == source.ino() => {
                Err(VolumeError::Invalid(format!("{to}: a file is no copy of itself")))
            }
            _ => emptied(fs, &to),
        })?;
        let (target, mut at) = (File::of(Arc::clone(&self.0), file), 0);
        loop {
            let piece = source.read_at(at, PIECE)?;
            if piece.is_empty() {
                break;
            }
            target.write_at(at, &piece)?;
            at += piece.len() as u64;
        }
        let set = SetAttr { mode, ..SetAttr::default() };
        self.0.change(0, |fs| fs.set_attr(file.ino, set))?;
        Ok(at)
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
        let file = self.0.run(|fs| opened(fs, &path, walk::follow(&**fs, &path)?.ino))?;
        Ok(File::of(Arc::clone(&self.0), file))
    }

    /// Makes a new, empty file and opens it.
    ///
    /// # Errors
    /// `Exists`, `NotFound` for the directory, `Full`.
    pub fn create_file(&self, path: impl AsRef<OsStr>) -> Result<File> {
        let path = VolumePath::parse(path)?;
        let file = self.0.change(0, |fs| created(fs, &path))?;
        Ok(File::of(Arc::clone(&self.0), file))
    }

    /// What is in a directory, by name. Large directories are read as the entries are asked for.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn list(&self, path: impl AsRef<OsStr>) -> Result<Entries> {
        Entries::of(Arc::clone(&self.0), VolumePath::parse(path)?)
    }

    /// What is known of a file or directory.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`.
    pub fn metadata(&self, path: impl AsRef<OsStr>) -> Result<Metadata> {
        let path = VolumePath::parse(path)?;
        self.0.run(|fs| walk::follow(&**fs, &path)).map(Metadata::of)
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

    /// Removes a directory and everything in it. Links in it are removed, not followed. A crash, or
    /// an error, may leave a part of it.
    ///
    /// # Errors
    /// `NotFound`, `NotADirectory`; `Invalid` for the root.
    pub fn remove_dir_all(&self, path: impl AsRef<OsStr>) -> Result<()> {
        let path = VolumePath::parse(path)?;
        let top = self.0.run(|fs| {
            let (parent, name) = place_of(fs, &path)?;
            let found = fs.lookup(parent, name);
            match found.map_err(|error| in_words_of(&path, error))? {
                attr if attr.kind == FileKind::Directory => Ok((parent, name.to_vec(), attr.ino)),
                _ => Err(VolumeError::NotADirectory(path.to_string())),
            }
        })?;
        // The last one is emptied first: what is above it is looked at again when it is gone.
        let mut left = vec![top];
        while let Some((parent, name, ino)) = left.last().cloned() {
            let page = self.0.run(|fs| fs.read_dir(ino, None, PAGE))?;
            if page.is_empty() {
                self.gone(|fs| fs.rmdir(parent, &name))?;
                left.pop();
            }
            for entry in page {
                match entry.kind {
                    FileKind::Directory => left.push((ino, entry.name, entry.ino)),
                    _ => self.gone(|fs| fs.unlink(ino, &entry.name))?,
                }
            }
        }
        Ok(())
    }

    /// Removes something that others may have removed already.
    fn gone(&self, remove: impl FnOnce(&Files) -> oblivio_volume::Result<()>) -> Result<()> {
        match self.0.change(0, remove) {
            Err(Error::NotFound(_)) => Ok(()),
            removed => removed,
        }
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

    /// How much the volume holds. It costs nothing, or one ask in a shared volume.
    ///
    /// # Errors
    /// `Closed`, `Offline`.
    pub fn usage(&self) -> Result<Usage> {
        self.0.run(|fs| fs.usage())
    }

    /// Makes everything so far durable. What was written into its lanes goes along, as far as there
    /// is room: [`lane_status`](Self::lane_status) says what waits.
    ///
    /// # Errors
    /// Those of the store. It may be called again. In a lane `Full` after a minute.
    pub fn sync(&self) -> Result<()> {
        self.begin_sync()?()
    }

    /// The first step of [`sync`](Self::sync). What it gives waits for the rest, and borrows
    /// nothing: one thread can begin the sync of a lane, write to the volume that carries it, and
    /// then wait.
    ///
    /// # Errors
    /// Those of [`sync`](Self::sync); `Full` of what it gives.
    pub fn begin_sync(&self) -> Result<impl FnOnce() -> Result<()> + Send + use<>> {
        self.1.iter().flatten().try_for_each(|lane| lane.0.commit())?;
        self.0.begin_sync()
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
    /// `Full` if a lane had more to write than this volume carried: that is lost. Sync the lane
    /// before.
    pub fn close(self) -> Result<()> {
        self.0.close_with(self.1.iter().flatten().map(|lane| &*lane.0))
    }
}

/// The lanes end before their volume.
impl Drop for Volume {
    fn drop(&mut self) {
        self.1.clear();
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
fn existing(fs: &Files, path: &VolumePath) -> oblivio_volume::Result<Option<Attr>> {
    match walk::follow(&**fs, path) {
        Ok(attr) => Ok(Some(attr)),
        Err(VolumeError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The directory above a path, and the name in it.
fn place_of<'p>(fs: &Files, path: &'p VolumePath) -> oblivio_volume::Result<(Ino, &'p [u8])> {
    let Some(name) = path.name() else {
        return Err(VolumeError::Invalid("the root has no other place, and stays".into()));
    };
    Ok((walk::follow(&**fs, &path.parent())?.ino, name))
}

fn opened(fs: &Files, path: &VolumePath, ino: Ino) -> oblivio_volume::Result<OpenId> {
    fs.open(ino).map_err(|error| in_words_of(path, error))
}

fn created(fs: &Files, path: &VolumePath) -> oblivio_volume::Result<OpenId> {
    let (parent, name) = place_of(fs, path)?;
    let made = fs.create(parent, name, node(0o644));
    made.map(|(_, file)| file).map_err(|error| in_words_of(path, error))
}

/// The open file at a path, new or without its content. What is cut off is not written over before
/// the commit.
fn emptied(fs: &Files, path: &VolumePath) -> oblivio_volume::Result<OpenId> {
    let Some(Attr { ino, .. }) = existing(fs, path)? else { return created(fs, path) };
    let cut = fs.set_attr(ino, SetAttr { size: Some(0), ..SetAttr::default() });
    cut.map_err(|error| in_words_of(path, error))?;
    opened(fs, path, ino)
}

fn create_dir(fs: &Files, path: &VolumePath) -> oblivio_volume::Result<()> {
    let Some(name) = path.name() else { return Err(VolumeError::Exists(path.to_string())) };
    let parent = walk::follow(&**fs, &path.parent())?.ino;
    let made = fs.mkdir(parent, name, node(0o755));
    made.map(drop).map_err(|error| in_words_of(path, error))
}
