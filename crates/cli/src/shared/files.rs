//! Files of a shared volume for commands that look at them.

use super::line::{TIMEOUT, line, open};
use crate::args::OpenArgs;
use crate::exit::usage;
use crate::passphrase;
use anyhow::Result;
use oblivio::walk::{ReadFile, ReadFiles};
use oblivio_client::files::Files;
use oblivio_client::{disk, unlock};
use oblivio_privatefs::{Error as FsError, Kind, Options, Owner, PrivateFs, ROOT, Timestamp};
use oblivio_serve::privatefs::environment;
use oblivio_share::Address;
use oblivio_volume::fs::{self, Attr, DirEntry, FileKind, Ino, ROOT_INO};
use oblivio_volume::{Error, Result as VolumeResult};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Names that are asked for at once.
const LISTED: usize = 256;

/// Runs a command on the files of a shared volume, and ends the session after it.
pub fn look<T>(
    address: &Address,
    args: &OpenArgs,
    work: impl FnOnce(&dyn ReadFiles) -> Result<T>,
) -> Result<T> {
    let others = args.unobserved || args.older || args.history.is_some() || args.take_over;
    if args.pad || args.pace.is_some() || args.trace_out.is_some() || others {
        let what = "to look at a shared volume has no --pad, --pace, --trace-out, --unobserved, --older, \
                    --history or --take-over";
        return Err(usage(what, "Leave that option out."));
    }
    let line = line(address, None)?;
    let keyed = unlock(&line, &passphrase::known(&args.passphrase)?)?;
    let client = open(line, keyed, address, args, TIMEOUT)?;
    let files = Arc::new(Files::new(client)?);
    let done = match disk::is_in(files.client())? {
        true => Err(Error::HoldsDisk.into()),
        false => {
            let fs = PrivateFs::new(Arc::clone(&files) as _, environment(), Options::default())?;
            work(&SharedFiles { fs, owners: Mutex::default(), listed: Mutex::default() })
        }
    };
    let closed = files.close();
    let value = done?;
    closed?;
    Ok(value)
}

/// The files of a client, with a number for each owner that was met.
struct SharedFiles {
    fs: PrivateFs,
    owners: Mutex<HashMap<Ino, Owner>>,
    /// The directory that is being listed, whole and sorted.
    listed: Mutex<(Ino, Vec<DirEntry>)>,
}

impl SharedFiles {
    fn owner(&self, ino: Ino) -> VolumeResult<Owner> {
        if ino == ROOT_INO {
            return Ok(ROOT);
        }
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(&ino).copied().ok_or_else(|| Error::NotFound(format!("inode {ino}")))
    }

    /// All names of a directory, sorted.
    fn list(&self, ino: Ino) -> VolumeResult<Vec<DirEntry>> {
        let (owner, mut all, mut cookie) = (self.owner(ino)?, Vec::new(), 0);
        loop {
            let some = self.fs.list(owner, cookie, LISTED);
            let some = some.map_err(|error| error_of(error, b""))?;
            let Some(last) = some.last() else { break };
            cookie = last.cookie;
            all.extend(some.into_iter().map(|it| DirEntry {
                ino: self.number(it.id),
                kind: kind(it.kind),
                name: it.name,
            }));
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all.dedup_by(|one, other| one.name == other.name);
        Ok(all)
    }

    /// Owners are random: half of one tells it from the others.
    fn number(&self, owner: Owner) -> Ino {
        if owner == ROOT {
            return ROOT_INO;
        }
        let ino = owner.first_chunk().map_or(0, |half| Ino::from_le_bytes(*half));
        self.owners.lock().unwrap_or_else(PoisonError::into_inner).insert(ino, owner);
        ino
    }

    fn attr_of(&self, attr: &oblivio_privatefs::Attr) -> Attr {
        Attr {
            ino: self.number(attr.id),
            kind: kind(attr.kind),
            size: attr.size,
            blocks: attr.size.div_ceil(512),
            mode: attr.mode,
            uid: attr.uid,
            gid: attr.gid,
            nlink: attr.nlink,
            rdev: attr.rdev,
            atime: time(attr.atime),
            mtime: time(attr.mtime),
            ctime: time(attr.ctime),
            crtime: time(attr.crtime),
        }
    }
}

impl ReadFiles for SharedFiles {
    fn attr(&self, ino: Ino) -> VolumeResult<Attr> {
        let attr = self.fs.attr(self.owner(ino)?).map_err(|error| error_of(error, b""))?;
        Ok(self.attr_of(&attr))
    }

    fn lookup(&self, parent: Ino, name: &[u8]) -> VolumeResult<Attr> {
        let found = self.fs.lookup(self.owner(parent)?, name);
        Ok(self.attr_of(&found.map_err(|error| error_of(error, name))?))
    }

    fn read_dir(&self, ino: Ino, after: Option<&[u8]>, most: usize) -> VolumeResult<Vec<DirEntry>> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if after.is_none() || listed.0 != ino {
            *listed = (ino, self.list(ino)?);
        }
        let rest = listed.1.iter().filter(|it| after.is_none_or(|after| &*it.name > after));
        Ok(rest.take(most).cloned().collect())
    }

    fn read_link(&self, ino: Ino) -> VolumeResult<Vec<u8>> {
        self.fs.read_link(self.owner(ino)?).map_err(|error| error_of(error, b""))
    }

    fn open(&self, ino: Ino) -> VolumeResult<Box<dyn ReadFile + '_>> {
        let owner = self.owner(ino)?;
        self.fs.open(owner).map_err(|error| error_of(error, b""))?;
        Ok(Box::new(Opened { fs: &self.fs, owner }))
    }
}

struct Opened<'f> {
    fs: &'f PrivateFs,
    owner: Owner,
}

impl ReadFile for Opened<'_> {
    fn read(&self, offset: u64, len: usize) -> VolumeResult<Vec<u8>> {
        self.fs.read(self.owner, offset, len).map_err(|error| error_of(error, b""))
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // If it fails, the end of the session closes the file.
        let _ = self.fs.close(self.owner);
    }
}

fn time(time: Timestamp) -> fs::Timestamp {
    fs::Timestamp { seconds: time.seconds, nanos: time.nanos }
}

fn kind(kind: Kind) -> FileKind {
    match kind {
        Kind::File => FileKind::File,
        Kind::Directory => FileKind::Directory,
        Kind::Symlink => FileKind::Symlink,
        Kind::Fifo => FileKind::Fifo,
        Kind::Socket => FileKind::Socket,
        Kind::CharDevice => FileKind::CharDevice,
        Kind::BlockDevice => FileKind::BlockDevice,
    }
}

fn error_of(error: FsError, name: &[u8]) -> Error {
    let shown = || String::from_utf8_lossy(name).into_owned();
    match error {
        FsError::NotFound | FsError::Stale => Error::NotFound(shown()),
        FsError::NotADirectory => Error::NotADirectory(shown()),
        FsError::IsADirectory => Error::IsADirectory(shown()),
        FsError::Damaged(what) => Error::Tampered(what.into()),
        FsError::Below(below) => match below.downcast::<Error>() {
            Ok(error) => *error,
            Err(other) => Error::Invalid(other.to_string()),
        },
        other => Error::Invalid(other.to_string()),
    }
}
