//! Files of an older copy of the same volume, in place of what is lost.

use crate::args::OpenArgs;
use crate::human::{self, say};
use crate::inside;
use crate::open::{self, OpenSession};
use anyhow::Result;
use oblivio_crypto::Passphrase;
use oblivio_store::AnyStore;
use oblivio_volume::fs::{Attr, FileKind, FileSystem, Handle, Ino, NewNode, SetAttr};
use oblivio_volume::{Error, LostBytes};
use std::ops::Range;
use std::path::Path;

/// Bytes copied at once.
const PIECE: u64 = 1 << 20;

/// What came from a backup.
#[derive(Default)]
pub struct FromBackup {
    /// Files that are the same there, by size and times: their lost bytes are back.
    pub restored: Vec<String>,
    /// The older versions that lie beside the others now, by their new names.
    pub older: Vec<String>,
}

impl FromBackup {
    /// Says it.
    pub fn tell(&self) -> Result<()> {
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
pub struct Backup(OpenSession);

impl Backup {
    /// Opens it with the passphrase of the volume.
    pub fn open(
        (folder, store): (&Path, AnyStore),
        args: &OpenArgs,
        passphrase: &Passphrase,
    ) -> Result<Self> {
        let args = OpenArgs { unobserved: true, accept_rollback: true, ..args.clone() };
        let opened = open::volume_by(store, folder, (&args, Some(passphrase)), None, false)?;
        Ok(Self(open::file_system(opened, 0)?))
    }

    /// Brings back what is lost, where it has the same file. Where it has another version of it,
    /// that one is put beside it, as `NAME.older`.
    pub fn restore(self, fs: &FileSystem, lost: &[LostBytes]) -> Result<FromBackup> {
        let mut taken = FromBackup::default();
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
            let node = NewNode { mode: then.mode, ..NewNode::default() };
            let (new, handle) = fs.create(parent.ino, &name, node)?;
            fs.close(handle)?;
            self.copy(&then, fs, new.ino, std::slice::from_ref(&(0..then.size)))?;
            taken.older.push(format!("{}.older", lost.what));
        }
        self.0.fs.into_blocks()?;
        Ok(taken)
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
