//! The walk over the local files, and what it makes in the volume.

use super::source;
use super::summary::Summary;
use crate::committer::{COMMIT_BYTES, Committer};
use crate::exit::{Code, Failures, fault};
use crate::files::Changed;
use crate::human;
use crate::inside::{TargetName, in_words_of};
use crate::open::now;
use crate::progress::Progress;
use crate::staging::Staging;
use anyhow::{Context, Result};
use oblivio_app::walk::{OpenFile, WriteFiles};
use oblivio_serve::watch::{OrdinaryEvent, Publisher};
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, FileKind, Ino, NewNode, SetAttr};
use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Free bytes below which a new file is staged.
const SCARCE: u64 = 8 << 20;

/// How stored files are announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announce {
    Nothing,
    Lines,
    Json,
}

/// One `put` at work.
pub struct PutRun<'s> {
    fs: &'s dyn WriteFiles,
    publisher: &'s Publisher,
    pub recursive: bool,
    pub announce: Announce,
    committer: Committer<'s>,
    staging: Staging<'s>,
    progress: Progress,
    /// The volume's own folder (device and inode), which must not be stored in itself.
    myself: Option<(u64, u64)>,
    /// Files with several names, by device and inode: the second name becomes a link.
    links: HashMap<(u64, u64), Ino>,
    /// Directories whose attributes are set last, when nothing changes their times any more.
    directories: Vec<(Ino, SetAttr)>,
    /// Stored, but not yet safe.
    waiting: Vec<(TargetName, u64)>,
    failures: Failures,
    summary: Summary,
}

impl<'s> PutRun<'s> {
    pub fn new((fs, publisher): Changed<'s>, volume: &Path, progress: Progress) -> Result<Self> {
        Ok(Self {
            fs,
            publisher,
            recursive: true,
            announce: Announce::Nothing,
            committer: Committer::new(fs),
            staging: Staging::new(fs)?,
            progress,
            myself: volume.metadata().ok().map(|found| (found.dev(), found.ino())),
            links: HashMap::new(),
            directories: Vec::new(),
            waiting: Vec::new(),
            failures: Failures::default(),
            summary: Summary::default(),
        })
    }

    /// Stores a path from the command line. As with cp, a symbolic link is followed, except in a
    /// recursive copy. A pipe or device is read to its end, also behind a link: a shell names
    /// another program's output so.
    pub fn named(&mut self, local: &Path, place: &TargetName) -> Result<()> {
        let shown = || local.display().to_string();
        let found = local.symlink_metadata().with_context(shown)?;
        let is_link = found.is_symlink();
        let followed = local.metadata();
        if let Ok(followed) = &followed
            && is_endless(followed)
            && (is_link || !self.recursive)
        {
            // Opening waits for the writer; a check for content before it would find none.
            let mut from = std::fs::File::open(local).with_context(shown)?;
            self.stream(&mut from, place.clone()).with_context(shown)?;
            self.committer.changed();
            return self.commit_if_due();
        }
        let found = if self.recursive { found } else { followed.with_context(shown)? };
        self.entry(local, &found, place)
    }

    fn entry(&mut self, local: &Path, found: &Metadata, place: &TargetName) -> Result<()> {
        let kind = found.file_type();
        let done = if kind.is_dir() {
            return self.directory(local, found, place);
        } else if kind.is_file() {
            self.file(local, place)
        } else if kind.is_symlink() {
            self.symlink(local, found, place)
        } else {
            let what = match () {
                () if kind.is_fifo() => "a pipe",
                () if kind.is_socket() => "a socket",
                () => "a device",
            };
            return self.skip(local, what);
        };
        done.with_context(|| local.display().to_string())?;
        self.commit_if_due()
    }

    /// Counts something that is not stored, for callers who look only at the exit code.
    fn skip(&mut self, local: &Path, what: &str) -> Result<()> {
        self.summary.skipped += 1;
        let hint = "Everything else was stored.";
        self.failed(fault(Code::Partial, format!("{}: {what}, not stored", local.display()), hint))
    }

    fn directory(&mut self, local: &Path, found: &Metadata, place: &TargetName) -> Result<()> {
        if self.myself == Some((found.dev(), found.ino())) {
            return self.skip(local, "the volume itself");
        }
        let ino = self.make_directory(found, place)?;
        self.directories.push((ino, source::node(found).into()));
        self.committer.changed();
        self.summary.directories += 1;
        let mut names = Vec::new();
        for entry in local.read_dir().with_context(|| local.display().to_string())? {
            names.push(entry.with_context(|| local.display().to_string())?.file_name());
        }
        names.sort();
        for name in names {
            let child = local.join(&name);
            let path = place.path.join(name.as_bytes());
            let place = TargetName { parent: ino, name: name.as_bytes().to_vec(), path };
            let found = child.symlink_metadata().with_context(|| child.display().to_string());
            if let Err(error) = found.and_then(|found| self.entry(&child, &found, &place)) {
                self.failed(error)?;
            }
        }
        Ok(())
    }

