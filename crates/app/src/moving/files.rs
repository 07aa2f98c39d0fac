//! The files of a volume, copied into a new one: on another engine, or in blocks of another size.
//!
//! A file at the root of the new volume says that it is unfinished, and whose files it gets. Run
//! again, the copy compares each file's length and content, keeps what is the same, and removes
//! what the old volume has no more.

use super::{Hear, Moved};
use crate::walk::entries;
use oblivio_crypto::VolumeId;
use oblivio_volume::fs::{
    Attr, DirEntry, FileKind, FileSystem, Handle, Ino, NewNode, ROOT_INO, SeekWhence, SetAttr,
    XattrMode,
};
use oblivio_volume::{CHANGE_BYTES, Commits, Error, LostBytes, Result};
use std::collections::HashMap;

/// The file that says that a volume is unfinished.
pub const MARK: &[u8] = b".oblivio-unfinished-migration";
/// Bytes that are read and written together.
const PIECE: usize = 1 << 20;
/// Bytes after which what was written is made durable.
const COMMIT_BYTES: u64 = 32 << 20;

/// What was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Files, links and special files that were copied.
    pub copied: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// Files that were there already.
    pub kept: u64,
    /// Directories.
    pub directories: u64,
    /// Files and directories of the old volume of which something is lost to damage, by their
    /// paths. The new one has none of those files, and of those directories what could be read.
    pub lost: Vec<LostBytes>,
}

/// The volume whose files an unfinished one gets, as text; `None` of a finished one.
///
/// # Errors
/// Those of the volume.
pub fn unfinished(fs: &FileSystem) -> Result<Option<Vec<u8>>> {
    let mark = match fs.lookup(ROOT_INO, MARK) {
        Err(Error::NotFound(_)) => return Ok(None),
        mark => mark?,
    };
    let handle = fs.open_file(mark.ino)?;
    let text = fs.read(handle, 0, 64);
    fs.close(handle)?;
    Ok(Some(text?))
}

/// A copy of files at work.
pub struct FilesCopy<'a> {
    from: &'a FileSystem,
    to: &'a FileSystem,
    /// Files with several names: their copies.
    links: HashMap<Ino, Ino>,
    /// Directories, whose times are set last.
    directories: Vec<(Ino, Ino)>,
    commits: Commits,
    counts: FileCounts,
    moved: Moved,
    hear: Hear<'a>,
}

impl<'a> FilesCopy<'a> {
    /// Begins, or goes on with, a copy of the files of a volume.
    ///
    /// # Errors
    /// `Exists` if something else is in the new volume; `Invalid` if the old one is unfinished.
    pub fn begin(
        from: &'a FileSystem,
        volume: VolumeId,
        to: &'a FileSystem,
        hear: Hear<'a>,
    ) -> Result<Self> {
        if unfinished(from)?.is_some() {
            let why = "the volume is itself the unfinished copy of another one";
            return Err(Error::Invalid(why.into()));
        }
        let volume = volume.to_string().into_bytes();
        match unfinished(to)? {
            Some(found) if found == volume => {}
            // Nothing was committed after the empty mark but, at most, its content.
            Some(found) if found.is_empty() => write_mark(to, &volume)?,
            Some(_) => return Err(Error::Exists("the unfinished copy of another volume".into())),
            None if entries(to, ROOT_INO)?.is_empty() => write_mark(to, &volume)?,
            None => return Err(Error::Exists("a volume with files".into())),
        }
        let total = Some(from.usage()?.logical_bytes);
        Ok(Self {
            from,
            to,
            links: HashMap::new(),
            directories: Vec::new(),
            commits: Commits::after_bytes(COMMIT_BYTES),
            counts: FileCounts::default(),
            moved: Moved { bytes: 0, total },
            hear,
        })
    }

    /// Makes what was written durable after this many bytes: an interruption costs no more.
    #[must_use]
    pub fn committing_every(self, commit_bytes: u64) -> Self {
        Self { commits: Commits::after_bytes(commit_bytes), ..self }
    }

