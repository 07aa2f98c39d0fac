//! Blocks and files of an older copy of the same volume, in place of what is lost.

use crate::args::OpenArgs;
use crate::exit::{Code, fault};
use crate::human::{self, say};
use crate::inside;
use crate::open::{self, OpenSession};
use crate::progress::Progress;
use anyhow::Result;
use oblivio_crypto::{Passphrase, VolumeId};
use oblivio_serve::watch::Publisher;
use oblivio_store::AnyStore;
use oblivio_volume::fs::{Attr, FileKind, FileSystem, Handle, Ino, NewNode, SetAttr};
use oblivio_volume::{BlockSpace, Error, LostBytes, Volume};
use std::ops::Range;
use std::path::Path;

/// Bytes copied at once.
const PIECE: u64 = 1 << 20;

/// What came from a backup.
#[derive(Default)]
pub struct FromBackup {
    /// Whether the volume was written anew already, with blocks of the backup.
    pub is_rewritten: bool,
    /// Blocks that were the same there, and are back.
    pub blocks: Vec<u64>,
    /// Files that are the same there, by size and times: their lost bytes are back.
    pub restored: Vec<String>,
    /// The older versions that lie beside the others now, by their new names.
    pub older: Vec<String>,
}

impl FromBackup {
    /// Writes a volume anew, with the blocks of a backup that were found. That is done also without
    /// any: the store does not see what the backup has.
    pub fn put_back(
        &mut self,
        backup: &mut Backup,
        volume: &mut Volume,
        quiet: bool,
    ) -> Result<()> {
        let mut progress = Progress::steps(quiet, "steps");
        let at = &mut |done, all| progress.at(done, all);
        self.blocks = volume.restore_from(&mut backup.volume, &backup.same, at)?;
        self.is_rewritten = true;
        Ok(())
    }

    /// Stores anew all that can be read, unless that was done with those blocks.
    pub fn rewrite(&self, mut volume: Box<Volume>, quiet: bool) -> Result<()> {
        if !self.is_rewritten {
            let mut progress = Progress::steps(quiet, "steps");
            volume.repair(&mut |done, all| progress.at(done, all))?;
        }
        Ok(volume.finish()?)
    }

    /// Says it.
    pub fn tell(&self) -> Result<()> {
        if !self.blocks.is_empty() {
            let blocks = human::count(self.blocks.len() as u64, "block");
            say(format!("restored from the backup: {blocks}"))?;
        }
        for path in &self.restored {
            say(format!("restored from the backup: {}", human::plain(path)))?;
        }
        for path in &self.older {
            say(format!("older, from the backup: {}", human::plain(path)))?;
        }
        Ok(())
    }
}

/// An older copy of the volume, which is only read.
pub struct Backup {
    volume: Volume,
    publisher: Publisher,
    /// The lost blocks that it has in the version that is lost.
    same: Vec<u64>,
}

impl Backup {
    /// Opens it with the passphrase of the volume, which it must be a copy of.
    pub fn open(
        (folder, store): (&Path, AnyStore),
        of: VolumeId,
        (args, passphrase): (&OpenArgs, &Passphrase),
    ) -> Result<Self> {
        let args = OpenArgs { unobserved: true, accept_rollback: true, ..args.clone() };
        let opened = open::volume_by(store, folder, (&args, Some(passphrase)), None, false)?;
        let found = opened.0.known().volume;
        if found != of {
            let what = format!("the backup is another volume, {found} and not {of}");
            return Err(fault(Code::OtherVolume, what, "Name an older copy of this volume."));
        }
        Ok(Self { volume: opened.0, publisher: opened.1, same: Vec::new() })
    }

    /// Finds the lost blocks of a volume that are the same here.
    pub fn find_blocks(&mut self, volume: &mut Volume, quiet: bool) -> Result<()> {
        let mut progress = Progress::steps(quiet, "buckets");
        let at = &mut |done, all| progress.at(done, all);
        self.same = volume.found_in(&mut self.volume, at)?;
        Ok(())
    }

    /// Those that were found.
    pub fn same(&self) -> &[u64] {
        &self.same
    }

    /// Its files.
    pub fn files(self) -> Result<BackupFiles> {
        Ok(BackupFiles(open::file_system((self.volume, self.publisher), 0)?))
    }
}

/// The files of an older copy.
pub struct BackupFiles(OpenSession);

impl BackupFiles {
    /// Brings back what is lost, where it has the same file. Where it has another version of it,
    /// that one is put beside it, as `NAME.older`.
    pub fn restore(
        self,
        fs: &FileSystem,
        lost: &[LostBytes],
        taken: &mut FromBackup,
    ) -> Result<()> {
        for lost in lost {
            let Ok(path) = inside::parse(std::ffi::OsStr::new(&lost.what)) else { continue };
            let (Some(now), Some(then)) =
                (inside::find_if_any(fs, &path)?, inside::find_if_any(&self.0.fs, &path)?)
            else {
                continue;
            };
            if then.kind != FileKind::File || now.kind != FileKind::File {
                continue;
            }
            if is_same(&now, &then) {
                if self.copy(&then, fs, now.ino, &lost.ranges)? {
                    taken.restored.push(lost.what.clone());
                }
                continue;
            }
            let name = [path.name().unwrap_or_default(), b".older"].concat();
            let parent = inside::find_directory(fs, &path.parent())?;
            if fs.lookup(parent.ino, &name).is_ok() {
                // An earlier repair put it there, or the user has such a file.
                continue;
            }
            let node = NewNode { mode: then.mode, ..NewNode::default() };
            let (new, handle) = fs.create(parent.ino, &name, node)?;
            fs.close(handle)?;
            self.copy(&then, fs, new.ino, std::slice::from_ref(&(0..then.size)))?;
            taken.older.push(format!("{}.older", lost.what));
        }
        self.0.fs.into_blocks()?;
        Ok(())
    }

    /// Copies ranges of a file; false if the backup has lost some of them as well.
    fn copy(&self, from: &Attr, fs: &FileSystem, to: Ino, ranges: &[Range<u64>]) -> Result<bool> {
        let (source, target) = (self.0.fs.open_file(from.ino)?, fs.open_file(to)?);
        let mut whole = true;
        for range in ranges {
            whole &= self.copy_range(source, fs, target, range.clone())?;
        }
        self.0.fs.close(source)?;
        fs.close(target)?;
        let times = SetAttr { mtime: Some(from.mtime), ..SetAttr::default() };
        fs.set_attr(to, times)?;
        Ok(whole)
    }

    fn copy_range(
        &self,
        source: Handle,
        fs: &FileSystem,
        target: Handle,
        range: Range<u64>,
    ) -> Result<bool> {
        let (mut at, mut whole) = (range.start, true);
        while at < range.end {
            let len = PIECE.min(range.end - at);
            match self.0.fs.read(source, at, len as usize) {
                Ok(bytes) => fs.write(target, at, &bytes)?,
                Err(Error::Lost(_)) => whole = false,
                Err(error) => return Err(error.into()),
            }
            at += len;
        }
        Ok(whole)
    }
}

/// Whether two versions of a file are one: a write changes the times.
fn is_same(now: &Attr, then: &Attr) -> bool {
    (now.ino, now.size, now.mtime, now.ctime) == (then.ino, then.size, then.mtime, then.ctime)
}