    /// The directory in the volume; an existing one is entered.
    fn make_directory(&mut self, found: &Metadata, place: &TargetName) -> Result<Ino> {
        match self.there(place)? {
            Some(attr) if attr.kind == FileKind::Directory => Ok(attr.ino),
            Some(_) => Err(Error::NotADirectory(place.path.to_string()).into()),
            None => {
                let made = self.fs.mkdir(place.parent, &place.name, source::node(found));
                Ok(made.map_err(|error| in_words_of(&place.path, error))?.ino)
            }
        }
    }

    fn there(&self, place: &TargetName) -> Result<Option<Attr>> {
        match self.fs.lookup(place.parent, &place.name) {
            Ok(attr) => Ok(Some(attr)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(in_words_of(&place.path, error).into()),
        }
    }

    /// As [`Self::there`], for something that a file or link may replace.
    fn replaceable(&self, place: &TargetName) -> Result<Option<Attr>> {
        match self.there(place)? {
            Some(attr) if attr.kind == FileKind::Directory => {
                Err(Error::Exists(format!("{} is a directory and", place.path)).into())
            }
            there => Ok(there),
        }
    }

    fn symlink(&mut self, local: &Path, found: &Metadata, place: &TargetName) -> Result<()> {
        let target = local.read_link()?;
        let target = target.as_os_str().as_bytes();
        let there = self.replaceable(place)?;
        self.make(place, there.is_some(), |fs, parent, name| {
            let attr = fs.symlink(parent, name, target, source::node(found))?;
            Ok((attr.ino, ()))
        })?;
        self.summary.symlinks += 1;
        self.committer.changed();
        self.waiting.push((place.clone(), 0));
        Ok(())
    }

    fn file(&mut self, local: &Path, place: &TargetName) -> Result<()> {
        // A path named without -r may be a link, already followed.
        let file = source::open(local, !self.recursive)?;
        let found = file.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it was replaced while it was stored").into());
        }
        self.progress.on(&place.path.to_string());
        let key = (found.dev(), found.ino());
        if let (true, Some(&ino)) = (found.nlink() > 1, self.links.get(&key)) {
            self.link(ino, place)?;
            self.progress.add(found.len());
        } else if found.len() == 0 && source::has_content(&file)? {
            // Content made on reading, as in /proc: the length shows at its end.
            return self.stream_with(&mut &file, place.clone(), source::node(&found));
        } else {
            let ino = self.content(place, &file, &found)?;
            if found.nlink() > 1 {
                self.links.insert(key, ino);
            }
            self.summary.bytes += found.len();
        }
        self.summary.files += 1;
        self.committer.changed();
        self.waiting.push((place.clone(), found.len()));
        Ok(())
    }

    /// Adds a name to a file that this `put` has stored.
    fn link(&mut self, ino: Ino, place: &TargetName) -> Result<()> {
        match self.replaceable(place)? {
            Some(there) if there.ino == ino => Ok(()),
            there => self.make(place, there.is_some(), |fs, parent, name| {
                Ok((fs.link(ino, parent, name)?.ino, ()))
            }),
        }
    }

    /// Makes something at its place, or, to replace something, in the staging directory first.
    fn make<T>(
        &mut self,
        place: &TargetName,
        staged: bool,
        make: impl FnOnce(&dyn WriteFiles, Ino, &[u8]) -> oblivio_volume::Result<(Ino, T)>,
    ) -> Result<T> {
        if !staged {
            let made = make(self.fs, place.parent, &place.name);
            return Ok(made.map_err(|error| in_words_of(&place.path, error))?.1);
        }
        let stage = self.staging.fresh()?;
        let made = make(self.fs, stage.0, &stage.1);
        let (_, value) = made.map_err(|error| in_words_of(&place.path, error))?;
        self.staging.place(&stage, place.parent, &place.name)?;
        Ok(value)
    }

    fn content(
        &mut self,
        place: &TargetName,
        file: &std::fs::File,
        found: &Metadata,
    ) -> Result<Ino> {
        let there = self.replaceable(place)?;
        // A new file that fits one commit appears whole.
        if !self.committer.has_room(found.len()) {
            self.commit()?;
        }
        let staged = there.is_some()
            || self.fs.among_others().is_some()
            || found.len() > COMMIT_BYTES
            || self.is_scarce(found.len())?;
        let node = source::node(found);
        self.written(place, staged, node, |put, ino, into| {
            let len = source::each_piece(file, found.len(), |at, piece| {
                into.write(at, piece)?;
                put.wrote(ino, at, piece.len() as u64, staged)
            })?;
            if len < found.len() {
                let line = human::plain(&format!("{}: became shorter", place.path));
                put.progress.aside(|| eprintln!("oblivio: warning: {line}"));
            }
            Ok(SetAttr { size: Some(len), ..source::node(found).into() })
        })
    }