    /// Copies everything, and ends with a volume that is finished.
    ///
    /// # Errors
    /// Those of both volumes.
    pub fn run(mut self) -> Result<FileCounts> {
        let mut todo = vec![(ROOT_INO, ROOT_INO, String::new())];
        while let Some((from, to, path)) = todo.pop() {
            self.directories.push((from, to));
            self.counts.directories += 1;
            let gone = self.remove_what_is_gone(from, to);
            self.noted(gone, &path)?;
            let listed = entries(self.from, from);
            for entry in self.noted(listed, &path)?.unwrap_or_default() {
                let path = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
                let moved = self.entry(&entry, to);
                if let Some(Some((from, to))) = self.noted(moved, &path)? {
                    todo.push((from, to, path));
                }
                self.commit_if_due()?;
            }
        }
        for (from, to) in std::mem::take(&mut self.directories).into_iter().rev() {
            let done = self.from.attr(from).and_then(|attr| self.attributes(&attr, to));
            self.noted(done, "/")?;
        }
        self.to.commit()?;
        // The last act: now it is whole.
        self.to.unlink(ROOT_INO, MARK)?;
        let root = self.from.attr(ROOT_INO)?;
        self.to.set_attr(ROOT_INO, times(&root))?;
        self.to.commit()?;
        Ok(self.counts)
    }

    /// Copies what has a name; a directory's content comes later.
    fn entry(&mut self, entry: &DirEntry, to: Ino) -> Result<Option<(Ino, Ino)>> {
        let attr = self.from.attr(entry.ino)?;
        if attr.kind == FileKind::Directory {
            return Ok(Some((attr.ino, self.directory(&attr, to, &entry.name)?)));
        }
        let copied = self.other(&attr, to, &entry.name);
        if matches!(copied, Err(Error::Lost(_)))
            && let Some(half) = there(self.to, to, &entry.name)?
        {
            self.remove(to, &entry.name, half.kind, half.ino)?;
        }
        copied.map(|()| None)
    }