    /// Stores what a reader yields, such as standard input.
    pub fn stream(&mut self, from: &mut dyn Read, place: TargetName) -> Result<()> {
        let process = (rustix::process::geteuid(), rustix::process::getegid());
        let (uid, gid) = (process.0.as_raw(), process.1.as_raw());
        self.stream_with(from, place, NewNode { mode: 0o644, uid, gid, mtime: now() })
    }

    fn stream_with(
        &mut self,
        mut from: &mut dyn Read,
        place: TargetName,
        node: NewNode,
    ) -> Result<()> {
        self.replaceable(&place)?;
        self.progress.on(&place.path.to_string());
        let mut len = 0;
        self.written(&place, true, node, |put, ino, into| {
            let mut piece = Vec::with_capacity(source::PIECE);
            loop {
                piece.clear();
                (&mut from).take(source::PIECE as u64).read_to_end(&mut piece)?;
                if piece.is_empty() {
                    return Ok(SetAttr::default());
                }
                into.write(len, &piece)?;
                put.wrote(ino, len, piece.len() as u64, true)?;
                len += piece.len() as u64;
            }
        })?;
        self.summary.bytes += len;
        self.summary.files += 1;
        self.waiting.push((place, len));
        Ok(())
    }

    /// Whether a file of this length leaves little room or none: then the file system commits by
    /// itself, and not only on request.
    fn is_scarce(&self, len: u64) -> Result<bool> {
        Ok(self.fs.free_bytes()? < len.saturating_mul(2).saturating_add(SCARCE))
    }

    /// Creates a file, fills it, and puts it in its place; on failure nothing of it stays.
    fn written(
        &mut self,
        place: &TargetName,
        staged: bool,
        node: NewNode,
        fill: impl FnOnce(&mut Self, Ino, &OpenFile<'_, dyn WriteFiles + '_>) -> Result<SetAttr>,
    ) -> Result<Ino> {
        let at = if staged { self.staging.fresh()? } else { (place.parent, place.name.clone()) };
        let created = self.fs.create(at.0, &at.1, node);
        let (attr, id) = created.map_err(|error| in_words_of(&place.path, error))?;
        let file = OpenFile::of(self.fs, id);
        self.publisher.ordinary(OrdinaryEvent::create(attr.ino));
        let filled =
            fill(self, attr.ino, &file).and_then(|set| Ok(self.fs.set_attr(attr.ino, set)?));
        let closed = file.close();
        if let Err(error) = filled.and(closed.map_err(Into::into)) {
            // Report the first failure.
            let _ = self.fs.unlink(at.0, &at.1);
            return Err(error);
        }
        if staged {
            self.staging.place(&at, place.parent, &place.name)?;
        }
        Ok(attr.ino)
    }

    fn wrote(&mut self, ino: Ino, at: u64, bytes: u64, may_commit: bool) -> Result<()> {
        self.publisher.ordinary(OrdinaryEvent::write(ino, at + bytes, at, bytes));
        self.committer.wrote(bytes);
        self.progress.add(bytes);
        // A file at its final name must not be committed before it is whole.
        if may_commit { self.commit_if_due() } else { Ok(()) }
    }

    /// Counts a file that failed, unless the error is fatal.
    pub fn failed(&mut self, error: anyhow::Error) -> Result<()> {
        let Self { failures, progress, .. } = self;
        let mut noted = Ok(());
        progress.aside(|| noted = failures.note(error));
        noted
    }

    fn commit_if_due(&mut self) -> Result<()> {
        if self.committer.due() { self.commit() } else { Ok(()) }
    }

    /// Commits, and announces the files that are now safe.
    fn commit(&mut self) -> Result<()> {
        self.committer.commit()?;
        let waiting = std::mem::take(&mut self.waiting);
        for (place, bytes) in waiting {
            match self.announce {
                Announce::Nothing => {}
                Announce::Lines => human::say(human::name(&place.path.bytes()))?,
                Announce::Json => human::say_json(&serde_json::json!({
                    "stored": place.path.to_string(), "bytes": bytes,
                }))?,
            }
        }
        Ok(())
    }

    /// Sets the times of directories, commits the rest and returns the summary.
    pub fn finish(mut self) -> Result<(Summary, Failures)> {
        for (ino, set) in std::mem::take(&mut self.directories).into_iter().rev() {
            self.fs.set_attr(ino, set)?;
            self.committer.changed();
        }
        self.staging.finish()?;
        self.committer.changed();
        self.commit()?;
        self.summary.failed = self.failures.count();
        Ok((self.summary, self.failures))
    }
}

/// Whether it has no length of its own and is read to its end.
fn is_endless(found: &Metadata) -> bool {
    let kind = found.file_type();
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}