    /// Goes on where something of the old volume is lost.
    fn noted<T>(&mut self, result: Result<T>, path: &str) -> Result<Option<T>> {
        match result {
            Err(Error::Lost(lost)) => {
                self.counts.lost.push(LostBytes { what: path.to_owned(), ..lost });
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn remove_what_is_gone(&mut self, from: Ino, to: Ino) -> Result<()> {
        for entry in entries(self.to, to)? {
            let is_mark = to == ROOT_INO && entry.name == MARK;
            if is_mark || there(self.from, from, &entry.name)?.is_some() {
                continue;
            }
            self.remove(to, &entry.name, entry.kind, entry.ino)?;
        }
        Ok(())
    }

    fn remove(&mut self, parent: Ino, name: &[u8], kind: FileKind, ino: Ino) -> Result<()> {
        if kind != FileKind::Directory {
            return self.to.unlink(parent, name);
        }
        for entry in entries(self.to, ino)? {
            self.remove(ino, &entry.name, entry.kind, entry.ino)?;
        }
        self.to.rmdir(parent, name)
    }

    fn directory(&mut self, attr: &Attr, parent: Ino, name: &[u8]) -> Result<Ino> {
        match there(self.to, parent, name)? {
            Some(found) if found.kind == FileKind::Directory => return Ok(found.ino),
            Some(found) => self.remove(parent, name, found.kind, found.ino)?,
            None => {}
        }
        self.commits.changed(CHANGE_BYTES);
        Ok(self.to.mkdir(parent, name, attr.into())?.ino)
    }

    fn other(&mut self, attr: &Attr, parent: Ino, name: &[u8]) -> Result<()> {
        let found = there(self.to, parent, name)?;
        if let Some(&copy) = self.links.get(&attr.ino) {
            if found.as_ref().is_some_and(|found| found.ino == copy) {
                return Ok(());
            }
            self.make_room(parent, name, found.as_ref())?;
            self.to.link(copy, parent, name)?;
            self.commits.changed(CHANGE_BYTES);
            return Ok(());
        }
        let ino = match found {
            Some(found) if self.is_same(attr, &found)? => {
                self.counts.kept += 1;
                found.ino
            }
            found => {
                self.make_room(parent, name, found.as_ref())?;
                self.counts.copied += 1;
                self.make(attr, parent, name)?
            }
        };
        self.attributes(attr, ino)?;
        if attr.nlink > 1 {
            self.links.insert(attr.ino, ino);
        }
        self.moved.bytes += attr.size;
        (self.hear)(self.moved);
        Ok(())
    }

    fn make_room(&mut self, parent: Ino, name: &[u8], found: Option<&Attr>) -> Result<()> {
        match found {
            Some(found) => self.remove(parent, name, found.kind, found.ino),
            None => Ok(()),
        }
    }

    /// Whether a file has the same content. One that has other names may be the copy of another.
    fn is_same(&self, attr: &Attr, found: &Attr) -> Result<bool> {
        let more_names = found.nlink > attr.nlink || self.is_taken(found.ino);
        if attr.kind != found.kind || attr.size != found.size || more_names {
            return Ok(false);
        }
        match attr.kind {
            FileKind::File => self.has_same_bytes(attr, found),
            FileKind::Symlink => {
                Ok(self.from.read_link(attr.ino)? == self.to.read_link(found.ino)?)
            }
            _ => Ok(attr.rdev == found.rdev),
        }
    }

    fn is_taken(&self, copy: Ino) -> bool {
        self.links.values().any(|&ino| ino == copy)
    }

    fn has_same_bytes(&self, attr: &Attr, found: &Attr) -> Result<bool> {
        let (one, other) = (self.from.open_file(attr.ino)?, self.to.open_file(found.ino)?);
        let mut same = Ok(true);
        let mut at = 0;
        while at < attr.size && matches!(same, Ok(true)) {
            same = self.from.read(one, at, PIECE).and_then(|bytes| {
                let alike = bytes == self.to.read(other, at, PIECE)?;
                at += PIECE as u64;
                Ok(alike)
            });
        }
        self.from.close(one)?;
        self.to.close(other)?;
        same
    }

    fn make(&mut self, attr: &Attr, parent: Ino, name: &[u8]) -> Result<Ino> {
        self.commits.changed(CHANGE_BYTES);
        match attr.kind {
            FileKind::File | FileKind::Directory => {}
            FileKind::Symlink => {
                let target = self.from.read_link(attr.ino)?;
                return Ok(self.to.symlink(parent, name, &target, attr.into())?.ino);
            }
            special => {
                return Ok(self.to.mknod(parent, name, special, attr.rdev, attr.into())?.ino);
            }
        }
        let (made, into) = self.to.create(parent, name, attr.into())?;
        let from = self.from.open_file(attr.ino)?;
        let copied = self.content(attr, from, into);
        self.from.close(from)?;
        self.to.close(into)?;
        copied?;
        Ok(made.ino)
    }

    /// Copies what is no hole. It reads all, so that an error names all that is lost.
    fn content(&mut self, attr: &Attr, from: Handle, into: Handle) -> Result<()> {
        let (mut at, mut lost) = (0, Vec::new());
        while let Some(data) = self.from.seek(from, at, SeekWhence::Data)? {
            let end = self.from.seek(from, data, SeekWhence::Hole)?.unwrap_or(attr.size);
            at = data;
            while at < end {
                let len = (end - at).min(PIECE as u64);
                let read = self.from.read_around(from, at, len as usize)?;
                lost.extend(read.lost);
                self.to.write(into, at, &read.bytes)?;
                at += len;
                self.commits.wrote(len);
                self.counts.bytes += len;
                // What of a file is there when the copy is interrupted is compared, and made anew.
                self.commit_if_due()?;
            }
        }
        if lost.is_empty() { Ok(()) } else { Err(LostBytes::of_file(lost).into()) }
    }

    /// Everything of an inode but its content.
    fn attributes(&mut self, attr: &Attr, ino: Ino) -> Result<()> {
        for name in self.to.list_xattrs(ino)? {
            if self.from.get_xattr(attr.ino, &name)?.is_none() {
                self.to.remove_xattr(ino, &name)?;
            }
        }
        for name in self.from.list_xattrs(attr.ino)? {
            if let Some(value) = self.from.get_xattr(attr.ino, &name)? {
                self.to.set_xattr(ino, &name, &value, XattrMode::Set)?;
            }
        }
        let (mode, uid, gid) = (Some(attr.mode), Some(attr.uid), Some(attr.gid));
        let size = (attr.kind == FileKind::File).then_some(attr.size);
        self.to.set_attr(ino, SetAttr { mode, uid, gid, size, ..times(attr) })?;
        self.commits.changed(CHANGE_BYTES);
        Ok(())
    }

    fn commit_if_due(&mut self) -> Result<()> {
        if self.commits.is_full() {
            self.commits.committed();
            self.to.commit()?;
        }
        Ok(())
    }
}

fn write_mark(fs: &FileSystem, volume: &[u8]) -> Result<()> {
    let handle = match fs.lookup(ROOT_INO, MARK) {
        Ok(mark) => fs.open_file(mark.ino)?,
        Err(_) => fs.create(ROOT_INO, MARK, NewNode { mode: 0o600, ..NewNode::default() })?.1,
    };
    let written = fs.write(handle, 0, volume);
    fs.close(handle)?;
    written?;
    fs.commit()
}

fn there(fs: &FileSystem, parent: Ino, name: &[u8]) -> Result<Option<Attr>> {
    match fs.lookup(parent, name) {
        Ok(attr) => Ok(Some(attr)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn times(attr: &Attr) -> SetAttr {
    SetAttr { atime: Some(attr.atime), mtime: Some(attr.mtime), ..SetAttr::default() }
}
